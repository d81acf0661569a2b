"""The rubric that a pair is built on: the item's own aspects, or aspects that a model finds in its narrative.

An aspect counts only with evidence. One that a model finds must quote the narrative literally, or it is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palate.build.models import WRITER, Model
from palate.build.rounds import Book, Row
from palate.data import Dataset
from palate.llm import load_prompt
from palate.llm.client import Ask
from palate.llm.replies import Unparsed, read_object
from palate.records import Aspect, Key
from palate.rewards.judge.forms import conversation

PROMPT = load_prompt("palate.build", "aspects", ("question", "narrative", "most"))
MOST = 6
FIELDS = ("aspect", "evidence", "reason")
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "aspects": {
            "type": "array",
            "maxItems": MOST,
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in FIELDS},
                "required": list(FIELDS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["aspects"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A usable key, or why there is none; `refused` are the aspects that were left out, and why."""

    key: Key | None
    reason: str | None = None
    refused: tuple[tuple[str, str], ...] = ()


class Keys:
    """Gives each item's usable key: its own, or the one that `rows` (of `keys.jsonl`) hold."""

    def __init__(self, data: Dataset, rows: Mapping[str, Mapping[str, Any]], derive: bool) -> None:
        self._data = data
        self._rows = rows
        self._derive = derive

    def to_derive(self, ids: Sequence[str]) -> list[str]:
        """Return the items that have a narrative but no aspects."""
        return [i for i in ids if self._derive and self._narrative(i) is not None]

    def of(self, item_id: str) -> Wanted:
        """Return the key of an item with all aspects that have evidence, or why it has none."""
        key, row = self._data.key(item_id), self._rows.get(item_id)
        if key is None:
            return Wanted(None, "the item has no key: no rubric aspects and no narrative")
        if not key.aspects and row is None:
            return Wanted(None, _without(key, self._derive))
        if row is not None and not key.aspects:
            if row["status"] != "ok":
                return Wanted(None, f"no aspects from the narrative: {row['reason']}", _pairs(row))
            derived = tuple(Aspect(**a) for a in row["aspects"])
            return Wanted(Key(item_id, derived, key.narrative), None, _pairs(row))
        held = tuple(a for a in key.aspects if a.evidence.strip())
        refused = tuple((a.aspect, "an aspect without evidence") for a in key.aspects if not a.evidence.strip())
        if not held:
            return Wanted(None, "no aspect of its rubric has evidence", refused)
        return Wanted(Key(item_id, held, key.narrative), None, refused)

    def _narrative(self, item_id: str) -> str | None:
        if self._data.entries[item_id].aspects:
            return None
        key = self._data.key(item_id)
        return key.narrative if key is not None and (key.narrative or "").strip() else None

    def ask(self, item_id: str, writer: Model) -> Ask:
        """Return the question about an item's narrative."""
        item = self._data.get(item_id)
        narrative = self._narrative(item_id) or ""
        text = PROMPT.fill(question=conversation(item.messages), narrative=narrative, most=str(MOST))
        return writer.how.ask(item_id, "key", text, SCHEMA)

    def derive(self, item_id: str, writer: Model, book: Book) -> Row:
        """Return the row of an item's derived aspects."""
        ask = self.ask(item_id, writer)
        [call] = book.take(WRITER, [ask])
        if call.status != "ok":
            return {"id": item_id, "status": call.status, "reason": call.note, "aspects": [], "refused": []}
        found = read_aspect_list(call.text or "")
        if isinstance(found, Unparsed):
            return {"id": item_id, "status": "unparsed", "reason": found.reason, "aspects": [], "refused": []}
        narrative = self._narrative(item_id) or ""
        faults = [(a, _fault(a, narrative)) for a in found[:MOST]]
        held = [{name: getattr(a, name) for name in FIELDS} for a, fault in faults if fault is None]
        refused = [[a.aspect, fault] for a, fault in faults if fault is not None]
        reason = None if held else "no aspect had literal evidence"
        status = "ok" if held else "no_context"
        return {"id": item_id, "status": status, "reason": reason, "aspects": held, "refused": refused}


def read_aspect_list(text: str) -> list[Aspect] | Unparsed:
    """Return the aspects that a reply's JSON object lists; all three texts of each must be there."""
    found = read_object(text)
    if isinstance(found, Unparsed):
        return found
    entries = found.get("aspects")
    if not isinstance(entries, list) or not entries:
        return Unparsed("no list of aspects")
    aspects = []
    for entry in entries:
        values = [entry.get(name) if isinstance(entry, dict) else None for name in FIELDS]
        if not all(isinstance(v, str) for v in values) or not str(values[0]).strip():
            return Unparsed("an aspect without title, evidence and reason")
        aspects.append(Aspect(*(" ".join(str(v).split()) for v in values)))
    return aspects


def is_quote(evidence: str, text: str) -> bool:
    """Whether `evidence` stands in `text` letter by letter, white space apart."""
    plain = " ".join(evidence.split()).strip('"“”')
    return bool(plain) and plain in " ".join(text.split())


def _fault(aspect: Aspect, narrative: str) -> str | None:
    if not aspect.evidence.strip():
        return "an aspect without evidence"
    return None if is_quote(aspect.evidence, narrative) else "its evidence is no literal quote of the narrative"


def _without(key: Key, derive: bool) -> str:
    if not (key.narrative or "").strip():
        return "its key is empty: no rubric aspects and no narrative"
    if derive:
        return "no aspects from the narrative: not asked yet"
    return "a narrative but no rubric aspects (--keys-from-narratives derives them)"


def _pairs(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(title), str(why)) for title, why in row["refused"])
