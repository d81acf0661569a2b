"""Rank agreement of two lists of numbers, larger is better: how well one predicts the order of the other.

`truth` is what is predicted (downstream quality), `scores` what predicts (benchmark accuracy). Every statistic here
gets values, never ranks, so that none can be turned upside down by its caller. Ties are averaged over all orders that
they leave open; nothing missing is ever ranked. All functions take one pair of lists or many at once: arrays of shape
(..., n) are compared along the last axis.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Orders = NDArray[np.intp]
GAINS = ("rank", "rank0", "exponential", "raw")
PERSISTENCE = 0.9
EXACT = 9
DRAWS = 20_000
LEAST = 3
_SLACK = 1e-9


def average_ranks(values: ArrayLike) -> Array:
    """Return ranks from 1 for the smallest, ties averaged, along the last axis."""
    x = np.asarray(values, dtype=float)
    less = (x[..., None, :] < x[..., :, None]).sum(-1)
    same = (x[..., None, :] == x[..., :, None]).sum(-1)
    ranks: Array = less + (same + 1) / 2
    return ranks


def ndcg(truth: ArrayLike, scores: ArrayLike, gains: str = "rank") -> Array:
    """Return NDCG with discounts 1/log2(1 + place) (Järvelin and Kekäläinen 2002), in 0..1; NaN if no gain is above 0.

    Gains are `rank` (n for the best … 1), `rank0` (n − 1 … 0), `exponential` (2^rank0 − 1) or `raw` (the truth itself).
    Items with equal scores share the mean of their gains (McSherry and Najork 2008).

    Raises:
        ValueError: an unknown kind of gains, or raw gains below 0.
    """
    gained = _gains(np.asarray(truth, dtype=float), gains)
    n = gained.shape[-1]
    discount = 1 / np.log2(np.arange(2, n + 2))
    ideal = (np.sort(gained, axis=-1)[..., ::-1] * discount).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = (gained * _shared(np.asarray(scores, dtype=float), discount)).sum(-1) / ideal
    return found


def _gains(truth: Array, kind: str) -> Array:
    if kind not in GAINS:
        raise ValueError(f"gains must be one of {', '.join(GAINS)}, not '{kind}'")
    if kind == "raw":
        if (truth < 0).any():
            raise ValueError("raw gains must not be below 0; gains by rank are defined for any values")
        return truth
    ranks = average_ranks(truth)
    if kind == "rank":
        return ranks
    found: Array = ranks - 1 if kind == "rank0" else np.exp2(ranks - 1) - 1
    return found


def _shared(scores: Array, weights: Array) -> Array:
    """Return for each item the mean weight of the places that its score leaves open, best place first."""
    total = np.concatenate([[0.0], np.cumsum(weights)])
    above = (scores[..., None, :] > scores[..., :, None]).sum(-1)
    same = (scores[..., None, :] == scores[..., :, None]).sum(-1)
    found: Array = (total[above + same] - total[above]) / same
    return found


def rbo(truth: ArrayLike, scores: ArrayLike, persistence: float = PERSISTENCE) -> Array:
    """Return rank-biased overlap, extrapolated (Webber, Moffat and Zobel 2010, eq. 30), in 0..1.

    Ties are averaged over all orders that they leave open (RBO^a of Corsi and Urbano 2024): an item is in the first d
    with the share of such orders that put it there.

    Raises:
        ValueError: persistence is not strictly between 0 and 1.
    """
    if not 0 < persistence < 1:
        raise ValueError(f"persistence must be between 0 and 1, not {persistence}")
    one, other = _within(np.asarray(truth, dtype=float)), _within(np.asarray(scores, dtype=float))
    overlap = (one * other).sum(-1)
    n = overlap.shape[-1]
    depth = np.arange(1, n + 1)
    weights = (1 - persistence) / persistence * persistence**depth / depth
    found: Array = (overlap * weights).sum(-1) + overlap[..., -1] / n * persistence**n
    return found


def _within(values: Array) -> Array:
    """Return (..., depth, item): the share of open orders in which an item is among the first `depth`."""
    n = values.shape[-1]
    above = (values[..., None, :] > values[..., :, None]).sum(-1)
    same = (values[..., None, :] == values[..., :, None]).sum(-1)
    depth = np.arange(1, n + 1)[:, None]
    found: Array = np.clip((depth - above[..., None, :]) / same[..., None, :], 0, 1)
    return found


def spearman(truth: ArrayLike, scores: ArrayLike) -> Array:
    """Return Spearman's ρ, Pearson's correlation of average ranks; NaN if one side is constant."""
    x, y = average_ranks(truth), average_ranks(scores)
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    return found


def kendall(truth: ArrayLike, scores: ArrayLike) -> Array:
    """Return Kendall's τ-b; NaN if one side is constant."""
    x, y = _signs(truth), _signs(scores)
    return _weighed(x, y, np.ones(x.shape[-1]))


def weighted_tau(truth: ArrayLike, scores: ArrayLike) -> Array:
    """Return the weighted τ with additive hyperbolic weights (Vigna 2015), a swap at the top weighing most.

    The mean of the two that rank items by one side, ties by the other, as scipy's `weightedtau(rank=True)`.
    """
    x, y = np.broadcast_arrays(np.asarray(truth, dtype=float), np.asarray(scores, dtype=float))
    first, second = np.triu_indices(x.shape[-1], 1)
    found: list[Array] = []
    for by, then in ((x, y), (y, x)):
        order = np.lexsort((-then, -by), axis=-1)
        rank = np.argsort(order, axis=-1)
        weight = 1 / (1 + rank)
        found.append(_weighed(_signs(x), _signs(y), weight[..., first] + weight[..., second]))
    mean: Array = (found[0] + found[1]) / 2
    return mean


def _signs(values: ArrayLike) -> Array:
    x = np.asarray(values, dtype=float)
    first, second = np.triu_indices(x.shape[-1], 1)
    found: Array = np.sign(x[..., first] - x[..., second])
    return found


def _weighed(x: Array, y: Array, weight: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = (weight * x * y).sum(-1) / np.sqrt((weight * x * x).sum(-1) * (weight * y * y).sum(-1))
    return found


Measure = Callable[..., Array]
MEASURES: Mapping[str, Measure] = {
    "ndcg": ndcg,
    "rbo": rbo,
    "weighted_tau": weighted_tau,
    "spearman": spearman,
    "kendall": kendall,
}
SYMMETRIC = frozenset({"spearman", "kendall", "weighted_tau"})


def options_of(name: str, gains: str = "rank", persistence: float = PERSISTENCE) -> dict[str, Any]:
    """Return the options that a statistic takes, of all that are set."""
    given: dict[str, dict[str, Any]] = {"ndcg": {"gains": gains}, "rbo": {"persistence": persistence}}
    return given.get(name, {})


@dataclass(frozen=True, slots=True)
class Agreement:
    """One statistic on n pairs, beside what a random order gives.

    `expected` is its mean over random orders of the scores. `p_greater` is the share of these orders with a value as
    large or larger, `p_two_sided` (correlations only) with one as far from 0. `orders` is how many were looked at,
    `exact` whether these were all. What is undefined is None, with the `reason`.
    """

    name: str
    n: int
    value: float | None
    expected: float | None = None
    p_greater: float | None = None
    p_two_sided: float | None = None
    orders: int = 0
    exact: bool = False
    reason: str | None = None


def agreement(
    name: str,
    truth: ArrayLike,
    scores: ArrayLike,
    *,
    gains: str = "rank",
    persistence: float = PERSISTENCE,
    seed: int = 0,
    draws: int = DRAWS,
) -> Agreement:
    """Return a statistic with its permutation test.

    All n! orders up to n = 9; beyond that `draws` random ones, and then (1 + hits) / (1 + draws), which is valid at any
    level (Phipson and Smyth 2010).

    Raises:
        ValueError: fewer than 3 pairs, lists of different length, or a value that is not finite.
    """
    x, y = _checked(truth, scores)
    n, options = len(x), options_of(name, gains, persistence)
    value = float(MEASURES[name](x, y, **options))
    if not np.isfinite(value):
        reason = "no gain is above 0" if name == "ndcg" else "one side is constant"
        return Agreement(name, n, None, reason=reason)
    if np.ptp(y) == 0:
        return Agreement(name, n, value, value, reason="the scores are all equal, so no order is better than another")
    exact, extra = n <= EXACT, 0 if n <= EXACT else 1
    null = null_values(name, x, y, options, all_orders(n) if exact else random_orders(n, seed, draws))
    count = len(null) + extra
    greater = (int((null >= value - _SLACK).sum()) + extra) / count
    far = (int((np.abs(null) >= abs(value) - _SLACK).sum()) + extra) / count
    two_sided = far if name in SYMMETRIC else None
    expected = round(float(null.mean()), 12) + 0.0  # no minus before a zero
    return Agreement(name, n, value, expected, greater, two_sided, len(null), exact)


def null_values(name: str, truth: Array, scores: Array, options: Mapping[str, Any], orders: Orders) -> Array:
    """Return a statistic for each order of the scores, `orders` of shape (m, n).

    What is a sum over items, or over pairs of them, is looked up rather than computed anew for each order.
    """
    if name in _TABLES:
        table = _TABLES[name](truth, scores, **options)
        return _summed(table, orders)
    if name == "kendall" or not (_tied(truth) or _tied(scores)):
        return _paired_null(name, truth, scores, orders)
    step = max(1, 4_000_000 // len(truth) ** 2)
    return np.concatenate([weighted_tau(truth, scores[orders[k : k + step]]) for k in range(0, len(orders), step)])


def _summed(table: Array, orders: Orders) -> Array:
    found = np.zeros(len(orders))
    for item in range(len(table)):
        found += table[item, orders[:, item]]
    return found


def _paired_null(name: str, truth: Array, scores: Array, orders: Orders) -> Array:
    """Return τ-b, or the weighted τ of lists without ties, for each order."""
    n = len(truth)
    sign_x, sign_y = (np.sign(v[:, None] - v[None, :]) for v in (truth, scores))
    by_x, by_y = (1 / (1 + n - average_ranks(v)) for v in (truth, scores))
    plain, left, right = np.zeros(len(orders)), np.zeros(len(orders)), np.zeros(len(orders))
    for first, second in zip(*np.triu_indices(n, 1), strict=True):
        one, other = orders[:, first], orders[:, second]
        agree = sign_x[first, second] * sign_y[one, other]
        plain += agree
        if name != "kendall":
            left += (by_x[first] + by_x[second]) * agree
            right += (by_y[one] + by_y[other]) * agree
    if name == "kendall":
        plain /= np.sqrt(np.triu(sign_x**2).sum() * np.triu(sign_y**2).sum())
        return plain
    both: Array = (left + right) / (2 * (n - 1) * by_x.sum())
    return both


def _tied(values: Array) -> bool:
    return len(np.unique(values)) < len(values)


def _ndcg_table(truth: Array, scores: Array, gains: str = "rank") -> Array:
    gained, discount = _gains(truth, gains), 1 / np.log2(np.arange(2, len(truth) + 2))
    ideal = (np.sort(gained)[::-1] * discount).sum()
    found: Array = np.outer(gained, _shared(scores, discount)) / ideal
    return found


def _rbo_table(truth: Array, scores: Array, persistence: float = PERSISTENCE) -> Array:
    n = len(truth)
    depth = np.arange(1, n + 1)
    weights = (1 - persistence) / persistence * persistence**depth / depth
    weights[-1] += persistence**n / n
    found: Array = np.einsum("d,di,dj->ij", weights, _within(truth), _within(scores))
    return found


def _spearman_table(truth: Array, scores: Array) -> Array:
    x, y = (average_ranks(v) - (len(v) + 1) / 2 for v in (truth, scores))
    found: Array = np.outer(x, y) / np.sqrt((x * x).sum() * (y * y).sum())
    return found


_TABLES: Mapping[str, Callable[..., Array]] = {
    "ndcg": _ndcg_table,
    "rbo": _rbo_table,
    "spearman": _spearman_table,
}


@cache
def all_orders(n: int) -> Orders:
    """Return all permutations of 0 … n − 1, shape (n!, n)."""
    found: Orders = np.zeros((1, 0), dtype=np.intp)
    for size in range(n):
        parts = [np.insert(found, place, size, axis=1) for place in range(size + 1)]
        found = np.concatenate(parts)
    return found


def random_orders(n: int, seed: int, draws: int) -> Orders:
    """Return `draws` random permutations, shape (draws, n)."""
    rng = np.random.default_rng(seed)
    return np.argsort(rng.random((draws, n)), axis=1)


def _checked(*lists: ArrayLike) -> list[Array]:
    found = [np.asarray(values, dtype=float) for values in lists]
    sizes: Any = {x.shape for x in found}
    if len(sizes) != 1 or found[0].ndim != 1:
        raise ValueError("the lists must have one length")
    if len(found[0]) < LEAST:
        raise ValueError(f"a rank correlation needs at least {LEAST} pairs, not {len(found[0])}")
    if not all(np.isfinite(x).all() for x in found):
        raise ValueError("a value is missing or not finite; leave its pair out first")
    return found
