"""`best_of_n`: sample, score, grade, curve. Each step keeps what it did in one folder and goes on where it stopped."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from palate.bon.board import board_rows
from palate.bon.curve import Scored, Table, curve_of, picked, samples_of, scores_of
from palate.bon.job import Job, Request, open_job
from palate.bon.page import write_page
from palate.bon.samples import SAMPLES, answer_of, copied, is_live, sample_id, slots_of, unsampled
from palate.errors import RunError, Stopped
from palate.evaluation import Progress
from palate.grading import Task, folder_name, grade_id, make_grades
from palate.store import RowLog, RunFolder, counting, digest_of, drive

RECORD, CURVE, BOARD, SCORES, GRADES = "bon.json", "curve.json", "board.json", "scores", "grades"
Seen = Callable[[Progress], None]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BestOfN:
    """What came of it: the folder, its record, and the curve, None without a grader."""

    folder: Path
    record: Mapping[str, Any]
    curve: Mapping[str, Any] | None


def best_of_n(request: Request, seen: Seen | None = None) -> BestOfN:
    """Rank reward models by what they choose among N answers of a policy.

    Args:
        request: what to do, see `Request`.
        seen: told of progress.

    Raises:
        PalateError: bad strings, data or models.
        Stopped: interrupted or at a limit; the same request goes on from there.
    """
    job = open_job(request)
    tell = seen or (lambda _: None)
    folder = RunFolder(request.out)
    with folder:
        record = _record(job, folder)
        folder.write(RECORD, record | {"status": "running"})
        try:
            table = _work(job, folder, tell)
        except BaseException as end:
            folder.write(RECORD, record | {"status": "stopped"})
            if isinstance(end, KeyboardInterrupt):
                raise Stopped(f"stopped: {folder.path}. The same command goes on from here.") from None
            raise
        record |= _found(job, table)
        curve = _finish(job, folder, table, record)
        record |= {"status": "complete", "finished": _now()}
        folder.write(RECORD, record)
    return BestOfN(folder.path, record, curve)


def _work(job: Job, folder: RunFolder, tell: Seen) -> Table:
    samples = sample(job, folder, tell)
    scored = score(job, folder, samples, tell)
    r = job.request
    table = Table(job.data, job.ids, job.n, job.ks, samples, scored, {}, r.repeats, r.unbiased)
    return table if job.grader is None else _with_grades(table, grade(job, folder, table, tell))


def sample(job: Job, folder: RunFolder, tell: Seen) -> Mapping[str, Row]:
    """Make or take over what is missing of the samples; return all of them by id."""
    log = RowLog(folder.path / SAMPLES)
    names = [sample_id(*slot) for slot in slots_of(job.ids, job.n)]
    todo = unsampled(log.rows, job.ids, job.n, job.request.retry if job.policy else ())
    if job.policy is None:
        wanted = {sample_id(*slot) for slot in todo}
        held = [row["id"] for row in job.given if row["id"] in wanted and row["id"] not in log.rows]
        drive(log, held, lambda ids: copied(job.given, set(ids)), lambda _: None)
        return log.rows
    policy, told = job.policy, _teller(tell, f"samples of {job.policy.name}", len(names), len(todo))
    if todo:
        ids = [sample_id(*slot) for slot in todo]
        drive(log, ids, lambda _: policy.rows(job.data, job.ranker, todo), told)
    return log.rows


def score(job: Job, folder: RunFolder, samples: Mapping[str, Row], tell: Seen) -> list[Scored]:
    """Score what is missing, one reward model and view after the other."""
    for view in job.plan_views:
        job.book.make(view, job.ids, lambda *now: tell(Progress(*now)))
    live = live_of(job, samples)
    found = []
    for one in job.scorings:

        def told(done: int, total: int, before: int, name: str = one.name) -> None:
            tell(Progress(name, done, total, before))

        rows = one.run(folder.path / SCORES, samples, live, job.request.retry, told)
        found.append(Scored(one.system, one.view.label, one.model.probe, rows, f"{SCORES}/{one.name}"))
    return found


def grade(job: Job, folder: RunFolder, table: Table, tell: Seen) -> Mapping[str, Row]:
    """Grade what is missing: all samples with a text, or under first-k the picks, each once for all models."""
    grader = job.grader
    assert grader is not None
    names = to_grade(job, table)
    tasks = {grade_id(s, draw): (s, draw) for s in names for draw in range(job.request.repeats)}

    def make(name: str) -> Task:
        found, draw = tasks[name]
        answer = answer_of(table.samples[found])
        return Task(job.data.get(answer.item_id), job.data.key(answer.item_id), answer, draw)

    def told(done: int, total: int, before: int) -> None:
        tell(Progress(f"grades by {grader.client.endpoint.model}", done, total, before))

    where = folder.path / GRADES / folder_name(grader, job.data.digest)
    rows = make_grades(grader, where, job.data.digest, list(tasks), make, job.request.retry, told)
    return {name: rows[name] for name in tasks}


def to_grade(job: Job, table: Table) -> list[str]:
    """Return the samples that the curve needs graded, an item's together."""
    if not job.request.unbiased:
        return picked(table)
    wanted = set(table.graded_ids)
    return [s for s in live_of(job, table.samples) if table.samples[s]["item_id"] in wanted]


def live_of(job: Job, samples: Mapping[str, Row]) -> list[str]:
    """Return the samples that have a text, an item's together."""
    names = (sample_id(*slot) for slot in slots_of(job.ids, job.n))
    return [name for name in names if is_live(samples.get(name))]


def _with_grades(table: Table, grades: Mapping[str, Row]) -> Table:
    return replace(table, grades=grades)


def _finish(job: Job, folder: RunFolder, table: Table, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if job.grader is None:
        return None
    curve = curve_of(table) | {name: record[name] for name in ("data", "source", "grader", "warnings")}
    folder.write(CURVE, curve)
    folder.write(BOARD, {"format": 1, "rows": board_rows(curve, job.data.digest), "unread": []})
    write_page(folder.path, curve)
    return curve


def _found(job: Job, table: Table) -> dict[str, Any]:
    """Return what the record says of samples and scores, which needs no grades."""
    return {
        "samples": samples_of(table),
        "systems": [
            {"system": one.system, "view": one.view, "folder": one.folder, "scores": scores_of(table, one)}
            for one in table.scored
        ],
        "environment": dict(job.policy.environment) if job.policy else None,
    }


def _record(job: Job, folder: RunFolder) -> dict[str, Any]:
    old = folder.read(RECORD) or {}
    config = job.config
    known = old.get("config", {})
    differ = [name for name, value in config.items() if known and known.get(name) != value]
    if differ:
        raise RunError(f"{folder.path}: holds best-of-N with another {', '.join(differ)}. Use another --out.")
    r = job.request
    return {
        "digest": digest_of(config),
        "config": config,
        "data": {"name": job.data.name, "digest": job.data.digest, "notes": list(job.data.notes)},
        "source": job.source,
        "n": job.n,
        "ks": list(job.ks),
        "mode": "unbiased" if r.unbiased else "first-k",
        "repeats": r.repeats,
        "limit": r.limit,
        "grader": dict(job.grader.identity) if job.grader else None,
        "warnings": job.warnings,
        "started": old.get("started") or _now(),
        "finished": old.get("finished"),
    }


def _teller(tell: Seen, name: str, total: int, todo: int) -> Callable[[object], None]:
    return counting(lambda *counts: tell(Progress(name, *counts)), total, todo)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
