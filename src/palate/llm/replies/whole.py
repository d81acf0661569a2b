"""What parsers of whole replies share: a clean text, and a JSON field or else a line of the judge's own."""

import re
from collections.abc import Callable
from typing import Any

from palate.llm.replies.objects import field, find_objects
from palate.llm.replies.outcome import DIFFER, Parsed, T, Unparsed
from palate.llm.replies.own import cover, own_words, tidy, without_citations
from palate.llm.replies.thoughts import without_thoughts
from palate.llm.replies.votes import Vote

EMPTY = Unparsed("empty reply")
_AN_ANSWER = re.compile(r"\b(?:answer|response|output|assistant|option)s?\b", re.IGNORECASE)
_MY_OWN = re.compile(r"\b(?:verdict|decision|judge?ment|evaluation|conclusion|result|score)\b", re.IGNORECASE)


def clean(text: str) -> str | Unparsed:
    """Return the reply without thoughts, without a fence around the whole, and with plain line ends."""
    plain = without_thoughts(text)
    if isinstance(plain, Unparsed):
        return plain
    return tidy(plain) or EMPTY


def field_or_line(
    text: str,
    key: str,
    read: Callable[[Any], Parsed[T] | Unparsed],
    own_line: Callable[[str], Vote[T] | None],
    nothing: Unparsed,
) -> Parsed[T] | Unparsed:
    """Read the field `key` of the judge's last object that has it, or the judge's own last line.

    A line after the object decides. An object after a line may be one that the judge only shows, so if the two differ
    there is no value.
    """
    cited = without_citations(text)
    spans = [(found.start, found.end) for found in find_objects(cited)]
    said = field(cover(cited, (span for span in spans if _shown(cited, span[0]))), key)
    line = own_line(own_words(cover(text, spans)))
    if said is None:
        return line.value if line else nothing
    start, raw = said
    value = read(raw.value) if isinstance(raw, Parsed) else raw
    if line is None or line.value == value:
        return value
    return line.value if line.start > start else DIFFER


def _shown(text: str, start: int) -> bool:
    """Say whether the words before an object, on its line, show it as part of an answer."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return bool(_AN_ANSWER.search(before)) and not _MY_OWN.search(before)
