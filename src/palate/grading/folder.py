"""A folder of grades: `grade.json` says what made them, `grades.jsonl` has a line a grade, `calls.jsonl` the exchanges.

What is there is not done again: missing grades and those with an `error` are made, others only on request. Grades that
were read in another way are read anew from the stored replies.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from palate.errors import RunError
from palate.grading.aspects import Grader
from palate.grading.grade import Task, grade_row
from palate.spec import slug
from palate.store import Counted, RowLog, RunFolder, counting, digest_of, drive, unfinished

RECORD, GRADES = "grade.json", "grades.jsonl"
FORGET = ("prompt",)
Make = Callable[[str], Task]


def folder_name(grader: Grader, data_digest: str) -> str:
    """Return the name of the folder of a grader's grades on some data."""
    return f"{slug(grader.client.endpoint.model)}--{digest_of(config_of(grader, data_digest))[:8]}"


def config_of(grader: Grader, data_digest: str) -> dict[str, Any]:
    """Return all that decides the grades."""
    return {"grader": dict(grader.identity), "data_digest": data_digest}


def pending(folder: Path, reading: str, names: Sequence[str], retry: Collection[str] = ()) -> list[str]:
    """Return the grades that have no row, a failed one, or one that was read in another way."""
    log = RowLog(folder / GRADES, mend=False)
    return _todo(log, reading, names, retry)


def _todo(log: RowLog, reading: str, names: Sequence[str], retry: Collection[str]) -> list[str]:
    again = set(unfinished(log, names, retry))
    return [n for n in names if n in again or log.rows[n]["reading"] != reading]


def make_grades(
    grader: Grader,
    folder: Path,
    data_digest: str,
    names: Sequence[str],
    make: Make,
    retry: Collection[str] = (),
    told: Counted | None = None,
) -> Mapping[str, Mapping[str, Any]]:
    """Make the grades that are missing in `folder`; return all of its rows by id.

    Args:
        grader: who grades.
        folder: made if it is not there.
        data_digest: of the data that the keys come from.
        names: ids of the tasks.
        make: returns the task of an id.
        retry: statuses to do again besides `error`, with other replies.
        told: gets (done, of how many, done before).

    Raises:
        RunError: the folder is damaged, or holds grades that were made otherwise.
        ModelError: the model cannot be used.
        Stopped: a limit is reached.
    """
    run, config = RunFolder(folder), config_of(grader, data_digest)
    folder.mkdir(parents=True, exist_ok=True)
    old = run.read(RECORD) or {}
    differ = [name for name, value in config.items() if old and old.get(name) != value]
    if differ:
        raise RunError(f"{folder}: holds grades made with another {', '.join(differ)}. Use another --out.")
    log = RowLog(folder / GRADES)
    todo = _todo(log, grader.reading, names, retry)
    if todo:
        run.write(RECORD, config | {"status": "running"})
        calls = RowLog(run.calls, forget=FORGET)
        drive(log, todo, _step(grader, log, calls, make, retry), counting(told, len(names), len(todo)))
    counts = dict(Counter(str(log.rows[n]["status"]) for n in names))
    environment = dict(grader.environment) if todo else old.get("environment")
    run.write(RECORD, config | {"status": "complete", "grades": counts, "environment": environment})
    return log.rows


def _step(
    grader: Grader, log: RowLog, calls: RowLog, make: Make, retry: Collection[str]
) -> Callable[[Sequence[str]], Iterator[Mapping[str, Any]]]:
    """Return what turns ids into rows: first those whose replies may be used again, then those to be asked anew."""

    def rows(todo: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        anew = [n for n in todo if n in log.rows and log.rows[n]["status"] in retry]
        kept = [n for n in todo if n not in set(anew)]
        for names, again in ((kept, False), (anew, True)):
            for task, grade, found in grader.grade(map(make, names), calls, again):
                tries = max((c.attempt for c in found.values()), default=1)
                yield grade_row(task, grade, list(found), tries, grader.reading)

    return rows
