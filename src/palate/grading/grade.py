"""What is graded, and what it comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palate.records import Answer, Item, Key, Status


@dataclass(frozen=True, slots=True)
class Task:
    """One answer to be graded on its item's true aspects; `draw` counts separate gradings of the same answer."""

    item: Item
    key: Key | None
    answer: Answer
    draw: int = 0

    @property
    def id(self) -> str:
        """The grade's name: the answer's, and the number of the draw."""
        return grade_id(self.answer.id, self.draw)


@dataclass(frozen=True, slots=True)
class Grade:
    """How well an answer serves its user: `value` from 0 to 1 if and only if `status` is `ok`.

    `aspects` are the 0, 1 or 2 of each true aspect in the key's order, None where a reply has none.
    """

    id: str
    status: Status
    value: float | None
    aspects: tuple[int | None, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert (self.status == "ok") == (self.value is not None), "only an ok grade carries a number"


def grade_id(answer_id: str, draw: int) -> str:
    """Return the name of a grade."""
    return f"{answer_id}|{draw}"


def grade_row(task: Task, grade: Grade, calls: Sequence[str], tries: int, reading: str) -> Mapping[str, Any]:
    """Return the line of `grades.jsonl`; `reading` is the digest of how replies were read."""
    row: dict[str, Any] = {
        "id": grade.id,
        "answer": task.answer.id,
        "item_id": task.item.id,
        "draw": task.draw,
        "status": grade.status,
        "value": grade.value,
        "aspects": list(grade.aspects),
        "notes": list(grade.notes),
        "calls": sorted(calls),
        "reading": reading,
    }
    return row | ({"tries": tries} if tries > 1 else {})
