"""One run: one reward model × one view × one data set, in a folder that can be resumed."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from palate.data import Dataset
from palate.errors import RunError, Stopped
from palate.evaluation.measure import measure
from palate.evaluation.verdicts import Verdicts
from palate.rewards import Scorer
from palate.spec import short_model, slug
from palate.store import RowLog, RunFolder, digest_of, drive, unfinished
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
    """What one run needs."""

    data: Dataset
    looker: Looker
    model: str
    scorer: Scorer
    view: View
    retriever: Mapping[str, Any] | None
    protocol: str

    @property
    def config(self) -> dict[str, Any]:
        """All that decides the numbers; the digest is made of this."""
        view, data = self.view, self.data
        return {
            "format": FORMAT,
            "model": self.scorer.name,
            "model_identity": dict(self.scorer.identity),
            "view": str(view),
            "k": view.k if view.reads_posts else None,
            "seed": view.seed if view.user == "other" else None,
            "data": {
                "name": data.name,
                "digest": data.digest,
                "revision": data.revision,
                "skipped": data.skipped,
            },
            "retriever": dict(self.retriever) if self.retriever else None,
            "prompts": PROMPT_DIGESTS if view.name != "question" else {},
        }

    @property
    def name(self) -> str:
        """The folder's name: model, view, data, and the first eight digits of the digest."""
        parts = (short_model(self.scorer.name), self.view.name, self.data.name, digest_of(self.config)[:8])
        return "--".join(map(slug, parts))


def run_job(
    job: Job,
    out: Path,
    ids: Sequence[str],
    by: Sequence[str],
    retry: Collection[str],
    fresh: bool,
    seen: Seen | None,
) -> RunFolder:
    """Do what is missing of a run and write its record and metrics; return its folder.

    Raises:
        RunError: the folder is locked, damaged, or holds another configuration.
        ModelError: the model cannot be used; no folder is made for it.
        Stopped: interrupted; what is done is kept.
    """
    folder = RunFolder(out / job.name)
    if fresh or not folder.rows.exists():
        _ = job.scorer.budget  # loads the model, so that one that cannot be used leaves no folder behind
    with folder:
        if fresh:
            folder.set_aside()
        _same(folder, job)
        log = RowLog(folder.rows)
        todo = unfinished(log, ids, retry)
        record = _record(job, folder, len(ids))
        if todo:
            folder.write_record(record | {"status": "running"})
        tell = _teller(Progress(job.name, len(ids) - len(todo), len(ids), len(ids) - len(todo)), seen)
        try:
            drive(log, todo, Verdicts(job.data, job.looker, job.scorer, job.view).rows, tell)
        except KeyboardInterrupt:
            folder.write_record(record | {"status": "stopped", "environment": _environment(job)})
            raise Stopped(f"stopped: {job.name}. The same command goes on from here.") from None
        if todo:
            record |= {"environment": _environment(job), "finished": _now()}
        folder.write_metrics(measure(job.data, log.rows, ids, by))
        folder.write_record(record | {"status": "complete"})
    return folder


def _teller(start: Progress, seen: Seen | None) -> Callable[[object], None]:
    done = start.done
    if seen:
        seen(start)

    def tell(_: object) -> None:
        nonlocal done
        done += 1
        if seen:
            seen(Progress(start.run, done, start.total, start.before))

    return tell


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
    return {
        "digest": digest_of(job.config),
        "config": job.config,
        "model": job.model,
        "probe": job.scorer.probe,
        "view": job.view.label,
        "data": {
            "spec": str(job.data.spec),
            "format": job.data.format,
            "notes": list(job.data.notes),
        },
        "protocol": job.protocol,
        "limit": count if count < len(job.data) else None,
        "started": old.get("started") or _now(),
        "finished": old.get("finished"),
        "environment": old.get("environment") or _environment(job),
    }


def _environment(job: Job) -> dict[str, Any]:
    return {"python": sys.version.split()[0], **job.scorer.environment}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
