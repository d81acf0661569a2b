"""Strict reading of JSON Lines: bytes in, one checked object a line out.

Records end at `\\n` only. A doubled key, NaN, Infinity, a lone surrogate or bytes that are not UTF-8 are refused
here, before any library sees the line, so that the answer is the same on every version of every library.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

BOM = b"\xef\xbb\xbf"


class BadLine(ValueError):
    """A line that is not one strict JSON object; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Line:
    """One raw line: its number from 1, its byte offset, and its bytes without the line end."""

    number: int
    offset: int
    raw: bytes


def read_lines(handle: BinaryIO) -> Iterator[Line]:
    """Yield every line of a binary file, blank ones too, cutting at newlines only."""
    offset = 0
    for number, raw in enumerate(handle, start=1):
        start = offset
        offset += len(raw)
        body = raw.rstrip(b"\n").removesuffix(b"\r")
        if number == 1 and body.startswith(BOM):
            start, body = start + len(BOM), body[len(BOM) :]
        yield Line(number, start, body)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in `raw`.

    Raises:
        BadLine: with a reason a person can act on.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as bad:
        raise BadLine(f"not UTF-8 (byte {bad.start + 1})") from None
    try:
        value = json.loads(text, object_pairs_hook=_no_doubles, parse_constant=_no_constant)
    except BadLine:
        raise
    except json.JSONDecodeError as bad:
        raise BadLine(_why(text, bad)) from None
    except (ValueError, RecursionError) as bad:
        raise BadLine(f"not readable as JSON ({type(bad).__name__})") from None
    if not isinstance(value, dict):
        raise BadLine(f"expected an object {{…}}, found {describe(value)}")
    if "\\ud" in text or "\\uD" in text:
        _no_lone_surrogate(value)
    return value


def describe(value: Any) -> str:
    """Return what `value` is, in words, with a short excerpt."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        short = value if len(value) <= 30 else value[:29] + "…"
        return f"the string {json.dumps(short, ensure_ascii=False)}" if value.strip() else "a blank string"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:4])
        return f"an object with {keys}" if value else "an empty object"
    return type(value).__name__


def iter_array(path: Path, chunk: int = 1 << 20) -> Iterator[Any]:
    """Yield the elements of a file that holds one JSON array, reading it piece by piece.

    Raises:
        BadLine: not an array, or broken; the message names the element.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_no_doubles, parse_constant=_no_constant)
    with path.open(encoding="utf-8-sig", newline="") as handle:
        buffer, number = handle.read(chunk).lstrip(), 0
        if not buffer.startswith("["):
            raise BadLine("expected a JSON array of records '[…]'; for one record a line use the ending .jsonl")
        buffer = buffer[1:]
        while True:
            try:
                value, rest = _element(decoder, buffer, first=number == 0)
            except json.JSONDecodeError as bad:
                more = handle.read(max(chunk, len(buffer)))
                if not more:
                    raise BadLine(f"record {number + 1}: {_why(buffer, bad)}") from None
                buffer += more
                continue
            if rest is None:
                return
            if not rest and (more := handle.read(chunk)):
                buffer += more
                continue
            number += 1
            yield value
            buffer = rest


def _element(decoder: json.JSONDecoder, buffer: str, *, first: bool) -> tuple[Any, str | None]:
    """Return the next element and what follows it; the rest is None at the array's end."""
    text = buffer.lstrip()
    if text.startswith("]"):
        return None, None
    if not first:
        if not text.startswith(","):
            raise json.JSONDecodeError("Expecting ',' or ']'", text, 0)
        text = text[1:].lstrip()
    value, end = decoder.raw_decode(text)
    return value, text[end:]


def _why(text: str, bad: json.JSONDecodeError) -> str:
    if not text.strip():
        return "blank line"
    if bad.pos >= len(text.rstrip()) or "Unterminated" in bad.msg:
        return "the line is cut off in the middle of a record"
    return f"not JSON: {bad.msg} at column {bad.colno}"


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadLine(f"the key {key!r} is given twice in one object")
            seen.add(key)
    return found


def _no_constant(name: str) -> Any:
    raise BadLine(f"{name} is not JSON; use null or leave the field out")


def _no_lone_surrogate(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadLine("a \\ud800–\\udfff escape stands alone, so the text cannot be written as UTF-8") from None
