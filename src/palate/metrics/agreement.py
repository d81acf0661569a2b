"""How far people agree: raw, Cohen's, Fleiss' and Krippendorff's figures, with intervals over items.

Each figure is a function of sums over items, so that a resample of items is a resample of those sums. An undefined
figure is None with its reason; raw agreement is there whenever two people labelled one thing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from palate.metrics.intervals import FEW, bootstrap_mean, percentiles
from palate.metrics.ratings import NOT_GIVEN, Counts, Ratings

Array = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]
Weights = Literal["none", "linear", "quadratic"]
Statistic = Callable[[Array], Array]
RESAMPLES = 1000
MOST_LABELS = 60
ONE_LABEL = "one label used"
ONE_PERSON = "one annotator"
NOTHING_SHARED = "no shared items"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of agreement.

    `items` are those it is of, with two labels or more; `annotators` those who gave them. `reason` says why `value`,
    or, where there is one, `ci95` is None.
    """

    name: str
    value: float | None
    ci95: tuple[float, float] | None
    method: str | None
    items: int
    annotators: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PairFigures:
    """Two annotators on the items that both labelled."""

    first: str
    second: str
    raw: Figure
    kappa: Figure


def raw_agreement(ratings: Ratings, seed: int = 0) -> Figure:
    """Return the share of pairs of annotators who gave one label, averaged over units (Fleiss 1971's mean P)."""
    if missing := _undefined("raw", ratings):
        return missing
    shared = ratings.pairable()
    values = _unit_agreement(shared.counts())
    found = bootstrap_mean(values.tolist(), shared.items.tolist(), "items", seed)
    ci95 = None if found is None else (found.low, found.high)
    reason = None if found else "one item: no interval"
    method = found.method if found else None
    return Figure("raw", float(values.mean()), ci95, method, shared.item_count, shared.active, reason)


def krippendorff_alpha(ratings: Ratings, level: Level, seed: int = 0) -> Figure:
    """Return Krippendorff's alpha (Krippendorff 2011, "Computing Krippendorff's alpha-reliability").

    alpha = 1 - D_o / D_e over the coincidences of labels within units; units with one label tell nothing and are
    left out. The difference of two labels is 0 or 1 (nominal), their distance in mid-ranks of all labels given
    (ordinal), or that of the labels themselves (interval); it enters squared.
    """
    name = f"alpha {level}"
    if missing := _undefined(name, ratings):
        return missing
    assert len(ratings.labels) <= MOST_LABELS, "more labels than coincidences can be kept of"
    shared = ratings.pairable()
    counts = shared.counts()
    size = counts.shape[1]
    values = np.array(shared.labels, dtype=float) if level == "interval" else np.arange(size, dtype=float)
    each = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(size)
    each /= (counts.sum(axis=1) - 1)[:, None, None]
    sums = _by_item(each.reshape(len(counts), -1), shared.items)
    return _figure(name, sums, lambda s: _alpha(s.reshape(-1, size, size), level, values), shared, seed)


def fleiss_kappa(ratings: Ratings, seed: int = 0) -> Figure:
    """Return Fleiss' kappa (Fleiss 1971, Psychological Bulletin 76, 378-382), for labels without an order.

    It is defined for one and the same number of labels a unit: units with the most frequent number of them are used
    (of equally frequent ones the larger), and `items` counts those.
    """
    if missing := _undefined("fleiss", ratings):
        return missing
    shared = ratings.pairable()
    numbers = (shared.codes != NOT_GIVEN).sum(axis=1)
    usual = max(np.unique(numbers), key=lambda n: (int((numbers == n).sum()), int(n)))
    kept = numbers == usual
    used = Ratings(shared.codes[kept], shared.labels, shared.annotators, shared.items[kept])
    counts = used.counts()
    sums = np.column_stack([_unit_agreement(counts), np.ones(len(counts)), counts])
    return _figure("fleiss", _by_item(sums, used.items), _fleiss, used, seed)


def cohen_kappa(ratings: Ratings, first: str, second: str, weights: Weights = "none", seed: int = 0) -> PairFigures:
    """Return raw agreement and Cohen's kappa of two annotators (Cohen 1960; weighted: Cohen 1968).

    `linear` and `quadratic` weigh a disagreement by the distance of the two labels in their order.
    """
    places = [ratings.annotators.index(name) for name in (first, second)]
    own = Ratings(ratings.codes[:, places], ratings.labels, (first, second), ratings.items)
    raw = raw_agreement(own, seed)
    name = "cohen" if weights == "none" else f"cohen {weights}"
    if raw.value is None:
        return PairFigures(first, second, raw, Figure(name, None, None, None, 0, own.active, raw.reason))
    shared = own.pairable()
    size = len(ratings.labels)
    cells = np.zeros((len(shared.codes), size * size))
    cells[np.arange(len(cells)), shared.codes[:, 0] * size + shared.codes[:, 1]] = 1
    weigh = _weights(size, weights)
    sums = _by_item(cells, shared.items)
    kappa = _figure(name, sums, lambda s: _kappa(s.reshape(-1, size, size), weigh), shared, seed)
    return PairFigures(first, second, raw, kappa)


def cohen_pairs(ratings: Ratings, weights: Weights = "none", seed: int = 0) -> list[PairFigures]:
    """Return Cohen's kappa of every two annotators who share an item, those who share most first."""
    given = (ratings.codes != NOT_GIVEN).astype(int)
    both = given.T @ given
    pairs = combinations(range(len(ratings.annotators)), 2)
    shared = sorted(((a, b) for a, b in pairs if both[a, b]), key=lambda p: -both[p])
    names = ratings.annotators
    return [cohen_kappa(ratings, names[a], names[b], weights, seed) for a, b in shared]


def _undefined(name: str, ratings: Ratings) -> Figure | None:
    """Return the figure of a table in which nobody can agree with anybody, else None."""
    active = ratings.active
    if active < 2:
        return Figure(name, None, None, None, 0, active, ONE_PERSON if active else "no labels")
    if not len(ratings.pairable().codes):
        return Figure(name, None, None, None, 0, active, NOTHING_SHARED)
    return None


def _figure(name: str, sums: Array, statistic: Statistic, used: Ratings, seed: int) -> Figure:
    """Return a figure and its bootstrap interval over items.

    Args:
        name: of the figure.
        sums: items × what the statistic is made of.
        statistic: draws × sums to draws, NaN where undefined; the NaN never leaves this module.
        used: the table, for its counts.
        seed: of the bootstrap.
    """
    items, annotators = len(sums), used.active
    value = float(statistic(sums.sum(axis=0)[None])[0])
    if np.isnan(value):
        return Figure(name, None, None, None, items, annotators, ONE_LABEL)
    if items < FEW:
        reason = f"fewer than {FEW} items: no interval"
        return Figure(name, value, None, None, items, annotators, reason)
    found = statistic(_resampled(sums, seed))
    lost = int(np.isnan(found).sum())
    found = found[~np.isnan(found)]
    if lost > RESAMPLES // 20:
        reason = f"undefined in {lost} of {RESAMPLES} resamples: no interval"
        return Figure(name, value, None, None, items, annotators, reason)
    if np.ptp(found) < 1e-12:
        return Figure(name, value, None, None, items, annotators, "all resamples alike: no interval")
    return Figure(name, value, percentiles(found, items), "bootstrap over items", items, annotators)


def _resampled(sums: Array, seed: int) -> Array:
    """Return the totals of `RESAMPLES` draws of items; items with the same sums are drawn as one kind."""
    kinds, often = np.unique(sums, axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(sums), often / len(sums), size=RESAMPLES)
    totals: Array = draws @ kinds
    return totals


def _by_item(values: Array, items: NDArray[np.int64]) -> Array:
    places = np.unique(items, return_inverse=True)[1]
    found = np.zeros((int(places.max()) + 1, values.shape[1]))
    np.add.at(found, places, values)
    return found


def _unit_agreement(counts: Counts) -> Array:
    """Return for each unit the share of ordered pairs of its labels that are alike."""
    n = counts.sum(axis=1)
    found: Array = (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    return found


def _alpha(coincidences: Array, level: Level, values: Array) -> Array:
    margins = coincidences.sum(axis=2)
    n = margins.sum(axis=1)
    if level == "nominal":
        gaps = np.broadcast_to(1 - np.eye(len(values)), coincidences.shape)
    else:
        # The ordinal distance, the sum of the margins between two labels and half their own, is one of mid-ranks.
        places = (
            np.cumsum(margins, axis=1) - margins / 2 if level == "ordinal" else np.broadcast_to(values, margins.shape)
        )
        gaps = (places[:, :, None] - places[:, None, :]) ** 2
    observed = (coincidences * gaps).sum(axis=(1, 2))
    expected = (margins[:, :, None] * margins[:, None, :] * gaps).sum(axis=(1, 2)) / (n - 1)
    return _one_minus(observed, expected)


def _fleiss(sums: Array) -> Array:
    mean, margins = sums[:, 0] / sums[:, 1], sums[:, 2:]
    chance = ((margins / margins.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    one = (margins > 0).sum(axis=1) < 2
    return _one_minus(1 - mean, np.where(one, 0.0, 1 - chance))


def _kappa(tables: Array, weights: Array) -> Array:
    n = tables.sum(axis=(1, 2))
    chance = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :] / n[:, None, None]
    return _one_minus((tables * weights).sum(axis=(1, 2)), (chance * weights).sum(axis=(1, 2)))


def _one_minus(observed: Array, expected: Array) -> Array:
    """Return 1 - observed / expected, NaN where nothing could have differed."""
    possible = expected > 0
    return np.where(possible, 1 - observed / np.where(possible, expected, 1.0), np.nan)


def _weights(size: int, weights: Weights) -> Array:
    steps = np.abs(np.arange(size)[:, None] - np.arange(size)[None, :]).astype(float)
    found: Array = (steps > 0).astype(float) if weights == "none" else steps if weights == "linear" else steps**2
    return found
