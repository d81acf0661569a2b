"""From samples, scores and grades to the curve: best-of-k of each reward model, random and oracle choice, the gap."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palate.bon.samples import is_live, sample_id
from palate.data import Dataset
from palate.grading import grade_id
from palate.metrics import bootstrap_mean, difference
from palate.metrics.best_of import (
    Picks,
    cross_fitted,
    first_k,
    gap_closed,
    mean_grades,
    over_first,
    over_subsets,
    pick_weights,
)

Array = NDArray[np.float64]
Row = Mapping[str, Any]
Values = list[float | None]


@dataclass(frozen=True, slots=True)
class Scored:
    """One reward model under one view and its rows by sample."""

    system: str
    view: str
    probe: bool
    rows: Mapping[str, Row]
    folder: str


@dataclass(frozen=True, slots=True)
class Table:
    """All that the curve is made of.

    `ids` are the items asked for, `n` the samples that each should have; `grades` has a row a sample and draw.
    """

    data: Dataset
    ids: Sequence[str]
    n: int
    ks: Sequence[int]
    samples: Mapping[str, Row]
    scored: Sequence[Scored]
    grades: Mapping[str, Row] = field(default_factory=dict)
    repeats: int = 1
    unbiased: bool = True

    @property
    def graded_ids(self) -> list[str]:
        """The items that can be graded: those with a rubric."""
        return [i for i in self.ids if self.data.entries[i].aspects]

    def slots(self, item_id: str) -> list[str]:
        """Return the ids of an item's samples, those that failed too."""
        return [sample_id(item_id, place) for place in range(self.n)]

    def scores(self, one: Scored, item_id: str) -> Array:
        """Return the (N,) scores of an item, NaN where there is none."""
        return np.array([_number(one.rows.get(s), "score") for s in self.slots(item_id)])

    def draws(self, item_id: str) -> Array:
        """Return the (R, N) grades of an item, NaN where there is none."""
        names = self.slots(item_id)
        return np.array(
            [[_number(self.grades.get(grade_id(s, r)), "value") for s in names] for r in range(self.repeats)]
        )


def picked(table: Table) -> list[str]:
    """Return the samples that the first-k curve needs graded: every pick, and each item's first sample with a text."""
    found: dict[str, None] = {}
    for item_id in table.graded_ids:
        names = table.slots(item_id)
        first = next((s for s in names if is_live(table.samples.get(s))), None)
        picks = [p for one in table.scored for p in first_k(table.scores(one, item_id), table.ks)[0] if p is not None]
        found |= dict.fromkeys(([first] if first else []) + [names[p] for p in picks])
    return list(found)


def curve_of(table: Table) -> dict[str, Any]:
    """Return the content of `curve.json`."""
    ids = table.graded_ids
    draws = {i: table.draws(i) for i in ids}
    means = {i: mean_grades(draws[i]) for i in ids}
    random = [_random(table, i, means[i]) for i in ids]
    oracle = [_oracle(table, draws[i]) for i in ids] if table.unbiased else None
    points = _Points(table, ids, random, [_value(o, table.ks) for o in oracle] if oracle else None)
    found: dict[str, Any] = {
        "format": 1,
        "n": table.n,
        "ks": list(table.ks),
        "mode": "unbiased" if table.unbiased else "first-k",
        "items": len(table.ids),
        "without_rubric": len(table.ids) - len(ids),
        "samples": samples_of(table),
        "grades": dict(Counter(str(r["status"]) for r in table.grades.values())),
        "repeats": table.repeats,
        "unit": points.unit,
        "random": {"how": _how_random(table), **points.reference(random)},
        "oracle": None,
        "systems": [_system(table, points, one, means) for one in table.scored],
    }
    if oracle:
        how = "cross-fitted over grader draws" if table.repeats > 1 else "optimistic: chosen and valued by one grading"
        by_k = [points.reference([o.value[k] for o in oracle]) for k in range(len(table.ks))]
        found["oracle"] = {"how": how, "points": [{"k": k, **p} for k, p in zip(table.ks, by_k, strict=True)]}
    return found


def samples_of(table: Table) -> dict[str, Any]:
    """Return how many samples there are in which state, and how many of N each item has."""
    rows = [table.samples.get(s) for i in table.ids for s in table.slots(i)]
    counts = Counter("missing" if row is None else str(row["status"]) for row in rows)
    live = [sum(is_live(table.samples.get(s)) for s in table.slots(i)) for i in table.ids]
    return {
        "asked": len(rows),
        "with_text": sum(live),
        "status": dict(counts),
        "effective": _effective(live),
    }


def _effective(counts: Sequence[int]) -> dict[str, Any]:
    spread = sorted(Counter(counts).items(), reverse=True)
    return {
        "mean": sum(counts) / len(counts),
        "least": min(counts),
        "items_by_n": {str(n): items for n, items in spread},
    }


@dataclass(frozen=True, slots=True)
class _Points:
    """Turns values of items into points with intervals, always on the items that have one."""

    table: Table
    ids: Sequence[str]
    random: Sequence[float]
    oracle: Sequence[Values] | None

    @property
    def units(self) -> list[str]:
        return [self.table.data.entries[i].unit for i in self.ids]

    @property
    def unit(self) -> str:
        return "users" if self.table.data.has_users else "items"

    def reference(self, values: Sequence[float]) -> dict[str, Any]:
        """Return the mean over items of a random or oracle choice."""
        return self._mean(values, list(self.ids))

    def point(self, place: int, picks: Sequence[Picks]) -> dict[str, Any]:
        """Return one point of a curve with what it is compared to."""
        values = [float(p.value[place]) for p in picks]
        found = self.brief(place, picks)
        found["over_random"] = self._gain(values)
        found["gap_closed"] = self._gap(place, values)
        found["by_domain"] = self._domains(values)
        return found

    def brief(self, place: int, picks: Sequence[Picks]) -> dict[str, Any]:
        """Return one point of a curve alone."""
        values = [float(p.value[place]) for p in picks]
        found: dict[str, Any] = {"k": self.table.ks[place], **self._mean(values, list(self.ids))}
        found["coverage"] = float(np.mean([p.covered[place] for p in picks])) if picks else None
        found["tied"] = float(np.mean([p.tied[place] for p in picks])) if picks else None
        return found

    def _mean(self, values: Sequence[float], ids: Sequence[str]) -> dict[str, Any]:
        known = [(v, self.table.data.entries[i].unit) for v, i in zip(values, ids, strict=True) if not np.isnan(v)]
        if not known:
            return {"value": None, "ci95": None, "ci_method": None, "n": 0, "of": len(ids)}
        own = [v for v, _ in known]
        span = bootstrap_mean(own, [u for _, u in known], self.unit)
        return {
            "value": float(np.mean(own)),
            "ci95": [span.low, span.high] if span else None,
            "ci_method": span.method if span else None,
            "n": len(own),
            "of": len(ids),
        }

    def _gain(self, values: Sequence[float]) -> dict[str, Any]:
        gap = difference(_absent(values), _absent(self.random), self.units, self.unit)
        return {"value": gap.value, "ci95": list(gap.ci95) if gap.ci95 else None, "p": gap.p, "n": gap.common}

    def _gap(self, place: int, values: Sequence[float]) -> dict[str, Any]:
        if self.oracle is None:
            return _no_gap("first-k grades the picks alone, so there is no oracle")
        rows = [
            (v, r, o[place], u)
            for v, r, o, u in zip(values, self.random, self.oracle, self.units, strict=True)
            if not np.isnan(v) and not np.isnan(r) and o[place] is not None
        ]
        if not rows:
            return _no_gap("no item has all three")
        best = [float(o) for _, _, o, _ in rows if o is not None]
        args = [v for v, _, _, _ in rows], [r for _, r, _, _ in rows], best, [u for _, _, _, u in rows]
        value, span, reason = gap_closed(*args, self.unit)
        return {"value": value, "ci95": [span.low, span.high] if span else None, "n": len(rows), "reason": reason}

    def _domains(self, values: Sequence[float]) -> dict[str, Any]:
        places: dict[str, list[int]] = {}
        for place, item_id in enumerate(self.ids):
            places.setdefault(self.table.data.entries[item_id].domain, []).append(place)
        return {name: self._mean([values[p] for p in own], [self.ids[p] for p in own]) for name, own in places.items()}


def _system(table: Table, points: _Points, one: Scored, means: Mapping[str, Array]) -> dict[str, Any]:
    scores = {i: table.scores(one, i) for i in points.ids}
    firsts = [over_first(scores[i], means[i], table.ks) for i in points.ids]
    main = [over_subsets(scores[i], means[i], table.ks) for i in points.ids] if table.unbiased else firsts
    found = {
        "system": one.system,
        "view": one.view,
        "probe": one.probe,
        "folder": one.folder,
        "scores": scores_of(table, one),
        "points": [points.point(k, main) for k in range(len(table.ks))],
    }
    if table.unbiased:
        found["first_k"] = [points.brief(k, firsts) for k in range(len(table.ks))]
    return found


def scores_of(table: Table, one: Scored) -> dict[str, Any]:
    """Return how many samples a reward model scored, and in how many items its highest score is shared."""
    live = [s for i in table.ids for s in table.slots(i) if is_live(table.samples.get(s))]
    counts = Counter("missing" if s not in one.rows else str(one.rows[s]["status"]) for s in live)
    ok = [sum(one.rows.get(s, {}).get("status") == "ok" for s in table.slots(i)) for i in table.ids]
    tied = sum(pick_weights(table.scores(one, i), [table.n])[1][0] > 0 for i in table.ids)
    return {"status": dict(counts), "effective": _effective(ok), "tied_items": int(tied)}


def _random(table: Table, item_id: str, grades: Array) -> float:
    """Return the mean grade of all samples, or under first-k the grade of the first sample with a text."""
    if not table.unbiased:
        live = [is_live(table.samples.get(s)) for s in table.slots(item_id)]
        return float(grades[live.index(True)]) if any(live) else float("nan")
    known = grades[~np.isnan(grades)]
    return float(known.mean()) if len(known) else float("nan")


def _how_random(table: Table) -> str:
    return "mean of all samples' grades" if table.unbiased else "the first sample with a text"


def _oracle(table: Table, draws: Array) -> Picks:
    if table.repeats > 1:
        return cross_fitted(draws, table.ks)
    return over_subsets(draws[0], draws[0], table.ks)


def _value(picks: Picks, ks: Sequence[int]) -> Values:
    return [None if np.isnan(picks.value[k]) else float(picks.value[k]) for k in range(len(ks))]


def _absent(values: Sequence[float]) -> Values:
    return [None if np.isnan(v) else v for v in values]


def _no_gap(reason: str) -> dict[str, Any]:
    return {"value": None, "ci95": None, "n": 0, "reason": reason}


def _number(row: Row | None, name: str) -> float:
    value = row[name] if row is not None else None
    return float("nan") if value is None else float(value)
