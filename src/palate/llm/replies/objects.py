"""Reading JSON out of a reply: tolerant about what stands around it, strict about what stands in it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from palate.llm.replies.outcome import NOT_A_NUMBER, OFF_SCALE, Parsed, Unparsed
from palate.llm.replies.thoughts import without_thoughts

_MARKS = re.compile(r'\\.|["{}]', re.DOTALL)
_LOOKS = re.compile(r"""\{\s*(?:["'}]|\w+\s*:)""")
_NUMERIC = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_BETWEEN = re.compile(r"\s*,\s*")
_TRIES = 32  # bounds the work on a text of nothing but open braces
_HUGE = 1e300


@dataclass(frozen=True, slots=True)
class Found:
    """One object as it stands in a text, or why it cannot be read."""

    start: int
    end: int
    value: dict[str, Any] | Unparsed


class _Refused(ValueError):
    """JSON that some libraries read and we do not."""


def read_object(text: str) -> dict[str, Any] | Unparsed:
    """Return the last JSON object of a reply.

    A fence, a lead-in, trailing words and a stray "json" do not matter. NaN, Infinity, a key given twice, an object
    that is not closed and one that stands in a list are refused; braces in prose are not objects. Numeric strings
    stay strings (see `number`).
    """
    plain = without_thoughts(text)
    if isinstance(plain, Unparsed):
        return plain
    found = find_objects(plain)
    return found[-1].value if found else Unparsed("no JSON object")


def find_objects(text: str) -> list[Found]:
    """Return the outermost objects of a text in order, broken ones with their reason."""
    found: list[Found] = []
    for start, end in _spans(text):
        value: dict[str, Any] | Unparsed
        if end is None:
            value = Unparsed("an object that is not closed")
        elif _in_list(text, start, end, found[-1].end if found else None):
            value = Unparsed("a list, not one object")
        else:
            value = load(text[start:end])
        found.append(Found(start, len(text) if end is None else end, value))
    return found


def load(text: str) -> Any | Unparsed:
    """Return the value of a JSON text, strictly."""
    try:
        return json.loads(text, object_pairs_hook=_no_doubles, parse_constant=_no_constant)
    except _Refused as bad:
        return Unparsed(str(bad))
    except (ValueError, RecursionError):
        return Unparsed("broken JSON")


def number(value: Any, low: float, high: float) -> float | Unparsed:
    """Return a JSON number, or a plain decimal in a string such as "0.75", if it lies in low…high."""
    if isinstance(value, str) and _NUMERIC.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOT_A_NUMBER
    return float(value) if low <= value <= high and abs(value) < _HUGE else OFF_SCALE


def field(text: str, key: str) -> tuple[int, Parsed[Any] | Unparsed] | None:
    """Return where the last object that has `key`, or is broken and names it, stands, and what it says."""
    name = re.compile(rf"""["']?\b{re.escape(key)}\b["']?\s*:""")
    for found in reversed(find_objects(text)):
        if isinstance(found.value, Unparsed):
            if name.search(text, found.start, found.end):
                return found.start, found.value
        elif key in found.value:
            return found.start, Parsed(found.value[key])
    return None


def _spans(text: str) -> Iterator[tuple[int, int | None]]:
    at = tries = 0
    final = text.rfind("}")
    while (start := text.find("{", at)) >= 0 and tries < _TRIES:
        end, looks = _close(text, start) if start < final else None, bool(_LOOKS.match(text, start))
        if looks:
            yield start, end
        if end is None and looks:
            return
        tries += end is None and start < final
        at = start + 1 if end is None else end


def _close(text: str, start: int) -> int | None:
    """Return the end of the brace at `start`, stepping over strings."""
    depth, inside = 0, False
    for mark in _MARKS.finditer(text, start):
        if mark[0] == '"':
            inside = not inside
        elif inside or mark[0][0] == "\\":
            continue
        else:
            depth += 1 if mark[0] == "{" else -1
            if not depth:
                return mark.end()
    return None


def _in_list(text: str, start: int, end: int, before: int | None) -> bool:
    if before is not None and _BETWEEN.fullmatch(text, before, start):
        return True
    return text[:start].rstrip().endswith("[") or text[end:].lstrip().startswith("]")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Refused("a key given twice")
    return found


def _no_constant(name: str) -> Any:
    raise _Refused(f"{name} is not JSON")
