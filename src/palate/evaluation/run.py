"""One run: one reward model × one view × one data set, in a folder that can be resumed."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from palate.data import Dataset
from palate.errors import ClusterError, ModelError, RunError, Stopped
from palate.evaluation.asked import FORGET, AskedVerdicts, count_asks
from palate.evaluation.grading import settle_again
from palate.evaluation.measure import SCORE_GRADE, grade_digest, measure
from palate.evaluation.verdicts import Verdicts
from palate.llm.secrets import masked_spec
from palate.rewards import AskedModel, RewardModel
from palate.rewards.judge.kin import kinship
from palate.spec import SERVED, Spec, short_model, slug
from palate.store import RowLog, RunFolder, counting, digest_of, drive, unfinished
from palate.views import PROMPT_DIGESTS, Looker, View

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: items done of all, and how many of these were there before."""

    run: str
    done: int
    total: int
    before: int


Seen = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What one run needs.

    `model` is its string without secrets (`shown_model`). `about` says what its context was made with: `k`,
    `retriever`, and of plans `planner`.
    """

    data: Dataset
    looker: Looker
    model: str
    scorer: RewardModel
    view: View
    about: Mapping[str, Any]
    protocol: str

    @property
    def config(self) -> dict[str, Any]:
        """All that decides the numbers; the digest is made of this."""
        view, data = self.view, self.data
        return {
            "format": FORMAT,
            "model": dict(self.scorer.identity),
            "view": str(view),
            **self.about,
            "seed": view.seed if view.user == "other" else None,
            "data": {"digest": data.digest, "skipped": data.skipped},
            "prompts": PROMPT_DIGESTS if view.name != "question" else {},
        }

    @property
    def grade(self) -> Mapping[str, Any]:
        """How verdicts come of scores or replies."""
        return self.scorer.grade if isinstance(self.scorer, AskedModel) else SCORE_GRADE

    @property
    def warnings(self) -> list[str]:
        """What a reader has to know of model and data together."""
        if not isinstance(self.scorer, AskedModel):
            return []
        found = kinship(self.scorer.name, self.data.generators)
        return [found] if found else []

    def prepare(self) -> None:
        """Load the model or look for its server's key, so that one that cannot be used leaves no folder behind."""
        if isinstance(self.scorer, AskedModel):
            _ = self.scorer.client.endpoint.key
        else:
            self.scorer.prepare()

    def step(self, folder: RunFolder, log: RowLog) -> Callable[[Sequence[str]], Iterable[Mapping[str, Any]]]:
        """Return what turns ids into rows."""
        if isinstance(self.scorer, AskedModel):
            calls = RowLog(folder.calls, forget=FORGET)
            return AskedVerdicts(self.data, self.looker, self.scorer, self.view, calls, log.rows).rows
        return Verdicts(self.data, self.looker, self.scorer, self.view).rows

    @property
    def name(self) -> str:
        """The folder's name: model, view, data, and the first eight digits of the digest."""
        parts = (short_model(self.scorer.name), self.view.name, self.data.name, digest_of(self.config)[:8])
        return "--".join(map(slug, parts))


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run came to: its folder, its record, the figures of the items asked for, and all rows."""

    folder: Path
    record: Mapping[str, Any]
    metrics: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]


def run_job(
    job: Job,
    out: Path,
    ids: Sequence[str],
    by: Sequence[str],
    retry: Collection[str],
    fresh: bool,
    seen: Seen | None,
) -> Finished:
    """Do what is missing of a run and write its record and metrics.

    A run that has more items already keeps them in its files; the figures returned are of `ids`.

    Raises:
        RunError: the folder is locked, damaged, or holds another configuration.
        ModelError: the model cannot be used; no folder is made for it.
        Stopped: interrupted; what is done is kept.
    """
    folder = RunFolder(out / job.name)
    if fresh or not folder.rows.exists():
        job.prepare()
    with folder, folder.gone_if(ModelError, ClusterError):
        if fresh:
            folder.set_aside()
        _same(folder, job)
        graded_anew(folder, job)
        log = RowLog(folder.rows)
        todo = unfinished(log, ids, retry)
        held = job.data.ids[: max(len(ids), _complete(folder, job))]
        record = _record(job, folder, len(held))
        if todo:
            folder.write_record(record | {"status": "running"})
            record = _work(job, folder, log, todo, record, _teller(job, len(ids), len(todo), seen))
        elif seen:
            seen(Progress(job.name, len(ids), len(ids), len(ids)))
        metrics = measure(job.data, log.rows, ids, by, job.grade)
        folder.write_metrics(metrics if len(held) == len(ids) else measure(job.data, log.rows, held, by, job.grade))
        record |= {"status": "complete"}
        folder.write_record(record)
    return Finished(folder.path, record, metrics, log.rows)


def _work(
    job: Job,
    folder: RunFolder,
    log: RowLog,
    todo: Sequence[str],
    record: dict[str, Any],
    tell: Callable[[object], None],
) -> dict[str, Any]:
    """Do `todo` and return the record as it is then; whatever ends the work early leaves it as stopped."""
    try:
        drive(log, todo, job.step(folder, log), tell)
    except BaseException as end:
        folder.write_record(record | {"status": "stopped", "environment": _environment(job)})
        if isinstance(end, KeyboardInterrupt):
            raise Stopped(f"stopped: {job.name}. The same command goes on from here.") from None
        raise
    now = _environment(job)
    before = [record["environment"]] if record["environment"] not in (None, now) else []
    return record | {
        "environment": now,
        "earlier_environments": record["earlier_environments"] + before,
        "finished": _now(),
    }


def _complete(folder: RunFolder, job: Job) -> int:
    """Return how many of the first items a finished run in this folder was about."""
    record = folder.record()
    if record is None or record.get("status") != "complete":
        return 0
    return record.get("limit") or len(job.data)


def _teller(job: Job, total: int, todo: int, seen: Seen | None) -> Callable[[object], None]:
    return counting(seen and (lambda *counts: seen(Progress(job.name, *counts))), total, todo)


def estimate_job(job: Job, out: Path, ids: Sequence[str]) -> dict[str, Any]:
    """Return how many calls a run would still take, and about how many tokens they send."""
    folder = RunFolder(out / job.name)
    rows = RowLog(folder.rows, mend=False)
    todo = unfinished(rows, ids)
    log = RowLog(folder.calls, mend=False, forget=FORGET)
    calls, tokens = count_asks(job.data, job.looker, job.scorer, job.view, log, rows.rows, todo)
    return {
        "model": job.model,
        "view": job.view.label,
        "items": len(todo),
        "calls": calls,
        "tokens": tokens,
    }


def graded_anew(folder: RunFolder, job: Job) -> None:
    """Decide the stored replies again if another parser or tie rule is asked for than some rows were made with."""
    if not isinstance(job.scorer, AskedModel):
        return
    wanted = grade_digest(job.grade)
    found = {row.get("grade", wanted) for row in RowLog(folder.rows).rows.values()} - {wanted}
    if found:
        settle_again(folder, job.data, job.looker, job.scorer, job.view, min(found))


def _same(folder: RunFolder, job: Job) -> None:
    record = folder.record()
    if record is None:
        return
    known = record.get("config", {})
    differ = [name for name, value in job.config.items() if known.get(name) != value]
    if differ:
        raise RunError(f"{folder.path}: holds a run with another {', '.join(differ)}. Use another --out, or --fresh.")


def _record(job: Job, folder: RunFolder, count: int) -> dict[str, Any]:
    old = folder.record() or {}
    config = job.config
    return {
        "digest": digest_of(config),
        "config": config,
        "model": job.model,
        "data": {
            "spec": str(job.data.spec),
            "name": job.data.name,
            "revision": job.data.revision,
            "format": job.data.format,
            "notes": list(job.data.notes),
        },
        "protocol": job.protocol,
        "warnings": job.warnings,
        "limit": count if count < len(job.data) else None,
        "started": old.get("started") or _now(),
        "finished": old.get("finished"),
        "environment": old.get("environment"),
        "earlier_environments": old.get("earlier_environments", []),
    }


def shown_model(text: str) -> str:
    """Return a model string as it may be written down: the server's address in it without secrets."""
    served = text.strip().startswith(f"{SERVED}/") or "base_url=" in text
    return str(masked_spec(Spec.parse(text, "model"))) if served else text


def _environment(job: Job) -> dict[str, Any]:
    return {"python": sys.version.split()[0], **job.scorer.environment}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
