"""Reading run folders without trusting them: figures are computed again from the rows and compared."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.data import Dataset, open_data
from palate.errors import DataError, PalateError, RunError
from palate.evaluation.measure import measure
from palate.metrics import tally
from palate.records import OUTCOMES
from palate.spec import short_model
from palate.store import RowLog, RunFolder, digest_of

COMPARED = ("n", "scored", "correct", "wrong", "ties", "accuracy", "strict_accuracy", "both_right")
LEAST_COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run as the report sees it.

    `metrics` are computed again where the data is at hand, else as sent. `marks` say what a reader has to know;
    `ranked` tells whether it may stand in the ranking.
    """

    model: str
    title: str
    view: str
    probe: bool
    folder: Path
    record: Mapping[str, Any]
    metrics: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]
    ids: Sequence[str]
    marks: tuple[str, ...]
    ranked: bool


@dataclass(frozen=True, slots=True)
class Board:
    """The runs on one data set; `data` is None if it is not at hand."""

    name: str
    digest: str
    data: Dataset | None
    runs: tuple[LoadedRun, ...]


def load_boards(paths: Sequence[Path], data: Sequence[str] = ()) -> list[Board]:
    """Read all run folders below `paths`, grouped by data set, the largest group first.

    Args:
        paths: run folders, or folders that hold some.
        data: data strings to look in for data that the records' own strings do not lead to.

    Raises:
        RunError: no run folder, or one that cannot be read.
    """
    folders = sorted({f.resolve(): f for path in paths for f in _folders(path)}.values())
    if not folders:
        raise RunError(f"no run folder in {', '.join(map(str, paths)) or 'nothing'}. Make some: palate eval --out runs")
    found: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
    for folder in folders:
        record = RunFolder(folder).record() or {}
        found.setdefault(_config(folder, record)["data"]["digest"], []).append((folder, record))
    datasets = _open_all(data)
    boards = [_board(digest, group, datasets) for digest, group in found.items()]
    return sorted(boards, key=lambda b: -len(b.runs))


def _folders(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        raise RunError(f"{path}: no such folder.")
    if (path / "run.json").is_file():
        return [path]
    return [p.parent for p in path.rglob("run.json") if not p.name.startswith("old-")]


def _config(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    config = record.get("config")
    if not isinstance(config, dict) or not isinstance(config.get("data"), dict) or "digest" not in config["data"]:
        raise RunError(f"{folder}: run.json is not the record of a run.")
    return config


def _open_all(texts: Sequence[str]) -> dict[str, Dataset]:
    return {found.digest: found for found in map(open_data, texts)}


def _board(digest: str, group: Sequence[tuple[Path, dict[str, Any]]], datasets: Mapping[str, Dataset]) -> Board:
    data = datasets.get(digest) or _own_data(digest, [r for _, r in group])
    newest: dict[str, LoadedRun] = {}
    for folder, record in sorted(group, key=lambda pair: str(pair[1].get("finished"))):
        run = _load(folder, record, data)
        newest[str(record.get("digest"))] = run
    runs = sorted(newest.values(), key=lambda r: (r.probe, r.title, r.view))
    return Board(str(group[0][1]["config"]["data"]["name"]), digest, data, tuple(runs))


def _own_data(digest: str, records: Sequence[Mapping[str, Any]]) -> Dataset | None:
    for text in dict.fromkeys(str(r.get("data", {}).get("spec", "")) for r in records):
        try:
            found = open_data(text)
        except (PalateError, OSError):
            continue
        if found.digest == digest:
            return found
    return None


def _load(folder: Path, record: dict[str, Any], data: Dataset | None) -> LoadedRun:
    rows = _rows(folder)
    stored = RunFolder(folder).metrics() or {}
    limit = record.get("limit")
    ids = data.ids[:limit] if data else list(rows)
    marks: list[str] = []
    if digest_of(record["config"]) != record.get("digest"):
        marks.append("the record does not fit its own digest")
    if data:
        metrics = measure(data, rows, ids, by=[n for n in stored.get("by", {}) if n in data.columns])
        if strange := [i for i in rows if i not in data.entries]:
            marks.append(f"{len(strange)} rows of items the data does not have")
    else:
        metrics = _as_sent(folder, stored, rows, marks)
    marks += _disagreements(record, stored, metrics)
    ranked = not marks and metrics["accuracy"] is not None
    marks += _notes(record, metrics)
    if (metrics["coverage"] or 0) < LEAST_COVERAGE:
        marks.append(f"coverage {100 * (metrics['coverage'] or 0):.0f} %")
        ranked = False
    title, view, probe = short_model(record["model"]), record["view"], bool(record.get("probe"))
    return LoadedRun(record["model"], title, view, probe, folder, record, metrics, rows, ids, tuple(marks), ranked)


def _rows(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    rows = RowLog(folder / "rows.jsonl", mend=False).rows
    for name, row in rows.items():
        if not {"status", "outcome", "shown"} <= row.keys() or row["outcome"] not in (*OUTCOMES, None):
            raise RunError(f"{folder / 'rows.jsonl'}: the row of '{name}' has no readable status, outcome or shown.")
    return rows


def _as_sent(folder: Path, stored: dict[str, Any], rows: Mapping[str, Any], marks: list[str]) -> dict[str, Any]:
    """Return the written figures, checked against the rows as far as that goes without the data."""
    if not stored:
        raise DataError(f"{folder}: the data is not at hand and there is no metrics.json. Name the data: --data …")
    counts = tally([r["outcome"] for r in list(rows.values())])
    told = (stored.get("correct"), stored.get("wrong"), stored.get("ties"))
    if told != (counts.correct, counts.wrong, counts.ties):
        marks.append("metrics.json does not agree with the rows")
    marks.append("the data is not at hand: figures as sent")
    return stored


def _disagreements(record: Mapping[str, Any], stored: Mapping[str, Any], metrics: Mapping[str, Any]) -> list[str]:
    status = record.get("status")
    if status != "complete":
        return [f"unfinished ({status}): {metrics['scored']} of {metrics['n']} scored"]
    differ = [name for name in COMPARED if json.dumps(stored.get(name)) != json.dumps(metrics[name])]
    return [f"metrics.json does not agree with the rows: {', '.join(differ)}"] if differ else []


def _notes(record: Mapping[str, Any], metrics: Mapping[str, Any]) -> list[str]:
    marks = [str(n) for n in record.get("environment", {}).get("notes", [])]
    if record.get("limit"):
        marks.append(f"first {metrics['n']} items only")
    if record["config"]["data"].get("skipped"):
        marks.append(f"{record['config']['data']['skipped']} invalid records left out")
    return marks
