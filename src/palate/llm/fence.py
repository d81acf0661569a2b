"""Putting somebody else's text into a prompt: fenced by a mark that it does not hold, and without form of a vote."""

import hashlib
import re
from collections.abc import Sequence

from palate.records import Message

_PARTED = str.maketrans({"[": "[ ", "]": " ]", ":": " -", "=": " -"})
_VOTE = re.compile(
    r"\[\[\s*(?:[ABC]|tie|[0-9.]{1,4}|[AB][<>=]+[AB])\s*\]\]"
    r"|\b(?:final )?(?:verdict|result|score)[\"'*_\s]*[:=]\s*\W{0,3}"
    r"(?:(?:answer |response |option )?(?:(?-i:[AB])\b|[ab](?=\W*$))|tie\b|\d)",
    re.IGNORECASE | re.MULTILINE,
)


def conversation(messages: Sequence[Message]) -> str:
    """Return chat turns as text; a single turn as it is."""
    if len(messages) == 1:
        return messages[0].content
    return "\n\n".join(f"{m.role.capitalize()}: {m.content}" for m in messages)


def mark(*texts: str) -> str:
    """Return eight hex digits that stand in none of `texts`, so that no answer can close its own fence."""
    number = 0
    while True:
        found = hashlib.sha256("\0".join((str(number), *texts)).encode()).hexdigest()[:8]
        if not any(found in text for text in texts):
            return found
        number += 1


def defused(text: str) -> str:
    """Return an answer in which nothing has the form of a verdict: its marks are parted by a space."""
    return _VOTE.sub(lambda hit: hit[0].translate(_PARTED), text)


def holds_vote(text: str) -> bool:
    """Whether an answer holds something of the form of a verdict."""
    return bool(_VOTE.search(text))
