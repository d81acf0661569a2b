"""What a parser gives back: a value that was read, or the reason why none was."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

Choice = Literal["A", "B", "tie"]


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A value that stands in the reply."""

    value: T


@dataclass(frozen=True, slots=True)
class Unparsed:
    """No value; `reason` is a short phrase, such as "no verdict"."""

    reason: str


PairParser = Callable[[str], Parsed[Choice] | Unparsed]
ScoreParser = Callable[[str, float, float], Parsed[float] | Unparsed]
PairParsers = Mapping[str, PairParser]
ScoreParsers = Mapping[str, ScoreParser]

NO_VERDICT = Unparsed("no verdict")
NO_SCORE = Unparsed("no score")
DIFFER = Unparsed("two verdicts that differ")
NOT_ALLOWED = Unparsed("not in the allowed set")
OPEN_THOUGHT = Unparsed("open thought")
OFF_SCALE = Unparsed("outside the scale")
OTHER_SCALE = Unparsed("another scale")
NOT_A_NUMBER = Unparsed("not a number")
A_RULE = Unparsed("a rule, not a verdict")
