"""Where verdicts stand: after a label, or in double brackets.

A vote is one mark with its place. A mark that looks like a verdict and is none, such as `[[A/B]]`, is a vote too,
without a value: it is never stepped over in favour of an earlier one. Other things in brackets, such as a certainty
`[[80]]` beside `[[A]]`, are no votes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from palate.llm.replies.outcome import A_RULE, DIFFER, Parsed, T, Unparsed

_BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,80})\]\]")
_BREAK = re.compile(r"(?<!\bvs)(?<!\be\.g)(?<!\bi\.e)[.!?][\"'”’)*_]*(?=\s)|\n", re.IGNORECASE)
_CONDITION = re.compile(r"[\"'”’*_)]*,?[ \t]+(?:if|when|in case)\b", re.IGNORECASE)
_LABEL = (
    r"(?:^|[.!?][\"'”’)*_]*[ \t])[ \t#*_`\"'“(-]*(?:(?:so|therefore|thus|hence|overall),?[ \t]+)?"
    r"(?:(?:my|the)[ \t]+)?(?:(?:final|overall)[ \t]+)?(?:%s)[*_`\"]*(?:[ \t]+is)?[*_`]*[ \t]*[:：]"
)
ANY_LABEL = re.compile(_LABEL % "verdict|result|rating|score", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vote(Generic[T]):
    """A mark from `start` to `end`; `whole` says that it closes its line or sentence."""

    start: int
    end: int
    value: Parsed[T] | Unparsed
    whole: bool = True


Reader = Callable[[str], Parsed[T] | Unparsed | None]


def bracketed(own: str, read: Reader[T]) -> list[Vote[T]]:
    """Return the votes in double brackets; `read` says None for what is no vote."""
    votes = []
    for mark in _BRACKETS.finditer(own):
        value = read(mark[1].strip())
        if value is None:
            continue
        rest = own[mark.end() : mark.end() + 40].lstrip("\"'”’*_)`")
        if _CONDITION.match(rest) or _CONDITION.match(own, mark.end()):
            value = A_RULE
        whole = not rest.partition("\n")[0].strip() or bool(re.match(r"[.!](?:[\"'”’*_)]*(?:\s|$))", rest))
        votes.append(Vote(mark.start(), mark.end(), value, whole))
    return votes


def last_bracketed(own: str, votes: list[Vote[T]], *, whole: bool = False) -> Vote[T] | None:
    """Return the last vote, or the last that closes its sentence if it has to be `whole`.

    It has no value if its sentence holds another one, or if it only ends a list of rules ("[[A]] if …, else [[B]]").
    """
    at = max((k for k, vote in enumerate(votes) if vote.whole or not whole), default=None)
    if at is None:
        return None
    last = votes[at]
    start, end = sentence(own, last.start)
    if any(vote.value != last.value for vote in votes if start <= vote.start < end):
        return Vote(last.start, last.end, DIFFER, last.whole)
    if at and votes[at - 1].value == A_RULE and "\n\n" not in own[votes[at - 1].end : last.start]:
        own_label = any(label.end() == start for label in ANY_LABEL.finditer(own, 0, last.start))
        return last if own_label else Vote(last.start, last.end, A_RULE, last.whole)
    return last


def sentence(own: str, at: int) -> tuple[int, int]:
    """Return start and end of the sentence around `at`; a label begins a new one."""
    breaks = [found.end() for found in _BREAK.finditer(own, 0, at)]
    labels = [found.end() for found in ANY_LABEL.finditer(own, 0, at)]
    after = _BREAK.search(own, at)
    return max([0, *breaks, *labels]), after.start() if after else len(own)


def labelled(own: str, words: str, read: Callable[[str], Parsed[T] | Unparsed]) -> Vote[T] | None:
    """Return the last vote of the form `Label: value`, the value being all the rest of the line, or the next line."""
    label = None
    for label in re.finditer(_LABEL % words, own, re.IGNORECASE | re.MULTILINE):  # noqa: B007
        pass
    if label is None:
        return None
    end = own.find("\n", label.end())
    end = len(own) if end < 0 else end
    rest = own[label.end() : end]
    if not rest.strip(" \t*_`\"'"):
        rest = own[end:].lstrip("\n \t").partition("\n")[0]
    return Vote(label.start(), end, read(rest))
