"""Twins: two users of one domain whose rubrics are opposed on one question.

Candidates come by topic: who asks the same question, else who asks about the same things. Whether two rubrics are
opposed on the question is for a model to say, strictly: opposed, not, cannot tell. Each item is used once at most.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palate.build.models import WRITER, Model
from palate.build.rounds import Book, Row
from palate.data import Dataset
from palate.grading.judged import aspect_text, read_choice
from palate.llm import load_prompt
from palate.llm.client import Ask
from palate.llm.replies import Unparsed
from palate.records import Key
from palate.retrieval.bm25 import content_words
from palate.rewards.judge.forms import conversation

PROMPT = load_prompt("palate.build", "opposed", ("question", "first", "second"))
CANDIDATES = 3
VERDICTS = ("opposed", "not", "cannot tell")
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"type": "string", "enum": list(VERDICTS)}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Couple:
    """Two items that may become twins: the first one's question is asked."""

    name: str
    first: str
    second: str


def couple_of(first: str, second: str) -> Couple:
    """Return two items as a candidate."""
    return Couple(f"{first}~{second}", first, second)


def candidates(data: Dataset, ids: Sequence[str]) -> list[Couple]:
    """Return for each item up to three others to compare with, best first; the same question asked by two comes once.

    Args:
        data: where they are.
        ids: items that have a usable key.
    """
    by_domain: dict[str, list[_Topic]] = {}
    for item_id in ids:
        entry = data.entries[item_id]
        words = frozenset(content_words(data.get(item_id).question))
        by_domain.setdefault(entry.domain, []).append(
            _Topic(item_id, entry.unit, entry.prints[0], entry.category, words)
        )
    found: dict[str, Couple] = {}
    for topics in by_domain.values():
        for topic in topics:
            for other in _nearest(topic, topics):
                if other.question == topic.question and couple_of(other.id, topic.id).name in found:
                    continue
                couple = couple_of(topic.id, other.id)
                found[couple.name] = couple
    order = {item_id: k for k, item_id in enumerate(ids)}
    return sorted(found.values(), key=lambda c: order[c.first])


@dataclass(frozen=True, slots=True)
class _Topic:
    id: str
    unit: str
    question: bytes
    category: str | None
    words: frozenset[str]


def _nearest(topic: _Topic, topics: Sequence[_Topic]) -> Iterator[_Topic]:
    others = [t for t in topics if t.unit != topic.unit]
    same = [t for t in others if t.question == topic.question]
    if same:
        yield from same[:CANDIDATES]
        return
    ranked = sorted(((_likeness(topic, t), -k) for k, t in enumerate(others)), reverse=True)
    yield from (others[-k] for share, k in ranked[:CANDIDATES] if share > 0)


def _likeness(one: _Topic, other: _Topic) -> float:
    union = one.words | other.words
    overlap = len(one.words & other.words) / len(union) if union else 0.0
    return overlap + (0.1 if one.category is not None and one.category == other.category else 0.0)


def ask(data: Dataset, couple: Couple, key_of: Callable[[str], Key], writer: Model) -> Ask:
    """Return the question whether two users want opposite answers to the first one's question."""
    text = PROMPT.fill(
        question=conversation(data.get(couple.first).messages),
        first=wishes(key_of(couple.first)),
        second=wishes(key_of(couple.second)),
    )
    return writer.how.ask(couple.first, f"opposed|{couple.second}", text, SCHEMA)


def compare(data: Dataset, couple: Couple, key_of: Callable[[str], Key], writer: Model, book: Book) -> Row:
    """Return the row of a candidate: `opposed` is the verdict, or None with a status and the reason."""
    [call] = book.take(WRITER, [ask(data, couple, key_of, writer)])
    row: Row = {"id": couple.name, "status": call.status, "opposed": None, "reason": call.note}
    if call.status != "ok":
        return row
    found = read_choice(call.text or "", "verdict", VERDICTS)
    if isinstance(found, Unparsed):
        return row | {"status": "unparsed", "reason": found.reason}
    return row | {"opposed": found}


def matched(couples: Sequence[Couple], rows: Mapping[str, Mapping[str, Any]]) -> list[Couple]:
    """Return the couples that are opposed, in order, each item in one at most."""
    used: set[str] = set()
    kept = []
    for couple in couples:
        row = rows.get(couple.name)
        if row is not None and row.get("opposed") == "opposed" and not used & {couple.first, couple.second}:
            used |= {couple.first, couple.second}
            kept.append(couple)
    return kept


def wishes(key: Key) -> str:
    """Return a key's aspects as a numbered list, without their evidence."""
    return "\n".join(f"{k}. {aspect_text(a)}" for k, a in enumerate(key.aspects, 1))
