"""`--dry-run`: how many calls each step would still take. Nothing is sent and nothing is written."""

from collections.abc import Mapping
from typing import Any

from palate.bon.api import GRADES, SCORES, live_of, to_grade
from palate.bon.curve import Scored, Table
from palate.bon.job import Job, Request, open_job
from palate.bon.samples import SAMPLES, sample_id, unsampled
from palate.bon.score import Scoring
from palate.grading import folder_name, grade_id, pending
from palate.records import Answer, Group, Message, Query
from palate.rewards import Rating
from palate.store import RowLog
from palate.views import View

STAND_IN = Query("", "question", (Message("user", "?"),), (Message("user", "?"),), None)
Row = Mapping[str, Any]


def estimate_best_of_n(request: Request) -> dict[str, Any]:
    """Return the steps, each with what it does how often and the calls that this takes at most.

    Samples that are not there yet are counted as if all of them will have a text, and calls that came back before a
    stop as if they had not.

    Raises:
        PalateError: bad strings, data or models.
    """
    job = open_job(request)
    samples, new = _samples(job)
    stages = [_stage("sample", job.policy.name if job.policy else "read from a file", len(new), len(new))]
    stages += [_plans(job, view) for view in job.plan_views]
    stages += [_scoring(job, one, samples) for one in job.scorings]
    stages += [_grading(job, samples)] if job.grader else []
    return {"stages": stages, "calls": sum(s["calls"] for s in stages)}


def _stage(stage: str, what: str, todo: int, calls: int) -> dict[str, Any]:
    return {"stage": stage, "what": what, "todo": todo, "calls": calls}


def _samples(job: Job) -> tuple[Mapping[str, Row], list[str]]:
    """Return the samples there are, with a stand-in for each that is to come, and the ids of these."""
    held: dict[str, Row] = {row["id"]: row for row in job.given}
    held |= RowLog(job.request.out / SAMPLES, mend=False).rows
    if job.policy is None:
        return held, []
    todo = {sample_id(*slot): slot[0] for slot in unsampled(held, job.ids, job.n, job.request.retry)}
    return held | {s: {"id": s, "item_id": i, "status": "ok", "text": "?"} for s, i in todo.items()}, list(todo)


def _plans(job: Job, view: View) -> dict[str, Any]:
    found = job.book.estimate(view, job.ids)
    return _stage("plan", view.planner, found["items"], found["calls"])


def _scoring(job: Job, one: Scoring, samples: Mapping[str, Row]) -> dict[str, Any]:
    todo = len(one.pending(job.request.out / SCORES, live_of(job, samples), job.request.retry))
    each = 0
    if isinstance(one.model, Rating):
        group = Group(STAND_IN, (Answer("", "", "?", "sample"),))
        each = one.view.draws * len(one.model.asks(group))
    return _stage("score", f"{one.system} · {one.view.label}", todo, todo * each)


def _grading(job: Job, samples: Mapping[str, Row]) -> dict[str, Any]:
    grader, r = job.grader, job.request
    assert grader is not None
    names = _graded(job, samples)
    ids = [grade_id(s, draw) for s in names for draw in range(r.repeats)]
    folder = r.out / GRADES / folder_name(grader, job.data.digest)
    todo = pending(folder, grader.reading, ids, r.retry)
    calls = sum(grader.calls_for(job.data.entries[samples[t.rpartition("|")[0]]["item_id"]].aspects) for t in todo)
    return _stage("grade", grader.client.endpoint.model, len(todo), calls)


def _graded(job: Job, samples: Mapping[str, Row]) -> list[str]:
    """Return what will be graded; of picks that are not known yet as many as there can be."""
    r = job.request
    scored, missing = [], 0
    for one in job.scorings:
        folder = r.out / SCORES / one.name
        rows = RowLog(folder / "rows.jsonl", mend=False).rows
        missing += len(one.pending(r.out / SCORES, live_of(job, samples)))
        scored.append(Scored(one.system, one.view.label, one.model.probe, rows, ""))
    table = Table(job.data, job.ids, job.n, job.ks, samples, scored, {}, r.repeats, r.unbiased)
    if r.unbiased or not missing:
        return to_grade(job, table)
    most = 1 + len(job.scorings) * sum(k > 1 for k in job.ks)
    counts: dict[str, int] = {}
    found = []
    for name in live_of(job, samples):
        item_id = samples[name]["item_id"]
        counts[item_id] = counts.get(item_id, 0) + 1
        if counts[item_id] <= most and job.data.entries[item_id].aspects:
            found.append(name)
    return found
