"""Reading a planner's list of aspects."""

import re
from typing import Any

from palate.llm.replies.objects import field, find_objects, load
from palate.llm.replies.outcome import Parsed, Unparsed
from palate.llm.replies.own import without_citations
from palate.llm.replies.whole import clean

MOST = 12
_NO_LIST = Unparsed("no list of aspects")
_TWO_LISTS = Unparsed("more than one list")
_ITEM = re.compile(r"([ \t]*)(?:([0-9]{1,3})[.)]|[-*•])[ \t]+(\S.*)")
_ARRAY = re.compile(r"""\[\s*["{]|\A\s*\[\s*\]""")


def read_aspects(text: str) -> Parsed[tuple[str, ...]] | Unparsed:
    """Return the 1 to 12 aspects that a planner lists, trimmed, each once, in order.

    Read are a JSON list of strings (or of objects with "aspect"), a JSON object whose "aspects" is such a list, and a
    numbered or bulleted list; a fence, a lead-in and trailing words do not matter. Of a numbered list, which must run
    from 1, only the numbered lines count, of a bulleted one only its least indented lines. Prose is no list.
    """
    plain = clean(text)
    if isinstance(plain, Unparsed):
        return plain
    entries = _from_json(without_citations(plain))
    if entries is None:
        entries = _from_lines(plain)
    return entries if isinstance(entries, Unparsed) else _tidied(entries)


def _from_json(text: str) -> list[Any] | Unparsed | None:
    """Return the entries of a JSON list or of the last object with "aspects", or None if there is neither."""
    start = _ARRAY.search(text)
    if start and not any(found.start < start.start() < found.end for found in find_objects(text)):
        value = load(text[start.start() : text.rfind("]") + 1])
        return value if isinstance(value, list | Unparsed) else _NO_LIST
    said = field(text, "aspects")
    if said is None:
        return None
    if isinstance(said[1], Unparsed):
        return said[1]
    return said[1].value if isinstance(said[1].value, list) else _NO_LIST


def _from_lines(text: str) -> list[Any] | Unparsed:
    items = [(k, item) for k, line in enumerate(text.split("\n")) if (item := _ITEM.fullmatch(line.rstrip()))]
    if not items:
        return _NO_LIST
    least = min(len(item[1].expandtabs()) for _, item in items)
    top = [(k, item) for k, item in items if len(item[1].expandtabs()) == least]
    numbered = [item for _, item in top if item[2]]
    if numbered:
        runs = [int(item[2]) for item in numbered] == list(range(1, len(numbered) + 1))
        return [item[3] for item in numbered] if runs else _TWO_LISTS
    if _broken_up(text.split("\n")[top[0][0] : top[-1][0]], least):
        return _TWO_LISTS
    return [item[3] for _, item in top]


def _broken_up(lines: list[str], least: int) -> bool:
    """Say whether words at the margin stand between the bullets."""
    return any(line.strip() and len(line) - len(line.lstrip()) <= least and not _ITEM.match(line) for line in lines)


def _tidied(entries: list[Any]) -> Parsed[tuple[str, ...]] | Unparsed:
    kept: dict[str, str] = {}
    for entry in entries:
        title = entry.get("aspect") if isinstance(entry, dict) else entry
        if not isinstance(title, str):
            return Unparsed("an aspect that is not a text")
        title = " ".join(title.replace("**", "").split()).strip("\"'“”`")
        if not title.strip():
            return Unparsed("a blank aspect")
        kept.setdefault(title.casefold(), title)
    if not kept:
        return Unparsed("no aspects")
    return Parsed(tuple(kept.values())) if len(kept) <= MOST else Unparsed(f"more than {MOST} aspects")
