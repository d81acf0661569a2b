"""Opening what is compared: boards, curves, run folders, evaluations of trained policies, and CSV."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from palate.correlate.base import Measured, Source, settle
from palate.correlate.runs import runs_source
from palate.correlate.tables import CURVE, Result, board_results, curve_results, select
from palate.errors import DataError, SpecError
from palate.spec import Spec

BOARD = "board.json"
WHAT = "source"
OPTIONS = ("metric", "view", "data", "label")
COLUMNS = ("model", "score")
SPAN = ("low", "high")
NOTHING = frozenset({"", "na", "nan", "none", "null"})


def open_source(text: str, metric: str | None = None, *, probes: bool = False) -> Source:
    """Open `path?metric=…&view=…&data=…&label=…`.

    Args:
        text: a board, a curve, a CSV, a run folder, or a folder that holds some of these.
        metric: which is read where the string names none.
        probes: whether probes count as models.

    Raises:
        SpecError: an unknown option, no such file, or a choice that has to be made.
        DataError: it cannot be read, or holds two values of one model.
    """
    spec = Spec.parse(text, WHAT, revisions=False).only(OPTIONS, WHAT)
    options = dict(spec.options)
    if metric is not None:
        options.setdefault("metric", metric)
    path = Path(spec.head).expanduser()
    label = options.get("label") or _label(path)
    if not path.exists():
        raise SpecError(f"{WHAT} {text!r}: there is no such file or folder.")
    tables = _tables(path)
    if not tables:
        return runs_source(path, label, options, probes=probes)
    if path.suffix == ".csv":
        name = options.get("metric", "score")
        notes: list[str] = []
        found = _unique(path, list(_csv(path)), notes)
    else:
        found, name, notes = _chosen(path, tables, options)
    return _source(label, name, found, notes, probes=probes)


def _label(path: Path) -> str:
    plain = path.resolve().parent.name if path.name in (BOARD, CURVE) else path.stem if path.is_file() else path.name
    return plain or path.resolve().name


def _tables(path: Path) -> list[Path]:
    """Return the boards or curve that a path means; none where it means run folders."""
    if path.is_file():
        if path.suffix not in (".json", ".csv"):
            raise SpecError(f"{path}: expected board.json, curve.json, a CSV or a folder.")
        return [path]
    for name in (BOARD, CURVE):
        if (path / name).is_file():
            return [path / name]
    return sorted(path.rglob(BOARD))


def _chosen(
    path: Path, tables: Sequence[Path], options: Mapping[str, str]
) -> tuple[dict[str, Measured], str, list[str]]:
    rows: list[Result] = []
    for table in tables:
        rows += curve_results(table) if table.name == CURVE else board_results(table)
    kept, name = select(rows, options, str(path))
    notes: list[str] = []
    found = _unique(path, [(r.system, r.measured) for r in kept], notes)
    return found, name, notes


def _unique(path: Path, found: Sequence[tuple[str, Measured]], notes: list[str]) -> dict[str, Measured]:
    """Return each model once; the same row again counts once, another value is refused."""
    own: dict[str, Measured] = {}
    again = 0
    bad: dict[str, None] = {}
    for name, value in found:
        first = own.setdefault(name, value)
        if first is not value:
            again += 1
            if (first.value, first.ci95) != (value.value, value.ci95):
                bad[name] = None
    if bad:
        raise DataError(
            f"{path}: two different values of {', '.join(repr(n[:80]) for n in list(bad)[:5])}. Leave one of them out, "
            "or choose with ?metric=, ?view= or ?data=."
        )
    if again:
        notes.append(f"{again} rows stand there again and count once")
    return own


def _csv(path: Path) -> Iterator[tuple[str, Measured]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle, strict=True, restkey="", restval=None)
            names = [n.strip() for n in reader.fieldnames or []]
            if names not in ([*COLUMNS], [*COLUMNS, *SPAN]):
                raise DataError(
                    f"{path}: the header must be model,score or model,score,low,high, not {','.join(names)}."
                )
            reader.fieldnames = names
            for row in reader:
                yield _csv_row(f"{path.name}, line {reader.line_num}", row)
    except (csv.Error, UnicodeDecodeError) as bad:
        raise DataError(f"{path}: not readable as CSV in UTF-8 ({bad}).") from None


def _csv_row(where: str, row: Mapping[str, Any]) -> tuple[str, Measured]:
    model = (row["model"] or "").strip()
    if not model:
        raise DataError(f"{where}: a row without a model.")
    if "" in row:
        raise DataError(f"{where}: more cells than columns. A name with a comma needs quotes.")
    value, low, high = (_number(where, row.get(name)) for name in (*COLUMNS[1:], *SPAN))
    if (low is None) != (high is None):
        raise DataError(f"{where}: low and high belong together.")
    if value is not None and low is not None and high is not None and not low <= value <= high:
        raise DataError(f"{where}: expected low ≤ score ≤ high.")
    span = (low, high) if value is not None and low is not None and high is not None else None
    return model, Measured(value, span, reason=None if value is not None else "no score")


def _number(where: str, cell: str | None) -> float | None:
    text = (cell or "").strip()
    if text.lower() in NOTHING:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise DataError(f"{where}: expected a number or nothing, found {text[:40]!r}.")
    return number


def _source(label: str, metric: str, found: Mapping[str, Measured], notes: Sequence[str], *, probes: bool) -> Source:
    """Return the source with only those models that count."""
    values, out = settle(label, found, probes=probes)
    if not any(m.n for m in values.values()) and values:
        notes = [*notes, "how many items each value is of is not told"]
    return Source(label, metric, values, out, tuple(notes))
