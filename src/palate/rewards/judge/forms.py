"""What judge and rater share: the prompt's pieces, fencing, and the forms of a reply."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from palate.records import Answer, Message

VERDICT_FORM = (
    'Reply with a JSON object and nothing else: {"reason": "<one or two sentences>", "verdict": "A", "B" or "tie"}'
)
LETTER_FORM = "Reply with one letter and nothing else: A or B."
SCORE_FORM = 'Reply with a JSON object and nothing else: {"reason": "<one or two sentences>", "score": <a number>}'
VERDICT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"type": "string", "enum": ["A", "B", "tie"]}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
SCORE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "number"}},
    "required": ["reason", "score"],
    "additionalProperties": False,
}
_PARTED = str.maketrans({"[": "[ ", "]": " ]", ":": " -", "=": " -"})
_VOTE = re.compile(
    r"\[\[\s*(?:[ABC]|tie|[0-9.]{1,4}|[AB][<>=]+[AB])\s*\]\]"
    r"|\b(?:final )?(?:verdict|result|score)[\"'*_\s]*[:=]\s*\W{0,3}"
    r"(?:(?:answer |response |option )?(?:(?-i:[AB])\b|[ab](?=\W*$))|tie\b|\d)",
    re.IGNORECASE | re.MULTILINE,
)
UNSTABLE = "unstable: repeats disagree"


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


def flags(answers: Sequence[Answer]) -> list[str]:
    """Return a note for each answer that holds something of the form of a verdict."""
    return [f"{a.role} holds text of the form of a verdict" for a in answers if _VOTE.search(a.text)]
