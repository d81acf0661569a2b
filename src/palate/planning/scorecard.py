"""How good plans are, item by item against the true rubric: it shows why a plan view wins or loses.

`coverage` is the share of an item's true aspects that some planned one matches, `beside` the share of its planned
aspects that match no true one. Items without a rubric do not count; items without a plan are counted as not scored and
stand in no mean. Two controls get the same figures: plans from the question alone, and plans from another user's posts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palate.data import Dataset
from palate.metrics import Difference, bootstrap_mean, difference
from palate.planning.match import Embedded, Matcher, lexical, make_matcher

ALL = "all"
FIGURES = ("coverage", "beside")
PlanRows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Mark:
    """What one item's plan is worth."""

    coverage: float
    beside: float


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one set of plans in one domain (or `all`) by one matcher; means over scored items."""

    plans: str
    matcher: str
    domain: str
    n: int
    scored: int
    coverage: float | None
    coverage_ci95: tuple[float, float] | None
    beside: float | None
    beside_ci95: tuple[float, float] | None
    ci_method: str | None


@dataclass(frozen=True, slots=True)
class Scorecard:
    """Lines, and for each control and figure the plans' difference to it on the items that both have."""

    items: int
    without_rubric: int
    matchers: tuple[Matcher, ...]
    lines: tuple[Line, ...]
    differences: Mapping[tuple[str, str, str], Difference]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        names = ("name", "threshold", "balanced_accuracy")
        return {
            "items": self.items,
            "without_rubric": self.without_rubric,
            "matchers": [{name: getattr(m, name) for name in names} for m in self.matchers],
            "lines": [asdict(line) for line in self.lines],
            "differences": [
                {"matcher": matcher, "control": control, "figure": figure, **asdict(found)}
                for (matcher, control, figure), found in self.differences.items()
            ],
        }


def make_matchers(encoder: str | None = None) -> tuple[Matcher, ...]:
    """Return the lexical matcher, and that of an encoder if one is named.

    Raises:
        MissingExtra: an encoder without the extra `hf`.
    """
    found = [make_matcher("lexical", lexical)]
    if encoder:
        name = Path(encoder).name if Path(encoder).is_dir() else encoder
        found.append(make_matcher(f"embedding ({name})", Embedded(encoder)))
    return tuple(found)


def score_plans(
    data: Dataset,
    ids: Sequence[str],
    plans: PlanRows,
    controls: Mapping[str, PlanRows],
    matchers: Sequence[Matcher],
) -> Scorecard:
    """Return the scorecard of `plans` beside `controls`.

    Args:
        data: where the true aspects are.
        ids: the items that were to be planned.
        plans: rows of a folder of plans by id.
        controls: the same of each control, by its name.
        matchers: from `make_matchers`.
    """
    true = {i: [a.aspect for a in key.aspects] for i in ids if (key := data.key(i)) is not None and key.aspects}
    domains = {i: data.entries[i].domain for i in true}
    lines: list[Line] = []
    differences: dict[tuple[str, str, str], Difference] = {}
    for matcher in matchers:
        marks = {name: _marks(rows, true, matcher) for name, rows in {"plan": plans, **controls}.items()}
        for name, found in marks.items():
            for domain in (ALL, *dict.fromkeys(domains.values())):
                members = [i for i in true if domain in (ALL, domains[i])]
                lines.append(_line(name, matcher.name, domain, members, found, data))
        for control in controls:
            for figure in FIGURES:
                first, second = (_values(marks[name], figure, list(true)) for name in ("plan", control))
                differences[matcher.name, control, figure] = difference(first, second, *_units(data, list(true)))
    return Scorecard(len(true), len(ids) - len(true), tuple(matchers), tuple(lines), differences)


def mark(planned: Sequence[str], true: Sequence[str], matcher: Matcher) -> Mark:
    """Return coverage and share beside the point of one plan; both lists must have entries."""
    found = matcher.matches(planned, true)
    return Mark(float(np.mean(found.any(axis=0))), float(np.mean(~found.any(axis=1))))


def _marks(rows: PlanRows, true: Mapping[str, Sequence[str]], matcher: Matcher) -> dict[str, Mark]:
    planned = {i: rows[i]["aspects"] for i in true if i in rows and rows[i]["status"] == "ok"}
    return {i: mark(aspects, true[i], matcher) for i, aspects in planned.items()}


def _line(plans: str, matcher: str, domain: str, ids: Sequence[str], marks: Mapping[str, Mark], data: Dataset) -> Line:
    scored = [i for i in ids if i in marks]
    units, unit = _units(data, scored)
    means: dict[str, float | None] = {}
    spans: dict[str, tuple[float, float] | None] = {}
    method = None
    for figure in FIGURES:
        values = [v for v in _values(marks, figure, scored) if v is not None]
        means[figure] = sum(values) / len(values) if values else None
        interval = bootstrap_mean(values, units, unit) if values else None
        spans[figure] = (interval.low, interval.high) if interval else None
        method = interval.method if interval and (method is None or figure == "coverage") else method
    args = (means["coverage"], spans["coverage"], means["beside"], spans["beside"], method)
    return Line(plans, matcher, domain, len(ids), len(scored), *args)


def _values(marks: Mapping[str, Mark], figure: str, ids: Sequence[str]) -> list[float | None]:
    return [float(getattr(marks[i], figure)) if i in marks else None for i in ids]


def _units(data: Dataset, ids: Sequence[str]) -> tuple[list[str], str]:
    units = [data.entries[i].unit for i in ids]
    return units, "users" if len(set(units)) < len(units) else "items"
