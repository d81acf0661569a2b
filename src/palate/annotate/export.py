"""From the book to rows: one JSON object a finished step, read as of one moment, also while people work."""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.annotate.book import connect
from palate.annotate.fields import CRITERIA, SEATS
from palate.annotate.study import study_book
from palate.errors import RunError
from palate.store import dump

ROWS = "annotations.jsonl"


@dataclass(frozen=True, slots=True)
class Exported:
    """How many rows were written, and how many steps were left out because they have some answers only, or none."""

    rows: int
    unfinished: int
    unbegun: int


@dataclass(frozen=True, slots=True)
class Status:
    """How far one annotator is.

    `begun` items have an open step; `passed` of `checked` attention items were answered as expected; `corrected` steps
    were opened again, `after_rubric` of them step one when the rubric had been seen.
    """

    annotator: str
    items: int
    done: int
    begun: int
    checked: int
    passed: int
    corrected: int
    after_rubric: int


def export_rows(folder: Path | str, out: Path | str | None = None, *, partial: bool = False) -> Exported:
    """Write the rows of a study to a file.

    A row is `{item_id, annotator, step, seats, …, attention, passed, started, finished}`. A finished step that is open
    for correction counts as it was finished. What was not given is absent.

    Args:
        folder: of the study.
        out: the file, replaced in one step; default `annotations.jsonl` in the study's folder; `-` is standard output.
        partial: also write steps that were begun but never finished; they have no `finished`.

    Raises:
        RunError: no study, or `out` is no file that can be written.
    """
    path = Path(folder)
    counts = {True: 0, False: 0}
    with _snapshot(study_book(path)) as db:
        planned = db.execute("SELECT sum(steps) FROM task").fetchone()[0] or 0
        with _target(path / ROWS if out is None else Path(out)) as handle:
            for row in _rows(db):
                counts["finished" in row] += 1
                if partial or "finished" in row:
                    handle.write(dump(row) + "\n")
    written = counts[True] + (counts[False] if partial else 0)
    return Exported(written, 0 if partial else counts[False], planned - counts[True] - counts[False])


def read_status(folder: Path | str) -> list[Status]:
    """Return how far each annotator is."""
    with _snapshot(study_book(Path(folder))) as db:
        counts = """SELECT a.id, a.name, count(t.number), coalesce(sum(t.done), 0), (SELECT count(DISTINCT number)
            FROM step WHERE annotator = a.id AND open = 1) FROM annotator a LEFT JOIN task t ON t.annotator = a.id
            GROUP BY a.id ORDER BY a.id"""
        events = "SELECT annotator, event, count(*) FROM log GROUP BY annotator, event"
        logged = {(who, event): n for who, event, n in db.execute(events)}
        checks: dict[str, list[bool]] = {}
        for row in _rows(db):
            if row["attention"] and row["step"] == 1 and row["passed"] is not None:
                checks.setdefault(row["annotator"], []).append(row["passed"])
        found = []
        for who, name, items, done, begun in db.execute(counts):
            late = logged.get((who, "corrected after rubric"), 0)
            mine = checks.get(name, [])
            corrected = logged.get((who, "corrected"), 0) + late
            found.append(Status(name, items, done, begun, len(mine), sum(mine), corrected, late))
        return found


@contextmanager
def _snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(path)) as db:
        db.execute("PRAGMA query_only = ON")
        db.execute("BEGIN")
        yield db


@contextmanager
def _target(path: Path) -> Iterator[Any]:
    if str(path) == "-":
        yield sys.stdout
        return
    if path.is_dir():
        raise RunError(f"{path}: a folder. Name a file to write to.")
    if not path.parent.is_dir():
        raise RunError(f"{path}: the folder {path.parent} is not there.")
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as handle:
        yield handle
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(path)


def _rows(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    query = """SELECT a.name, t.annotator, t.number, t.item, t.first, s.step, s.started, s.finished, s.answers,
        sheet.attention, sheet.expected FROM annotator a JOIN task t ON t.annotator = a.id
        JOIN step s ON s.annotator = t.annotator AND s.number = t.number JOIN sheet ON sheet.item = t.item
        ORDER BY t.annotator, t.number, s.step"""
    given = "SELECT field, text FROM value WHERE annotator = ? AND number = ? AND step = ?"
    passed: bool | None = None
    for name, who, number, item, first, step, started, finished, answers, attention, expected in db.execute(query):
        values = json.loads(answers) if answers else dict(db.execute(given, (who, number, step)))
        if not values:
            continue  # the page was opened, no more
        seats = _seats(first)
        row = {"item_id": item, "annotator": name, "step": step, "seats": list(seats.values())}
        row |= _answers(step, values, seats)
        if step == 1:
            done = bool(attention and finished)
            passed = row.get("preference") == expected if done else None
        row |= {"attention": bool(attention), "passed": passed if attention else None, "started": started}
        if finished:
            row["finished"] = finished
        yield row


def _seats(first: str) -> dict[str, str]:
    return dict(zip(SEATS, ("chosen", "rejected") if first == "chosen" else ("rejected", "chosen"), strict=True))


def _answers(step: int, values: Mapping[str, str], seats: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in CRITERIA[step]:
        found = {seats[s]: int(values[f"{name}_{s}"]) for s in SEATS if f"{name}_{s}" in values}
        if found:
            row[name] = {side: found[side] for side in ("chosen", "rejected") if side in found}
    if step == 1:
        if "preference" in values:
            row["preference"] = seats.get(values["preference"], "none")
        row["comment"] = values.get("comment")
    else:
        row["comment"] = None
    return row
