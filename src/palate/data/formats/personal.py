"""PersonalRewardBench rows: judged pairs of a user, whose train pairs become the history of the test pairs."""

from palate.data.formats.base import Id, Place, Record, Row, Turn, pair_of, reply, turns
from palate.records import Item, Post


class PersonalRow(Row):
    """One judged pair: `context` ends with the user's turn, `chosen` and `rejected` are turns."""

    user_id: Id
    context: list[Turn]
    chosen: Turn
    rejected: Turn
    id: Id | None = None
    split: str | None = None
    type: str | None = None


def build(row: PersonalRow, place: Place) -> Record:
    """Build a record without posts; the data set joins the user's train pairs as posts later."""
    messages = turns(row.context, "context")
    extra = row.unknown()
    if row.type is not None:
        extra["type"] = row.type
    item = Item(row.id or place.id, row.user_id, place.domain, row.type, messages, (), extra=extra)
    chosen, rejected = reply([row.chosen], messages, "chosen"), reply([row.rejected], messages, "rejected")
    return Record(item, pair_of(item.id, chosen, rejected), None, row.split or "test")


def as_post(record: Record) -> Post:
    """Return a judged pair as a post: an earlier choice."""
    chosen, rejected = record.answers
    return Post(record.item.id, chosen.text, record.item.category, None, record.item.question, rejected.text)
