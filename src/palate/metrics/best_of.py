"""Best-of-k from N scored and graded samples, exactly: over all k-subsets, or by the first k.

Samples are slots. A sample without a score (NaN, or minus infinity) is never picked while one with a score is there.
Among equal scores each is as likely; the first-k rule takes the earliest. The derivation is in `docs/bon.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palate.metrics.intervals import RESAMPLES, Interval, cluster_sums, percentiles

Array = NDArray[np.float64]
LEAST_SURE = 0.975


@dataclass(frozen=True, slots=True)
class Picks:
    """What the picks of one item come to, for each k.

    `value` is the mean grade of the picks that have one, NaN if none has; `covered` how probable a pick with a grade
    is; `tied` how probable it is that the highest score is shared.
    """

    value: Array
    covered: Array
    tied: Array


@lru_cache(maxsize=256)
def _below(n: int, ks: tuple[int, ...]) -> Array:
    """Return, for each k and each b = 0…n, the probability that a random k-subset of n slots lies within b of them."""
    table = np.array([[comb(b, k) / comb(n, k) for b in range(n + 1)] for k in ks])
    table.setflags(write=False)
    return table


def pick_weights(scores: ArrayLike, ks: Sequence[int]) -> tuple[Array, Array]:
    """Return how probable each sample is to be the pick of a uniformly random k-subset, and how probable a tie is.

    Args:
        scores: (N,) floats; what is not finite is a failure.
        ks: values from 1 to N.

    Returns:
        (K, N) weights, each row summing to the probability that the subset has a scored sample, and (K,) ties.

    Raises:
        ValueError: a k below 1 or above N.
    """
    found = _scores(scores)
    n = len(found)
    _check(ks, n)
    table, rows = _below(n, tuple(ks)), np.arange(len(ks))[:, None]
    below = np.sum(found[None, :] < found[:, None], axis=1)
    equal = np.sum(found[None, :] == found[:, None], axis=1)
    live = np.isfinite(found)
    on_top = table[rows, below + equal] - table[rows, below]
    weights = np.where(live, on_top / equal, 0.0)
    # Exactly one of the tied: this very sample and k - 1 slots below it.
    alone = np.array([[comb(int(b), k - 1) / comb(n, k) for b in below] for k in ks])
    shared = np.sum(np.where(live, weights - alone, 0.0), axis=1)
    return weights, np.where(shared > 1e-12, shared, 0.0)


def over_subsets(scores: ArrayLike, grades: ArrayLike, ks: Sequence[int]) -> Picks:
    """Return the exact mean over all k-subsets of the grade of the sample with the highest score.

    Args:
        scores: (N,) floats; what is not finite is a failure.
        grades: (N,) floats; NaN where there is none.
        ks: values from 1 to N.
    """
    weights, tied = pick_weights(scores, ks)
    return _graded(weights, np.asarray(grades, dtype=float), tied)


def first_k(scores: ArrayLike, ks: Sequence[int]) -> tuple[list[int | None], list[bool]]:
    """Return for each k the place of the highest score among the first k samples, and whether it is shared.

    The earliest of equal scores is taken. None if none of the k has a score.

    Raises:
        ValueError: a k below 1 or above N.
    """
    found = _scores(scores)
    _check(ks, len(found))
    tops = [int(np.argmax(found[:k])) for k in ks]
    picks = [top if np.isfinite(found[top]) else None for top in tops]
    shared = [p is not None and int(np.sum(found[:k] == found[p])) > 1 for p, k in zip(picks, ks, strict=True)]
    return picks, shared


def over_first(scores: ArrayLike, grades: ArrayLike, ks: Sequence[int]) -> Picks:
    """Return the grades of the picks among the first k samples."""
    picks, shared = first_k(scores, ks)
    given = np.asarray(grades, dtype=float)
    weights = np.zeros((len(picks), len(given)))
    for row, pick in enumerate(picks):
        if pick is not None:
            weights[row, pick] = 1.0
    return _graded(weights, given, np.array(shared, dtype=float))


def cross_fitted(draws: ArrayLike, ks: Sequence[int]) -> Picks:
    """Return what choosing by the grade itself gives, chosen by all other draws and valued by the one left out.

    Args:
        draws: (R, N) grades of R separate draws of the grader, R at least 2; NaN where there is none.
        ks: values from 1 to N.
    """
    given = np.asarray(draws, dtype=float)
    if len(given) < 2:
        raise ValueError("cross-fitting needs at least two draws")
    folds = [over_subsets(mean_grades(np.delete(given, r, axis=0)), given[r], ks) for r in range(len(given))]
    values, covered = np.array([f.value for f in folds]), np.array([f.covered for f in folds])
    total = covered.sum(axis=0)
    summed = np.nansum(np.where(covered > 0, values * covered, 0.0), axis=0)
    value = np.divide(summed, total, out=np.full(len(total), np.nan), where=total > 0)
    return Picks(value, total / len(folds), np.mean([f.tied for f in folds], axis=0))


def mean_grades(draws: ArrayLike) -> Array:
    """Return the mean over draws of each sample's grades, (R, N) to (N,); NaN where no draw has one."""
    given = np.asarray(draws, dtype=float)
    counts = np.sum(~np.isnan(given), axis=0)
    sums = np.nansum(given, axis=0)
    found: Array = np.divide(sums, counts, out=np.full(given.shape[1], np.nan), where=counts > 0)
    return found


def gap_closed(
    values: Sequence[float],
    random: Sequence[float],
    oracle: Sequence[float],
    clusters: Sequence[object],
    unit: str,
    seed: int = 0,
) -> tuple[float | None, Interval | None, str | None]:
    """Return the share of the way from random to oracle choice: the ratio of mean gains, its interval, or why not.

    Args:
        values: what the choice under test gives, one an item.
        random: what a random choice gives on the same items.
        oracle: what the oracle gives on the same items.
        clusters: what is resampled as a whole.
        unit: its name in the method.
        seed: of resampling.

    The interval is of the bootstrap over clusters of numerator and denominator together. Where more than 2.5 % of the
    resamples have no gap to close, the ratio has no interval.
    """
    base = np.asarray(random, dtype=float)
    gain, gap = np.asarray(values, dtype=float) - base, np.asarray(oracle, dtype=float) - base
    if not len(gap) or gap.sum() <= 1e-9:
        return None, None, "there is no gap between random and oracle choice"
    value = float(gain.sum() / gap.sum())
    tops, _ = cluster_sums([float(v) for v in gain], clusters)
    ends, _ = cluster_sums([float(v) for v in gap], clusters)
    if len(tops) < 2:
        return value, None, f"one of {unit}: no interval"
    ratios = _ratios(tops, ends, seed)
    if len(ratios) < LEAST_SURE * RESAMPLES:
        return value, None, "the gap between random and oracle choice is not clear of 0"
    return value, Interval(*percentiles(ratios, len(tops)), f"bootstrap over {unit}"), None


def _ratios(tops: Array, ends: Array, seed: int) -> Array:
    rng, n = np.random.default_rng(seed), len(tops)
    found = []
    for _ in range(RESAMPLES):
        picks = rng.integers(0, n, n)
        end = ends[picks].sum()
        if end > 1e-9:
            found.append(tops[picks].sum() / end)
    return np.array(found)


def _graded(weights: Array, grades: Array, tied: Array) -> Picks:
    known = ~np.isnan(grades)
    covered = weights[:, known].sum(axis=1)
    sums = weights[:, known] @ grades[known]
    value = np.divide(sums, covered, out=np.full(len(covered), np.nan), where=covered > 1e-12)
    return Picks(value, np.minimum(covered, 1.0), tied)


def _scores(scores: ArrayLike) -> Array:
    found = np.asarray(scores, dtype=float)
    return np.where(np.isfinite(found), found, -np.inf)


def _check(ks: Sequence[int], n: int) -> None:
    if any(not 1 <= k <= n for k in ks):
        raise ValueError(f"k must be from 1 to the {n} samples, not {list(ks)}")
