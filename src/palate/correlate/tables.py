"""Rows `{system, metric, value, ci95, n, source}` of boards and curves, read strictly, and the choice among them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from palate.correlate.base import Measured
from palate.data.lines import BadLine, parse_object
from palate.data.problems import explain
from palate.errors import DataError, SpecError, did_you_mean

T = TypeVar("T", bound=BaseModel)
CURVE = "curve.json"
USUAL = ("accuracy", "ppo/grade")
_BEST_OF = re.compile(r"bon@(\d+)$")


class _Sent(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class _Row(_Sent):
    system: Annotated[str, Field(min_length=1)]
    metric: str
    value: float | None
    ci95: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    n: int | None = None
    source: dict[str, Any] | str | None = None


class _Board(_Sent):
    rows: list[_Row]


class _Point(_Sent):
    k: int
    value: float | None
    ci95: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    n: int | None = None
    coverage: float | None = None


class _System(_Sent):
    system: Annotated[str, Field(min_length=1)]
    view: str
    probe: bool = False
    points: list[_Point]


class _Curve(_Sent):
    systems: list[_System]


@dataclass(frozen=True, slots=True)
class Result:
    """One row: of which system, metric, view and data, and what was measured."""

    system: str
    metric: str
    view: str
    data: str | None
    measured: Measured


def board_results(path: Path) -> list[Result]:
    """Return the rows of a board; the policy before training is no reward model's and is left out.

    Raises:
        DataError: it is no board.
    """
    found = []
    for row in _read(path, _Board).rows:
        told = row.source if isinstance(row.source, dict) else {}
        if told.get("side") == "before":
            continue
        metric, view = (row.metric, "") if row.metric in USUAL else _parts(row.metric)
        marks = tuple(str(m) for m in told.get("marks") or ())
        coverage = told.get("coverage")
        one = Measured(
            row.value,
            _span(row.ci95),
            row.n,
            float(coverage) if isinstance(coverage, int | float) and not isinstance(coverage, bool) else None,
            told.get("probe") is True,
            str(told["reason"]) if told.get("reason") else None,
            marks,
        )
        data = told.get("data")
        found.append(Result(row.system, metric, view, str(data) if data is not None else None, one))
    return found


def curve_results(path: Path) -> list[Result]:
    """Return the points of a best-of-N curve as rows `bon@<k>`.

    Raises:
        DataError: it is no curve.
    """
    return [
        Result(
            one.system, f"bon@{p.k}", one.view, None,
            Measured(p.value, _span(p.ci95), p.n, p.coverage, one.probe, "no pick graded" if p.value is None else None),
        )
        for one in _read(path, _Curve).systems
        for p in one.points
    ]  # fmt: skip


def select(rows: Sequence[Result], options: Mapping[str, str], where: str) -> tuple[list[Result], str]:
    """Return the rows of one metric, view and data set, and what they are called.

    Where nothing is named: accuracy, or the grade after training, or best of the most samples; the view `history`.

    Raises:
        SpecError: there is no such row, or several could be meant.
    """
    asked = options.get("metric", "")
    metric, view = (asked, "") if asked in USUAL else _parts(asked)
    kept = _named(rows, "metric", metric or _usual(rows), where)
    kept = _named(kept, "view", options.get("view") or view or ("history" if _has(kept, "history") else None), where)
    kept = _named(kept, "data", options.get("data"), where)
    one = kept[0]
    return kept, one.metric + (f"/{one.view}" if one.view else "")


def _named(rows: Sequence[Result], part: str, wanted: str | None, where: str) -> list[Result]:
    known = list(dict.fromkeys(str(getattr(r, part)) for r in rows if getattr(r, part) is not None))
    if wanted is not None:
        kept = [r for r in rows if getattr(r, part) == wanted]
        if not kept:
            raise SpecError(f"{where}: no {part} '{wanted}'.{did_you_mean(wanted, known)}")
        return kept
    if len(known) > 1:
        raise SpecError(f"{where}: several of {part}: {', '.join(known[:12])}. Choose with ?{part}=…")
    if not rows:
        raise DataError(f"{where}: no rows in it.")
    return list(rows)


def _has(rows: Sequence[Result], view: str) -> bool:
    return any(r.view == view for r in rows)


def _usual(rows: Sequence[Result]) -> str | None:
    names = {r.metric for r in rows}
    best = [int(m[1]) for m in map(_BEST_OF.match, names) if m]
    return next((u for u in USUAL if u in names), f"bon@{max(best)}" if best else None)


def _parts(metric: str) -> tuple[str, str]:
    name, _, view = metric.partition("/")
    return name, view


def _span(ci: Sequence[float] | None) -> tuple[float, float] | None:
    return (ci[0], ci[1]) if ci is not None and ci[0] <= ci[1] else None


def _read(path: Path, kind: type[T]) -> T:
    try:
        raw = parse_object(path.read_bytes())
        return kind.model_validate(raw)
    except BadLine as bad:
        raise DataError(f"{path}: {bad}") from None
    except ValidationError as bad:
        raise DataError(f"{path}: {'; '.join(explain(bad, raw)[:3])}") from None
