"""Run folders as a source: outcomes derived from scores again, kept by item so that shared noise can cancel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from palate.correlate.base import Measured, Source, settle
from palate.errors import DataError, SpecError, did_you_mean
from palate.evaluation.names import systems
from palate.evaluation.runs import Record, Row, read_metrics, read_record, read_rows, run_folders
from palate.metrics import CREDIT, mean_interval
from palate.store import digest_of

METRIC = "accuracy"


@dataclass(frozen=True, slots=True)
class _Run:
    record: Record
    rows: Mapping[str, Row]
    n: int
    older: int

    @property
    def model(self) -> str:
        return digest_of(self.record.config.model.model_dump())


def runs_source(path: Path, label: str, options: Mapping[str, str], *, probes: bool) -> Source:
    """Return the accuracies of the runs at or below `path`: of one data set and view, the newest of each model.

    Raises:
        SpecError: another metric, or several data sets or views to choose from.
        DataError: no run, or several retrievers of one model.
        RunError: a run that cannot be read.
    """
    if options.get("metric", METRIC) != METRIC:
        raise SpecError(f"{path}: run folders give accuracy only, not '{options['metric']}'. Name a board instead.")
    folders = sorted(run_folders(path))
    if not folders:
        raise DataError(f"{path}: no board, curve or run in it.")
    records = [(read_record(f)[0], f) for f in folders]
    records = _only(records, "data", options.get("data"), None, path)
    records = _only(records, "view", options.get("view"), "history", path)
    view = records[0][0].config.view
    newest = _newest(path, records)
    names = systems({key: run.record.config.model for key, run in newest.items()})
    values, out = settle(label, {names[key]: _measured(run) for key, run in newest.items()}, probes=probes)
    older = sum(run.older for run in newest.values())
    notes = [f"{older} older runs of the same model are left out: the newest counts"] if older else []
    items = list(dict.fromkeys(i for run in newest.values() for i in run.rows))
    kept = {names[key]: _credits(run, items) for key, run in newest.items() if names[key] in values}
    return Source(label, f"{METRIC}/{view}", values, out, tuple(notes), kept)


def _part(record: Record, part: str) -> str:
    return record.config.view if part == "view" else record.data.name


def _only(
    found: Sequence[tuple[Record, Path]], part: str, wanted: str | None, usual: str | None, path: Path
) -> list[tuple[Record, Path]]:
    known = list(dict.fromkeys(_part(record, part) for record, _ in found))
    chosen = wanted or (usual if usual in known else None)
    if chosen is None and len(known) > 1:
        raise SpecError(f"{path}: runs of several: {', '.join(known[:12])}. Choose with ?{part}=…")
    kept = [each for each in found if chosen is None or _part(each[0], part) == chosen]
    if not kept:
        raise SpecError(f"{path}: no run of {part} '{chosen}'.{did_you_mean(str(chosen), known)}")
    if part == "data" and len({record.config.data.digest for record, _ in kept}) > 1:
        raise DataError(f"{path}: runs on data sets of one name with different content. Name their folders apart.")
    return kept


def _newest(path: Path, records: Sequence[tuple[Record, Path]]) -> dict[str, _Run]:
    places: dict[str, list[tuple[Record, Path]]] = {}
    for record, folder in sorted(records, key=lambda each: each[0].last):
        places.setdefault(digest_of(record.config.model.model_dump()), []).append((record, folder))
    found = {}
    for key, each in places.items():
        rankers = {record.config.retriever.id for record, _ in each if record.config.retriever}
        if len(rankers) > 1:
            raise DataError(
                f"{path}: runs of '{each[-1][0].model[:80]}' with several retrievers: {', '.join(sorted(rankers))}."
            )
        record, folder = each[-1]
        rows, told = read_rows(folder), read_metrics(folder)
        found[key] = _Run(record, rows, max(len(rows), told.n if told else 0), len(each) - 1)
    return found


def _measured(run: _Run) -> Measured:
    outcomes = [row.derived for row in run.rows.values()] + [None] * (run.n - len(run.rows))
    result = mean_interval(outcomes, None)
    tally, span = result.tally, result.interval
    marks = [] if run.record.status == "complete" else [f"unfinished ({run.record.status})"]
    marks += [f"first {run.n} items only"] if run.record.limit else []
    marks += list(run.record.warnings)
    return Measured(
        tally.accuracy,
        (span.low, span.high) if span else None,
        tally.scored,
        tally.coverage,
        run.record.config.model.probe,
        None if tally.scored else "nothing was scored",
        tuple(marks),
    )


def _credits(run: _Run, items: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    outcomes = [run.rows[i].derived if i in run.rows else None for i in items]
    return np.array([np.nan if o is None else CREDIT[o] for o in outcomes])
