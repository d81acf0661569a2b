"""Readers of one number on a stated scale, one for each agreed form. The table of forms is `SCORE_PARSERS`."""

import re
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

from palate.llm.replies.objects import number
from palate.llm.replies.outcome import (
    NO_SCORE,
    NOT_A_NUMBER,
    OTHER_SCALE,
    Parsed,
    ScoreParser,
    ScoreParsers,
    Unparsed,
)
from palate.llm.replies.own import own_words
from palate.llm.replies.votes import Vote, bracketed, labelled, last_bracketed
from palate.llm.replies.whole import clean, field_or_line

Score = Parsed[float] | Unparsed

_DRESS = "\"'“”‘’*_`[](){} \t"
_GRADE = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)(?:\s*(?:/|out of)\s*([0-9]+(?:\.[0-9]+)?))?", re.IGNORECASE)
_BARE = re.compile(r"""(?:json\s)?\s*(?:["']?match_score["']?\s*:\s*)?([0-9]+)(?:\s+/?json)?""")


def grade(value: Any, low: float, high: float) -> Score:
    """Read 7, "7", "7.5" or "7/10"; the scale in "7/10" must be the one asked for."""
    if isinstance(value, str):
        bare = value.strip(_DRESS + "\n").removesuffix(".").strip(_DRESS)
        found = _GRADE.fullmatch(bare) if len(bare) < 80 else None
        if not found:
            return NOT_A_NUMBER
        if found[2] and float(found[2]) != high:
            return OTHER_SCALE
        value = found[1]
    got = number(value, low, high)
    return got if isinstance(got, Unparsed) else Parsed(got)


def _score(text: str, low: float, high: float) -> Score:
    read = partial(grade, low=low, high=high)
    if _GRADE.fullmatch(text.strip(_DRESS + ".")):
        return read(text)
    return field_or_line(text, "score", read, lambda own: labelled(own, "score", read), NO_SCORE)


def _rating(text: str, low: float, high: float) -> Score:
    def read(content: str) -> Score | None:
        return grade(content, low, high) if re.search(r"[0-9]", content) else None

    own = own_words(text)
    last: Vote[float] | None = last_bracketed(own, bracketed(own, read))
    return last.value if last else NO_SCORE


def _match_score(text: str, low: float, high: float) -> Score:
    if bare := _BARE.fullmatch(text):
        return _whole_number(bare[1], low, high)
    return field_or_line(text, "match_score", partial(_whole_number, low=low, high=high), lambda own: None, NO_SCORE)


def _whole_number(value: Any, low: float, high: float) -> Score:
    got = number(value, low, high)
    if isinstance(got, Unparsed):
        return got
    return Parsed(got) if got.is_integer() else NOT_A_NUMBER


def _parser(read: Callable[[str, float, float], Score]) -> ScoreParser:
    def parse(text: str, low: float, high: float) -> Score:
        plain = clean(text)
        return plain if isinstance(plain, Unparsed) else read(plain, low, high)

    return parse


SCORE_PARSERS: ScoreParsers = MappingProxyType(
    {"score": _parser(_score), "rating": _parser(_rating), "match_score": _parser(_match_score)}
)
