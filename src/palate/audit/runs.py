"""Runs of reward models on the audited data, read without trust: outcomes are derived from scores again."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.data import Dataset
from palate.errors import RunError
from palate.evaluation.names import titles
from palate.evaluation.runs import Record, read_record, read_rows, run_folders
from palate.store import digest_of


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run as the audit sees it: the model's short name, the view's label, whether it is asked, rows by id."""

    model: str
    view: str
    judged: bool
    rows: Mapping[str, Mapping[str, Any]]


def read_runs(folder: Path, data: Dataset) -> tuple[tuple[SeenRun, ...], tuple[str, ...]]:
    """Return the runs on `data` below `folder`, of one model and view the newest, and notes on those left out.

    Raises:
        RunError: no run on these data, or a folder that cannot be read.
    """
    found: dict[tuple[str, str | None, str], tuple[Record, Path]] = {}
    others = older = 0
    folders = sorted(run_folders(folder))
    for path in folders:
        record, _ = read_record(path)
        if record.config.data.digest != data.digest:
            others += 1
            continue
        ranker = digest_of(record.config.retriever.model_dump()) if record.config.retriever else None
        place = (digest_of(record.config.model.model_dump()), ranker, record.config.view)
        older += place in found
        if place not in found or found[place][0].last < record.last:
            found[place] = (record, path)
    if not found:
        other = f" ({others} on other data)" if others else ""
        raise RunError(f"{folder}: no run on {data.name}{other}. Make some: palate eval --out {folder}")
    names = titles({place[0]: record.config.model for place, (record, _) in found.items()})
    notes = [f"{others} runs on other data are left out"] if others else []
    notes += [f"{older} older runs of the same model and view are left out"] if older else []
    return tuple(_seen(names[place[0]], record, path) for place, (record, path) in found.items()), tuple(notes)


def _seen(model: str, record: Record, path: Path) -> SeenRun:
    rows = {name: row.model_dump() | {"outcome": row.derived} for name, row in read_rows(path).items()}
    return SeenRun(model, record.config.view, record.config.model.family in ("judge", "rate"), rows)
