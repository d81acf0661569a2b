"""Intervals and power of rank statistics, by simulating models like those at hand.

The picture: a reward model has a true quality on the benchmark and one downstream; over models the two are jointly
normal, up to how each scale is stretched, with correlation ρ; what is measured adds noise of known size. A statistic
of n models is then a random number whose distribution depends on ρ alone, and an interval for ρ is the set of values
under which the observed one is not among the 5 % most extreme (test inversion, Neyman 1937), half of the chance of
the very value counted as more extreme (mid-p, Lancaster 1961): few models allow few values. It is told on the
statistic's own scale: the mean that n such models would show if they were measured without noise. Resampling items
alone treats the models at hand as all there are and covers far too little; resampling models makes ties that are not
there and, with six of them, promises next to nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palate.metrics.intervals import Interval
from palate.metrics.ranking import DRAWS, EXACT, MEASURES, all_orders, null_values, options_of, random_orders

Array = NDArray[np.float64]
METHOD = "latent normal, mid-p test inversion"
SIMULATIONS = 2000
TAIL = 0.025
MOST_NOISE = 0.9
_CHUNK = 1_000_000
_GRID = np.round(np.sin(np.linspace(-np.pi / 2, np.pi / 2, 35)) * 0.995, 6)


@dataclass(frozen=True, slots=True)
class Band:
    """What a statistic does at each correlation of a grid: simulated values as measured, and mean without noise."""

    rho: Array
    seen: Array
    mean: Array

    def interval(self, value: float) -> Interval | None:
        """Return the means without noise at the correlations that `value` does not rule out; None if none is left."""
        below = np.count_nonzero(self.seen < value - 1e-9, axis=1)
        upto = np.count_nonzero(self.seen <= value + 1e-9, axis=1)
        middle = (below + upto) / (2 * self.seen.shape[1])
        inside = (middle >= TAIL) & (middle <= 1 - TAIL)
        if not inside.any():
            return None
        means = self.mean[inside]
        return Interval(float(means.min()), float(means.max()), METHOD)


def noise_share(values: ArrayLike, errors: ArrayLike | None) -> float | None:
    """Return the share of the values' variance that is noise of measurement, 0 without `errors`.

    None if noise makes up 90 % or more: then nothing can be said of an order.
    """
    if errors is None:
        return 0.0
    spread = float(np.var(np.asarray(values, dtype=float), ddof=1))
    noise = float(np.mean(np.square(np.asarray(errors, dtype=float))))
    share = noise / spread if spread > 0 else 1.0
    return share if share < MOST_NOISE else None


def latent_interval(
    name: str,
    truth: ArrayLike,
    scores: ArrayLike,
    *,
    truth_errors: ArrayLike | None = None,
    score_errors: ArrayLike | None = None,
    seed: int = 0,
    **options: Any,
) -> Interval | None:
    """Return the 95 % interval of a rank statistic; None where noise or the value leaves nothing to say.

    Args:
        name: as in `ranking.MEASURES`.
        truth: downstream quality, one a model.
        scores: benchmark values, in the same order.
        truth_errors: standard errors of `truth`; None for no noise.
        score_errors: those of `scores`.
        seed: of the simulation.
        options: `gains` or `persistence`.
    """
    x, y = np.asarray(truth, dtype=float), np.asarray(scores, dtype=float)
    left, right = noise_share(x, truth_errors), noise_share(y, score_errors)
    if left is None or right is None:
        return None
    kept = options_of(name, **options)
    value = float(MEASURES[name](x, y, **kept))
    scale = tuple(np.sort(x)) if kept.get("gains") == "raw" else None
    steps = (round(20 * left) / 20, round(20 * right) / 20)
    made = band(name, len(x), *steps, tuple(sorted(kept.items())), scale, seed)
    return made.interval(value) if np.isfinite(value) else None


@lru_cache(maxsize=64)
def band(
    name: str,
    n: int,
    truth_noise: float = 0.0,
    score_noise: float = 0.0,
    options: tuple[tuple[str, Any], ...] = (),
    scale: tuple[float, ...] | None = None,
    seed: int = 0,
    simulations: int = SIMULATIONS,
) -> Band:
    """Return what a statistic of n models does over correlations; `scale` are the sorted truths that raw gains need."""
    rng = np.random.default_rng(seed)
    one, two, left, right = rng.standard_normal((4, simulations, n))
    values, means = [], []
    for rho in _GRID:
        other = rho * one + np.sqrt(1 - rho * rho) * two
        clean = _value(name, one, other, dict(options), scale)
        seen = clean
        if truth_noise or score_noise:
            seen = _value(name, _noisy(one, left, truth_noise), _noisy(other, right, score_noise), dict(options), scale)
        values.append(seen)
        means.append(clean.mean())
    return Band(_GRID, np.array(values), np.array(means))


def _noisy(values: Array, noise: Array, share: float) -> Array:
    found: Array = np.sqrt(1 - share) * values + np.sqrt(share) * noise
    return found


def _value(
    name: str, truth: Array, scores: Array, options: Mapping[str, Any], scale: tuple[float, ...] | None = None
) -> Array:
    """Return a statistic of many simulated lists; these have no ties, so each is an order of the same ranks."""
    n = truth.shape[-1]
    ranks = np.argsort(np.argsort(scores, axis=-1), axis=-1)
    orders = np.take_along_axis(ranks, np.argsort(truth, axis=-1), axis=-1)
    plain = np.arange(1.0, n + 1)
    return null_values(name, plain if scale is None else np.array(scale), plain, options, orders)


def power(
    name: str,
    rho: float,
    n: int,
    *,
    truth_noise: float = 0.0,
    score_noise: float = 0.0,
    level: float = 0.05,
    seed: int = 0,
    simulations: int = SIMULATIONS,
    **options: Any,
) -> float:
    """Return how often n models tell a true correlation ρ from chance, by the one-sided permutation test at `level`.

    `truth_noise` and `score_noise` are the shares of variance that are noise.
    """
    kept = options_of(name, **options)
    null = _null(name, n, tuple(sorted(kept.items())), seed)
    rng = np.random.default_rng(seed)
    one, two, left, right = rng.standard_normal((4, simulations, n))
    other = rho * one + np.sqrt(1 - rho * rho) * two
    seen = _value(name, _noisy(one, left, truth_noise), _noisy(other, right, score_noise), kept)
    p = 1 - np.searchsorted(null, seen - 1e-9, side="left") / len(null)
    return float((p <= level).mean())


@lru_cache(maxsize=64)
def _null(name: str, n: int, options: tuple[tuple[str, Any], ...], seed: int) -> Array:
    """Return the sorted values of a statistic over random orders of n models without ties."""
    order = np.arange(n, dtype=float)
    orders = all_orders(n) if n <= EXACT else random_orders(n, seed, DRAWS)
    return np.sort(null_values(name, order, order, dict(options), orders))


def share_of_noise(items: int, spread: float, mean: float = 0.5) -> float:
    """Return the share of variance that is noise for accuracies of `items` items.

    `spread` is the standard deviation of true accuracies over models, `mean` a typical accuracy.
    """
    noise = mean * (1 - mean) / items
    return noise / (noise + spread * spread)


def joint_resamples(outcomes: ArrayLike, resamples: int = 2000, seed: int = 0) -> Array:
    """Return each model's mean over resampled items, the same items for all models: shape (resamples, models).

    Args:
        outcomes: credits, shape (models, items); NaN where an item is not scored.
        resamples: how many.
        seed: of the items drawn.

    Raises:
        ValueError: no item.
    """
    x = np.asarray(outcomes, dtype=float)
    if x.ndim != 2 or not x.shape[1]:
        raise ValueError("outcomes must have the shape (models, items), with at least one item")
    items = x.shape[1]
    known = ~np.isnan(x)
    filled, rng = np.where(known, x, 0.0).T, np.random.default_rng(seed)
    weights = known.T.astype(float)
    found = np.empty((resamples, len(x)))
    step = max(1, _CHUNK // items)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        counts = rng.multinomial(items, np.full(items, 1 / items), size=size).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[start : start + size] = (counts @ filled) / (counts @ weights)
    return found


def joint_noise(outcomes: ArrayLike, resamples: int = 2000, seed: int = 0) -> float | None:
    """Return the standard error of a model's mean beside the others', what the items do to all alike left out.

    Half the mean variance of pairwise differences over joint resamples, its root; None if a resample leaves a model
    without an item.
    """
    means = joint_resamples(outcomes, resamples, seed)
    first, second = np.triu_indices(means.shape[1], 1)
    variance = float(np.var(means[:, first] - means[:, second], axis=0, ddof=1).mean() / 2)
    return float(np.sqrt(variance)) if np.isfinite(variance) else None
