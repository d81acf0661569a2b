"""Strict reading of JSON Lines: bytes in, one checked object a line out.

Records end at `\\n` only. A doubled key, NaN, Infinity, a lone surrogate or bytes that are not UTF-8 are refused
here, before any library sees the line, so that the answer is the same on every version of every library.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

BOM = b"\xef\xbb\xbf"
CUT = "the line is cut off in the middle of a record"
DEEP = "lists or objects are nested too deeply to be read"
_ENDED = "the file ends in the middle of the array"
_AFTER = frozenset(",] \t\r\n")
_SPACE = re.compile(r"[ \t\n\r]*")


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
        raise BadLine(CUT if bad.reason == "unexpected end of data" else f"not UTF-8 (byte {bad.start + 1})") from None
    try:
        value = json.loads(text, object_pairs_hook=_no_doubles, parse_constant=_no_constant, parse_float=_finite)
        if "\\ud" in text or "\\uD" in text:
            _no_lone_surrogate(value)
    except BadLine:
        raise
    except json.JSONDecodeError as bad:
        raise BadLine(_why(text, bad)) from None
    except RecursionError:
        raise BadLine(DEEP) from None
    except ValueError as bad:
        raise BadLine(f"not readable as JSON ({bad})") from None
    if not isinstance(value, dict):
        raise BadLine(f"expected an object {{…}}, found {describe(value)}")
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


def iter_array(path: Path, chunk: int = 1 << 20) -> Iterator[str]:
    """Yield the elements of a file that holds one JSON array as they are written, reading it piece by piece.

    Elements are not judged here: `parse_object` does that for every form of file.

    Raises:
        BadLine: not an array, or broken; the message names the element.
    """
    with path.open(encoding="utf-8-sig", newline="") as handle:
        pieces = _Pieces(handle, chunk)
        if not (mark := pieces.peek()):
            return
        if mark != "[":
            raise BadLine("expected a JSON array of records '[…]'; for one record a line use the ending .jsonl")
        pieces.take()
        number = 0
        while pieces.peek() != "]":
            if number:
                pieces.comma(number)
            number += 1
            yield pieces.element(number)
        pieces.take()
        if pieces.peek():
            raise BadLine("more text follows the array's closing ']'")


class _Pieces:
    """The text of a file, of which only what is being looked at is held."""

    def __init__(self, handle: TextIO, chunk: int) -> None:
        self._handle, self._chunk = handle, chunk
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next character that is not white space, or nothing at the end of the file."""
        while True:
            if space := _SPACE.match(self._text, self._at):
                self._at = space.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self) -> None:
        """Step over one character."""
        self._at += 1

    def comma(self, number: int) -> None:
        """Step over the comma after record `number`."""
        if (mark := self.peek()) != ",":
            raise BadLine(f"record {number}: not JSON: expected ',' or ']' after it" if mark else _ENDED)
        self.take()

    def element(self, number: int) -> str:
        """Return one whole JSON value as written."""
        self.peek()
        while True:
            try:
                end = self._decoder.raw_decode(self._text, self._at)[1]
            except json.JSONDecodeError as bad:
                if self._more():
                    continue
                cut = _why(self._text, bad) == CUT or not self.peek()
                raise BadLine(_ENDED if cut else f"record {number}: not JSON: {bad.msg}") from None
            except RecursionError:
                raise BadLine(f"record {number}: {DEEP}") from None
            closed = self._text[end - 1] in '}]"' or self._text[end : end + 1] in _AFTER
            if closed or not self._more():  # else it may be half a number
                self._at, start = end, self._at
                return self._text[start:end]

    def _more(self) -> bool:
        """Read as much again as is held, so that the work stays linear; say whether there was any."""
        try:
            piece = self._handle.read(max(self._chunk, len(self._text) - self._at))
        except UnicodeDecodeError:
            raise BadLine("the file is not UTF-8") from None
        if piece:
            self._text, self._at = self._text[self._at :] + piece, 0
        return bool(piece)


def _why(text: str, bad: json.JSONDecodeError) -> str:
    if not text.strip():
        return "blank line"
    if bad.pos >= len(text.rstrip()) or "Unterminated" in bad.msg:
        return CUT
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


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadLine(f"the number {text} is too large")
    return value


def _no_lone_surrogate(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadLine("a \\ud800–\\udfff escape stands alone, so the text cannot be written as UTF-8") from None
