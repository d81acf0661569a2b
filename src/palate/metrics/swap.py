"""Does benchmark A predict better than B? A test that swaps their ranks within models, and an interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palate.metrics.intervals import Interval
from palate.metrics.ranking import MEASURES, average_ranks, options_of

Array = NDArray[np.float64]
MOST = 14
DRAWS = 20_000
_FEW = 399
_MOST_SIMULATED = 8
METHOD = "parametric bootstrap (joint normal)"


@dataclass(frozen=True, slots=True)
class Swap:
    """The difference of two agreements on the same n models.

    `p` is two-sided: the share of swaps that give a difference as far from 0. `least_p` is the smallest p that so few
    models can give at all. What is undefined is None, with the `reason`.
    """

    name: str
    n: int
    a: float | None
    b: float | None
    difference: float | None
    p: float | None
    least_p: float | None
    interval: Interval | None
    exact: bool
    reason: str | None = None


def swap_test(name: str, truth: ArrayLike, a: ArrayLike, b: ArrayLike, *, seed: int = 0, **options: Any) -> Swap:
    """Compare how well two benchmarks agree with the truth.

    If neither predicts better, the rank that A gives a model and the rank that B gives it could be exchanged: all 2^n
    exchanges up to n = 14, beyond that 20,000 random ones. Ranks are exchanged rather than values, since the scales of
    the two differ.
    """
    x, left, right = (average_ranks(v) for v in (truth, a, b))
    if len({len(x), len(left), len(right)}) != 1:
        raise ValueError("the three lists must have one length")
    measure, kept, n = MEASURES[name], options_of(name, **options), len(x)
    gold = np.asarray(truth, dtype=float) if kept.get("gains") == "raw" else x
    of_a, of_b = float(measure(gold, left, **kept)), float(measure(gold, right, **kept))
    if not np.isfinite([of_a, of_b]).all():
        return Swap(name, n, _number(of_a), _number(of_b), None, None, None, None, False, "one side is constant")
    flips, exact = _flips(n, seed)
    one, other = np.where(flips, right, left), np.where(flips, left, right)
    null = measure(gold, one, **kept) - measure(gold, other, **kept)
    null = np.where(np.isfinite(null), null, 0.0)
    found = of_a - of_b
    extra = 0 if exact else 1
    p = (int((np.abs(null) >= abs(found) - 1e-9).sum()) + extra) / (len(null) + extra)
    same = int((left == right).sum())
    least = min(1.0, 2.0 ** (1 + same - n)) if exact else 1 / (len(null) + 1)
    return Swap(name, n, of_a, of_b, found, p, least, _interval(name, x, left, right, seed, kept), exact)


def swap_power(
    name: str,
    rho_a: float,
    rho_b: float,
    between: float,
    n: int,
    *,
    level: float = 0.05,
    seed: int = 0,
    simulations: int = 200,
    **options: Any,
) -> float:
    """Return how often the swap test tells two benchmarks apart on n models, by simulation without noise.

    Args:
        name: the statistic; raw gains have no scale here.
        rho_a: true correlation of A with the truth.
        rho_b: that of B.
        between: that of A with B; correlations that cannot be together are brought to the nearest that can.
        n: models.
        level: of the two-sided test.
        seed: of the simulation.
        simulations: how many.
        options: `gains` or `persistence`.
    """
    measure, kept = MEASURES[name], options_of(name, **options)
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(np.array([[1, rho_a, rho_b], [rho_a, 1, between], [rho_b, between, 1]]))
    root = vectors * np.sqrt(np.clip(values, 0, None))
    all_of_them = n <= _MOST_SIMULATED
    hits = 0
    for drawn in rng.standard_normal((simulations, n, 3)) @ root.T:
        x, a, b = average_ranks(drawn.T)
        flips = _flips(n, seed)[0] if all_of_them else rng.random((_FEW, n)) < 0.5
        null = measure(x, np.where(flips, b, a), **kept) - measure(x, np.where(flips, a, b), **kept)
        null = np.where(np.isfinite(null), null, 0.0)
        found = abs(float(measure(x, a, **kept) - measure(x, b, **kept)))
        extra = 0 if all_of_them else 1
        hits += (int((np.abs(null) >= found - 1e-9).sum()) + extra) / (len(null) + extra) <= level
    return hits / simulations


def _flips(n: int, seed: int) -> tuple[NDArray[np.bool_], bool]:
    if n <= MOST:
        return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1, True
    return np.random.default_rng(seed).random((DRAWS, n)) < 0.5, False


def _interval(name: str, x: Array, a: Array, b: Array, seed: int, options: dict[str, Any]) -> Interval | None:
    """Return the percentile interval of the difference, models drawn from a joint normal of the same correlations.

    In simulations of 6, 10 and 20 models it held the truth in 90 to 97 %, the basic interval in 74 to 97 %.

    Spearman's ρ becomes Pearson's by 2 sin(πρ/6) (Pearson 1907). Raw gains have no scale in it: None.
    """
    if options.get("gains") == "raw" or any(np.ptp(v) == 0 for v in (x, a, b)):
        return None
    linear = 2 * np.sin(np.pi * np.corrcoef(np.stack([x, a, b])) / 6)
    values, vectors = np.linalg.eigh(linear)
    root = vectors * np.sqrt(np.clip(values, 0, None))
    drawn = np.random.default_rng(seed).standard_normal((4000, len(x), 3)) @ root.T
    measure = MEASURES[name]
    differences = measure(drawn[..., 0], drawn[..., 1], **options) - measure(drawn[..., 0], drawn[..., 2], **options)
    low, high = np.quantile(differences, [0.025, 0.975])
    return Interval(float(low), float(high), METHOD)


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
