"""What annotators answered, in SQLite: every change is committed before the page hears that it is saved.

One connection writes, under a lock; readers have one each. `value` holds the present answers by seat, `step` what was
last finished, and `log` every change in order, also those that were made after a step was finished and opened again.
"""

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from palate.annotate.fields import Side, label, missing
from palate.annotate.sheets import Sheet
from palate.errors import PalateError

BUSY_SECONDS = 10.0
NOT_YET = "Step two opens when step one is finished."
SCHEMA = """
CREATE TABLE IF NOT EXISTS sheet(
  item TEXT PRIMARY KEY, attention INTEGER NOT NULL, expected TEXT, steps INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS annotator(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, added TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS task(
  annotator INTEGER NOT NULL, number INTEGER NOT NULL, item TEXT NOT NULL, first TEXT NOT NULL, steps INTEGER NOT NULL,
  done INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(annotator, number), UNIQUE(annotator, item)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS task_done ON task(annotator, done, number);
CREATE TABLE IF NOT EXISTS step(
  annotator INTEGER NOT NULL, number INTEGER NOT NULL, step INTEGER NOT NULL, started TEXT NOT NULL, finished TEXT,
  open INTEGER NOT NULL, answers TEXT, PRIMARY KEY(annotator, number, step)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS value(
  annotator INTEGER NOT NULL, number INTEGER NOT NULL, step INTEGER NOT NULL, field TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY(annotator, number, step, field)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log(
  id INTEGER PRIMARY KEY, at TEXT NOT NULL, annotator INTEGER NOT NULL, number INTEGER NOT NULL, step INTEGER NOT NULL,
  event TEXT NOT NULL, field TEXT, text TEXT);
"""


class Locked(PalateError):
    """A change to a step that is finished, or not open yet."""


class Incomplete(PalateError):
    """A step that cannot be finished; `fields` are missing."""

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(f"Still missing: {', '.join(map(label, fields))}.")
        self.fields = tuple(fields)


@dataclass(frozen=True, slots=True)
class Task:
    """One item of one annotator: its number in their order, which answer is A, how many steps, whether all is done."""

    annotator: int
    number: int
    item: str
    first: Side
    steps: int
    done: bool


@dataclass(frozen=True, slots=True)
class StepState:
    """One step as it stands: `finished` is the last time it was; `open` whether answers can change."""

    started: str | None = None
    finished: str | None = None
    open: bool = True
    values: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of an annotator's items are done."""

    done: int
    total: int


def connect(path: Path) -> sqlite3.Connection:
    """Open the book's file."""
    found = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    found.execute("PRAGMA journal_mode=WAL")
    found.execute("PRAGMA synchronous=FULL")
    return found


def now() -> str:
    """Return the present time, UTC, ISO."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Book:
    """The answers of a study. Safe to use from many threads; close it when done.

    Args:
        path: the SQLite file, made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._write_lock = threading.Lock()
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._writer = self._connect()
        self._writer.executescript(SCHEMA)

    def close(self) -> None:
        """Close all connections."""
        for found in self._all:
            found.close()

    def _connect(self) -> sqlite3.Connection:
        found = connect(self._path)
        self._all.append(found)
        return found

    @property
    def _reader(self) -> sqlite3.Connection:
        if not hasattr(self._local, "reader"):
            self._local.reader = self._connect()
        found: sqlite3.Connection = self._local.reader
        return found

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._write_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    # The study: sheets, annotators, who has what.

    def add_sheets(self, sheets: Iterable[Sheet]) -> None:
        """Keep the sheets of a new study, all or none."""
        with self._writing() as db:
            rows = ((s.item, s.expected is not None, s.expected, s.steps, s.as_json()) for s in sheets)
            db.executemany("INSERT INTO sheet VALUES (?, ?, ?, ?, ?)", rows)

    def items(self, *, attention: bool = False) -> dict[str, int]:
        """Return the ids of items and their number of steps: those of the study, or the attention items."""
        query = "SELECT item, steps FROM sheet WHERE attention = ? ORDER BY rowid"
        return dict(self._reader.execute(query, (attention,)))

    def sheet(self, item: str) -> Sheet:
        """Return what is shown of an item."""
        (body,) = self._reader.execute("SELECT body FROM sheet WHERE item = ?", (item,)).fetchone()
        return Sheet.from_json(body)

    def annotators(self) -> dict[str, int]:
        """Return the annotators' numbers by name, in the order they were added."""
        return dict(self._reader.execute("SELECT name, id FROM annotator ORDER BY id"))

    def held(self) -> dict[str, list[str]]:
        """Return which items each annotator has, attention items left out."""
        found: dict[str, list[str]] = {name: [] for name in self.annotators()}
        query = """SELECT name, item FROM task JOIN annotator ON annotator.id = task.annotator
            JOIN sheet USING(item) WHERE attention = 0"""
        for name, item in self._reader.execute(query):
            found[name].append(item)
        return found

    def finished_by(self) -> dict[str, int]:
        """Return how many annotators are done with each item."""
        return dict(self._reader.execute("SELECT item, count(*) FROM task WHERE done = 1 GROUP BY item"))

    def add_annotators(self, tasks: Mapping[str, Sequence[tuple[str, Side, int]]]) -> None:
        """Add annotators with their items in order: id, which answer is first, steps. All or none."""
        with self._writing() as db:
            for name, theirs in tasks.items():
                who = db.execute("INSERT INTO annotator(name, added) VALUES (?, ?)", (name, now())).lastrowid
                rows = ((who, n, item, first, steps) for n, (item, first, steps) in enumerate(theirs, 1))
                db.executemany("INSERT INTO task(annotator, number, item, first, steps) VALUES (?, ?, ?, ?, ?)", rows)

    # One annotator at work.

    def task(self, annotator: int, number: int) -> Task | None:
        """Return item `number` of an annotator, from 1; None if they have no such item."""
        query = "SELECT annotator, number, item, first, steps, done FROM task WHERE annotator = ? AND number = ?"
        row = self._reader.execute(query, (annotator, number)).fetchone()
        if row is None:
            return None
        who, place, item, first, steps, done = row
        return Task(who, place, item, first, steps, bool(done))

    def progress(self, annotator: int) -> Progress:
        """Return how far an annotator is."""
        query = "SELECT sum(done), count(*) FROM task WHERE annotator = ?"
        done, total = self._reader.execute(query, (annotator,)).fetchone()
        return Progress(done or 0, total)

    def next_number(self, annotator: int) -> int | None:
        """Return the first item that is not done, or None if all are."""
        query = "SELECT min(number) FROM task WHERE annotator = ? AND done = 0"
        (found,) = self._reader.execute(query, (annotator,)).fetchone()
        return found if found is None else int(found)

    def numbers(self, annotator: int, start: int, count: int) -> list[tuple[int, str]]:
        """Return `count` items from number `start` on, each `done`, `begun` or `new`."""
        query = """SELECT number, CASE WHEN done THEN 'done' WHEN EXISTS (SELECT 1 FROM step WHERE
            step.annotator = task.annotator AND step.number = task.number) THEN 'begun' ELSE 'new' END
            FROM task WHERE annotator = ? AND number >= ? ORDER BY number LIMIT ?"""
        return list(self._reader.execute(query, (annotator, start, count)))

    def state(self, task: Task) -> dict[int, StepState]:
        """Return both steps of an item as they stand."""
        return _state(self._reader, task)

    def begin(self, task: Task, step: int) -> None:
        """Note when the annotator first saw a step.

        Raises:
            Locked: step two while step one is not finished, or open for correction.
        """
        state = self.state(task)
        if step == 2 and state[1].open:
            raise Locked(NOT_YET)
        if state[step].started is None:
            with self._writing() as db:
                _begin(db, task, step)

    def save(self, task: Task, step: int, values: Mapping[str, str | None]) -> None:
        """Keep answers; a None takes one back.

        Raises:
            Locked: the step is finished, or not open yet.
        """
        with self._writing() as db:
            _unlocked(_state(db, task), step)
            _save(db, task, step, values)

    def finish(self, task: Task, step: int, values: Mapping[str, str | None]) -> bool:
        """Keep answers and finish the step if it is complete; return whether the item is done now.

        Sending the same form twice does no harm.

        Raises:
            Locked: the step is finished with other answers, or not open yet.
            Incomplete: something is missing; what was given is kept.
        """
        with self._writing() as db:
            before = _state(db, task)[step]
            if before.open or any(before.values.get(f) != v for f, v in values.items()):
                _unlocked(_state(db, task), step)
                _save(db, task, step, values)
            state = _state(db, task)[step]
            gaps = missing(step, state.values)
            if not gaps and state.open:
                _finish(db, task, step, state.values)
        if gaps:
            raise Incomplete(gaps)
        return all(not s.open for s in self.state(task).values())

    def correct(self, task: Task, step: int) -> None:
        """Open a finished step again; the log says so, and whether the rubric had been seen.

        Raises:
            Locked: step two while step one is open.
        """
        with self._writing() as db:
            state = _state(db, task)
            if step == 2 and state[1].open:
                raise Locked(NOT_YET)
            if state[step].open:
                return
            seen = step == 1 and task.steps == 2 and state[2].started is not None
            where = (task.annotator, task.number)
            db.execute("UPDATE step SET open = 1 WHERE annotator = ? AND number = ? AND step = ?", (*where, step))
            db.execute("UPDATE task SET done = 0 WHERE annotator = ? AND number = ?", where)
            _log(db, task, step, "corrected after rubric" if seen else "corrected")


def _state(db: sqlite3.Connection, task: Task) -> dict[int, StepState]:
    where = (task.annotator, task.number)
    values: dict[int, dict[str, str]] = {1: {}, 2: {}}
    for step, name, text in db.execute("SELECT step, field, text FROM value WHERE annotator = ? AND number = ?", where):
        values[step][name] = text
    found = {step: StepState(values=values[step]) for step in range(1, task.steps + 1)}
    query = "SELECT step, started, finished, open FROM step WHERE annotator = ? AND number = ?"
    for step, started, finished, is_open in db.execute(query, where):
        found[step] = StepState(started, finished, bool(is_open), values[step])
    return found


def _unlocked(state: Mapping[int, StepState], step: int) -> None:
    if step == 2 and state[1].open:
        raise Locked(NOT_YET)
    if not state[step].open:
        raise Locked("This step is finished. To change it, choose “Correct these answers” first.")


def _begin(db: sqlite3.Connection, task: Task, step: int) -> None:
    row = (task.annotator, task.number, step, now())
    db.execute("INSERT OR IGNORE INTO step(annotator, number, step, started, open) VALUES (?, ?, ?, ?, 1)", row)


def _save(db: sqlite3.Connection, task: Task, step: int, values: Mapping[str, str | None]) -> None:
    _begin(db, task, step)
    for name, text in values.items():
        where = (task.annotator, task.number, step, name)
        if text is None:
            db.execute("DELETE FROM value WHERE annotator = ? AND number = ? AND step = ? AND field = ?", where)
        else:
            db.execute("INSERT OR REPLACE INTO value VALUES (?, ?, ?, ?, ?)", (*where, text))
        _log(db, task, step, "saved", name, text)


def _finish(db: sqlite3.Connection, task: Task, step: int, values: Mapping[str, str]) -> None:
    where = (task.annotator, task.number)
    answers = json.dumps(dict(values), ensure_ascii=False)
    db.execute(
        "UPDATE step SET open = 0, finished = ?, answers = ? WHERE annotator = ? AND number = ? AND step = ?",
        (now(), answers, *where, step),
    )
    query = "SELECT count(*) FROM step WHERE annotator = ? AND number = ? AND open = 0"
    (closed,) = db.execute(query, where).fetchone()
    db.execute("UPDATE task SET done = ? WHERE annotator = ? AND number = ?", (closed == task.steps, *where))
    _log(db, task, step, "finished")


def _log(
    db: sqlite3.Connection, task: Task, step: int, event: str, name: str | None = None, text: str | None = None
) -> None:
    row = (now(), task.annotator, task.number, step, event, name, text)
    db.execute("INSERT INTO log(at, annotator, number, step, event, field, text) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
