"""What judge and rater share: the forms of a reply, and what is told of answers that hold one."""

from collections.abc import Mapping, Sequence
from typing import Any

from palate.llm.fence import conversation as conversation
from palate.llm.fence import defused as defused
from palate.llm.fence import holds_vote
from palate.llm.fence import mark as mark
from palate.records import Answer

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
UNSTABLE = "unstable: repeats disagree"


def flags(answers: Sequence[Answer]) -> list[str]:
    """Return a note for each answer that holds something of the form of a verdict."""
    return [f"{a.role} holds text of the form of a verdict" for a in answers if holds_vote(a.text)]
