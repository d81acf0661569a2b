"""Intervals for a mean of values in [0, 1]: Wilson for whole counts, a bootstrap over clusters otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
RESAMPLES = 4000
FEW = 10
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval and the name of the method that gave it."""

    low: float
    high: float
    method: str


def wilson(successes: float, n: float, method: str = "wilson") -> Interval:
    """Return the Wilson score interval for a share (Wilson 1927, without continuity correction).

    Args:
        successes: how many, 0 to `n`; need not be whole when clusters are counted.
        n: independent observations, above 0.
        method: the name it is reported under.
    """
    z = float(stats.norm.ppf(0.975))
    p = successes / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    return Interval(max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half)), method)


def cluster_sums(values: Sequence[float], clusters: Sequence[object]) -> tuple[Array, Array]:
    """Return the sum of the values and the number of them in each cluster, in order of first appearance."""
    order: dict[object, int] = {}
    codes = np.array([order.setdefault(c, len(order)) for c in clusters], dtype=np.intp)
    sums: Array = np.bincount(codes, weights=np.asarray(values, dtype=float)).astype(float)
    return sums, np.bincount(codes).astype(float)


def resampled_means(sums: Array, counts: Array, seed: int, resamples: int = RESAMPLES) -> Array:
    """Return the means of `resamples` draws of whole clusters with replacement."""
    rng = np.random.default_rng(seed)
    n = len(sums)
    means = np.empty(resamples)
    step = max(1, _CHUNK // n)
    for start in range(0, resamples, step):
        stop = min(resamples, start + step)
        picks = rng.integers(0, n, size=(stop - start, n))
        means[start:stop] = sums[picks].sum(axis=1) / counts[picks].sum(axis=1)
    return means


def percentiles(means: Array, clusters: int) -> tuple[float, float]:
    """Return the expanded 95 % percentile interval (Hesterberg 2015, section 5.3).

    The plain percentile interval is too narrow by about sqrt(n / (n - 1)) and a t quantile; its levels are
    moved out accordingly.
    """
    t = float(stats.t.ppf(0.025, clusters - 1)) * float(np.sqrt(clusters / (clusters - 1)))
    level = float(stats.norm.cdf(t))
    low, high = np.quantile(means, [level, 1 - level])
    return float(low), float(high)


def bootstrap_mean(values: Sequence[float], clusters: Sequence[object], unit: str, seed: int = 0) -> Interval | None:
    """Return the bootstrap interval of the mean of values in [0, 1], resampling whole clusters.

    With fewer than `FEW` clusters, or where all of them have one and the same mean, a bootstrap promises too much;
    then Wilson with the number of clusters as n is used and named. Fewer than two clusters: None.
    """
    sums, counts = cluster_sums(values, clusters)
    if len(sums) < 2:
        return None
    alike = np.ptp(sums / counts) < 1e-12
    if alike or len(sums) < FEW:
        mean = float(sums.sum() / counts.sum())
        return wilson(mean * len(sums), len(sums), f"wilson over {unit} ({'all alike' if alike else 'few'})")
    low, high = percentiles(resampled_means(sums, counts, seed), len(sums))
    return Interval(low, high, f"bootstrap over {unit}")
