"""Reading run folders without trusting them: outcomes are derived and figures computed again, and compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from palate.data import Dataset, open_data
from palate.data.source import ENDINGS, SAMPLES, parse
from palate.errors import PalateError, RunError
from palate.evaluation.measure import measure
from palate.evaluation.names import rankers, systems, titles
from palate.evaluation.runs import Metrics, Record, Row, read_metrics, read_record, read_replies, read_rows, run_folders
from palate.report.bare import measure_alone
from palate.store import digest_of

COMPARED = ("n", "scored", "correct", "wrong", "ties", "accuracy", "strict_accuracy")
LEAST_COVERAGE = 0.95
UNTRAINED = "UNTRAINED"


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run as the report sees it.

    `model` is the full name of its model identity and `title` a short one, with the retriever where several are on
    the board; `line` are the digests of both identities. `rows` have the outcomes that follow from their scores;
    `metrics` are computed of them. `marks` say what a reader has to know; `ranked` tells whether it may be ranked.
    """

    model: str
    title: str
    line: tuple[str, str | None]
    view: str
    probe: bool
    record: Record
    metrics: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]
    ids: Sequence[str]
    marks: tuple[str, ...]
    ranked: bool
    replies: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Board:
    """The runs on one data set, no view twice in a line; `data` is None if it is not at hand."""

    name: str
    digest: str
    data: Dataset | None
    runs: tuple[LoadedRun, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """What stands in a run folder: its record, the digest of its configuration, rows, figures and replies."""

    record: Record
    digest: str
    rows: Mapping[str, Row]
    metrics: Metrics | None
    replies: Mapping[str, tuple[str, str]]


def load_boards(paths: Sequence[Path], data: Sequence[str] = (), unread: list[str] | None = None) -> list[Board]:
    """Read all run folders below `paths`, grouped by data set, the largest group first.

    Args:
        paths: run folders, or folders that hold some.
        data: data strings to look in. What the records themselves name is opened only if it is a sample, or a file
            that is there and has the data's name.
        unread: takes what is wrong with folders that cannot be read, which are left out then.

    Raises:
        RunError: no run folder, or one that cannot be read and nothing that takes the reason; or none that can.
    """
    folders = sorted({f.resolve(): f for path in paths for f in run_folders(path)}.values())
    if not folders:
        raise RunError(f"no run folder in {', '.join(map(str, paths)) or 'nothing'}. Make some: palate eval --out runs")
    groups: dict[str, list[_Found]] = {}
    faults: list[str] = []
    for folder in folders:
        try:
            found = _Found(*read_record(folder), read_rows(folder), read_metrics(folder), read_replies(folder))
        except RunError as bad:
            faults.append(str(bad))
            continue
        groups.setdefault(found.record.config.data.digest, []).append(found)
    if faults and (unread is None or not groups):
        raise RunError("\n".join(faults))
    if unread is not None:
        unread += faults
    datasets = {d.digest: d for d in map(open_data, data)}
    boards = [_board(digest, group, datasets) for digest, group in groups.items()]
    return sorted(boards, key=lambda b: -len(b.runs))


def _board(digest: str, group: Sequence[_Found], datasets: Mapping[str, Dataset]) -> Board:
    """Return the board of runs on one data set: of one configuration the best copy, of one line and view one run."""
    copies: dict[str, _Found] = {}
    for found in sorted(group, key=lambda f: f.record.last):
        copies[found.digest] = found
    data = datasets.get(digest) or _reopened(digest, [f.record for f in group])
    runs = _named([_load(found, data) for found in copies.values()])
    name = data.name if data else group[0].record.data.name
    return Board(name, digest, data, tuple(sorted(_one_a_view(runs), key=lambda r: (r.probe, r.title, r.view))))


def _reopened(digest: str, records: Sequence[Record]) -> Dataset | None:
    for spec, name in dict.fromkeys((r.data.spec, r.data.name) for r in records):
        try:
            found = open_data(spec) if _may_open(spec, name) else None
        except (PalateError, OSError):
            continue
        if found is not None and found.digest == digest:
            return found
    return None


def _may_open(text: str, name: str) -> bool:
    """Tell whether a data string out of a folder may be opened: a sample, or a file that has the data's name."""
    spec = parse(text)
    path = Path(spec.head)
    named = not spec.head.startswith("hub:") and path.suffix in ENDINGS and path.stem == name
    return spec.head in SAMPLES or (named and path.is_file())


def _named(runs: Sequence[LoadedRun]) -> list[LoadedRun]:
    """Return the runs with names that tell models and retrievers of this board apart."""
    models = {r.line[0]: r.record.config.model for r in runs}
    retrievers = {r.line[1]: r.record.config.retriever for r in runs}
    ranker = rankers({key: found for key, found in retrievers.items() if key and found})
    short, full = titles(models), systems(models)
    several = len(ranker) > 1
    beside = {key: f" · {ranker[key]}" if key and several else "" for key in retrievers}
    return [
        replace(r, model=full[r.line[0]] + beside[r.line[1]], title=short[r.line[0]] + beside[r.line[1]]) for r in runs
    ]


def _one_a_view(runs: Sequence[LoadedRun]) -> list[LoadedRun]:
    """Return the newest run of each line and view, marked if there are others."""
    places: dict[tuple[Any, str], list[LoadedRun]] = {}
    for run in sorted(runs, key=lambda r: r.record.last):
        places.setdefault((run.line, run.view), []).append(run)
    return [replace(each[-1], marks=each[-1].marks + _beside(each)) for each in places.values()]


def _beside(runs: Sequence[LoadedRun]) -> tuple[str, ...]:
    configs = [r.record.config.model_dump() for r in runs]
    names = list(dict.fromkeys(name for each in configs for name in each))
    differ = [n for n in names if any(c.get(n) != configs[-1].get(n) for c in configs)]
    if len(runs) == 1:
        return ()
    noun = "run" if len(runs) == 2 else "runs"
    return (f"the newest of {len(runs)}: {len(runs) - 1} older {noun} with other {', '.join(differ) or 'spelling'}",)


def _load(found: _Found, data: Dataset | None) -> LoadedRun:
    record, config = found.record, found.record.config
    rows = {name: row.model_dump() | {"outcome": row.derived} for name, row in found.rows.items()}
    ids = data.ids[: record.limit] if data else list(rows)
    metrics = measure(data, rows, ids) if data else measure_alone(rows)
    faults = [] if found.digest == record.digest else ["the record does not fit its own digest"]
    faults += faulty_rows(found.rows, data)
    faults += _disagreements(record, found.metrics, metrics, data)
    faults += _limits(record, metrics)
    remarks = list(record.warnings)
    remarks += [f"{config.data.skipped} invalid records left out"] if config.data.skipped else []
    return LoadedRun(
        model="",
        title="",
        line=(_digest(config.model), _digest(config.retriever) if config.retriever else None),
        view=config.view,
        probe=config.model.probe,
        record=record,
        metrics=metrics,
        rows=rows,
        ids=ids,
        marks=(*faults, *remarks),
        ranked=not faults and metrics["accuracy"] is not None,
        replies=found.replies,
    )


def _digest(identity: Any) -> str:
    return digest_of(identity.model_dump())


def faulty_rows(rows: Mapping[str, Row], data: Dataset | None) -> list[str]:
    """Say what is wrong with rows that can be read."""
    bad = sum(not row.follows for row in rows.values())
    bare = sum(row.outcome is not None and row.chosen_score is None for row in rows.values() if row.follows)
    strange = sum(name not in data.entries for name in rows) if data else 0
    found = {
        "whose outcome does not follow from their scores": bad,
        "without scores that their outcome could be derived from": bare,
        "of items the data does not have": strange,
    }
    return [f"{count} {'row' if count == 1 else 'rows'} {what}" for what, count in found.items() if count]


def _disagreements(
    record: Record, stored: Metrics | None, metrics: Mapping[str, Any], data: Dataset | None
) -> list[str]:
    found = [] if data else ["the data is not at hand: figures of the rows alone"]
    if record.status != "complete":
        return [*found, f"unfinished ({record.status}): {metrics['scored']} of {metrics['n']} scored"]
    if stored is None:
        return [*found, "metrics.json is missing"]
    names = (*COMPARED, "both_right") if data else COMPARED
    differ = [name for name in names if getattr(stored, name) != metrics[name]]
    return [*found, f"metrics.json does not agree with the rows: {', '.join(differ)}"] if differ else found


def _limits(record: Record, metrics: Mapping[str, Any]) -> list[str]:
    """Say what keeps a run out of the ranking although nothing is wrong with it."""
    found = []
    if record.limit:
        found.append(f"first {metrics['n']} items only")
    if any(note.startswith(UNTRAINED) for note in record.notes):
        found.append("untrained head")
    if (metrics["coverage"] or 0) < LEAST_COVERAGE:
        found.append(f"coverage {100 * (metrics['coverage'] or 0):.0f} %")
    return found
