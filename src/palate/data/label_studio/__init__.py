"""Label Studio: tasks out, and what people said there back as annotation rows.

Step one shows the history and asks for three ratings an answer and a preference; step two shows the rubric and asks
for the fit. Which answer has seat A follows from the item's id, so that it stands in no file that people see.
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from palate.data.formats.base import Id, fault
from palate.data.lines import BadLine, iter_array, parse_object
from palate.data.problems import Problems, explain
from palate.errors import DataError
from palate.records import Answer, Key, Query

GENERAL = ("factuality", "relevance", "helpfulness")
SIDES = ("chosen", "rejected")
NO_DIFFERENCE = "no difference"
NO_HISTORY = "(nothing)"
CONFIGS: Mapping[int, str] = {1: "one.xml", 2: "two.xml"}


def config(step: int) -> str:
    """Return the labelling configuration of a step, as XML."""
    return (files("palate.data.label_studio") / CONFIGS[step]).read_text(encoding="utf-8")


def seats(item_id: str) -> tuple[str, str]:
    """Return which side has seat A and which seat B: a coin that falls the same way for an item each time."""
    first = hashlib.sha256(f"seats\0{item_id}".encode()).digest()[0] % 2
    return (SIDES[first], SIDES[1 - first])


def task(query: Query, answers: tuple[Answer, ...], key: Key | None) -> dict[str, Any]:
    """Return the task of an item: of step two if there is a key, which is shown then instead of the history."""
    texts: dict[str, str] = {a.role: a.text for a in answers}
    first, second = seats(query.item_id)
    shown = {"history": _history(query)} if key is None else {"rubric": _rubric(key)}
    fields = {
        "item_id": query.item_id,
        "step": 1 if key is None else 2,
        **shown,
        "question": _question(query),
        "answer_a": texts[first],
        "answer_b": texts[second],
    }
    return {"data": fields}


def _question(query: Query) -> str:
    if len(query.turns) == 1:
        return query.turns[0].content
    return "\n\n".join(f"{turn.role}: {turn.content}" for turn in query.turns)


def _rubric(key: Key) -> str:
    return "\n".join(f"• {a.aspect}{': ' if a.reason else ''}{a.reason}" for a in key.aspects)


def _history(query: Query) -> str:
    blocks = query.context.blocks if query.context else ()
    return "\n\n".join(f"[{k}] {b.text}" for k, b in enumerate(blocks, 1)) or NO_HISTORY


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Person(_Read):
    id: int | None = None
    email: str | None = None


class _Result(_Read):
    from_name: str
    value: dict[str, Any]


class _Annotation(_Read):
    completed_by: int | str | _Person
    result: list[_Result]
    was_cancelled: bool = False
    created_at: str | None = None
    lead_time: float | None = None

    @property
    def annotator(self) -> str:
        if not isinstance(self.completed_by, _Person):
            return str(self.completed_by)
        found = self.completed_by.email or self.completed_by.id
        if found is None:
            raise fault("completed_by: neither 'email' nor 'id' tells who it was")
        return str(found)


class _Data(_Read):
    item_id: Id
    step: Literal[1, 2]


class _Task(_Read):
    data: _Data
    annotations: list[_Annotation]


def read_rows(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the annotation rows of a file that Label Studio exported as JSON, and how many were skipped by people.

    Raises:
        DataError: every task that cannot be read, by its number.
    """
    rows: list[dict[str, Any]] = []
    problems, skipped = Problems(), 0
    for number, found in _tasks(path, problems):
        for annotation in found.annotations:
            if annotation.was_cancelled:
                skipped += 1
                continue
            try:
                rows.append(_row(found.data, annotation))
            except ValueError as bad:
                problems.add(f"{path.name}, task {number}", str(bad))
    if problems.total:
        raise problems.error(path.name, "Export from a project of `palate data export --to label-studio`, as JSON.")
    return rows, skipped


def _tasks(path: Path, problems: Problems) -> Iterator[tuple[int, _Task]]:
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    try:
        for number, text in enumerate(iter_array(path), 1):
            row = parse_object(text.encode())
            try:
                yield number, _Task.model_validate(row)
            except ValidationError as bad:
                problems.extend(f"{path.name}, task {number}", explain(bad, row))
    except BadLine as bad:
        raise DataError(f"{path}: {bad}") from None


def _row(data: _Data, annotation: _Annotation) -> dict[str, Any]:
    sides = dict(zip(("A", "B"), seats(data.item_id), strict=True))
    said = {r.from_name: r.value for r in annotation.result}
    row: dict[str, Any] = {"item_id": data.item_id, "annotator": annotation.annotator, "step": data.step}
    row["seats"] = list(sides.values())
    for name in GENERAL if data.step == 1 else ("fit",):
        given = {side: _rating(said, f"{name}_{seat.lower()}") for seat, side in sides.items()}
        if any(given.values()):
            row[name] = {side: given[side] for side in SIDES if given[side]}
    if data.step == 1 and (choice := _one(said, "preference", "choices")) is not None:
        row["preference"] = "none" if choice == NO_DIFFERENCE else sides[_seat(choice)]
    row["comment"] = _one(said, "comment", "text")
    row |= {"attention": False, "passed": None}
    return row | _times(annotation)


def _rating(said: Mapping[str, Mapping[str, Any]], name: str) -> int | None:
    """Return a rating; 0 is how Label Studio writes that none was given."""
    value = said.get(name, {}).get("rating")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 5):
        raise ValueError(f"{name}: expected a rating of 1 to 5, found {value!r}")
    return value or None


def _one(said: Mapping[str, Mapping[str, Any]], name: str, field: str) -> str | None:
    value = said.get(name, {}).get(field)
    found = value[0] if isinstance(value, list) and len(value) == 1 else value
    if found is not None and not isinstance(found, str):
        raise ValueError(f"{name}: expected one text, found {value!r}")
    return found or None


def _seat(choice: str) -> str:
    if choice not in ("A", "B"):
        raise ValueError(f"preference: expected A, B or {NO_DIFFERENCE!r}, found {choice!r}")
    return choice


def _times(annotation: _Annotation) -> dict[str, str]:
    """Return when it was finished and, if the time it took was kept, when it was begun."""
    if annotation.created_at is None:
        return {}
    try:
        end = datetime.fromisoformat(annotation.created_at)
    except ValueError:
        raise ValueError(f"created_at: expected a date and time, found {annotation.created_at!r}") from None
    if annotation.lead_time is None:
        return {"finished": end.isoformat()}
    return {"started": (end - timedelta(seconds=annotation.lead_time)).isoformat(), "finished": end.isoformat()}
