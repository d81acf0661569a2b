"""The difference between two sets of outcomes on the same items: interval, sign-flip test, and bounds."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from palate.metrics.intervals import FEW, cluster_sums, percentiles, resampled_means, wilson

EXACT_UP_TO = 14
FLIPS = 10_000
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second.

    `n` items exist, `common` are scored on both sides, and `value`, `ci95` and `p` speak of those (None if there are
    none, or for the interval and p fewer than two clusters). `bounds` is where the difference over all `n` items
    could lie, however the missing ones had gone.
    """

    n: int
    common: int
    value: float | None
    ci95: tuple[float, float] | None
    p: float | None
    method: str
    bounds: tuple[float, float] | None


def difference(
    first: Sequence[float | None],
    second: Sequence[float | None],
    clusters: Sequence[Hashable],
    unit: str,
    seed: int = 0,
) -> Difference:
    """Compare two lists of credits (1 correct, ½ tie, 0 wrong, None not scored), joined by position.

    Args:
        first: credits of the one side.
        second: credits of the other, same items.
        clusters: what is resampled and flipped as a whole: the user of each item.
        unit: the name of the clusters in the method.
        seed: of resampling and of Monte Carlo flips.

    Fewer than `FEW` clusters are too few for a bootstrap; then a t interval is used and named. Where all clusters
    differ by one and the same amount there is no spread; then the interval reaches as far as Wilson's for 0 of as many.
    """
    rows = list(zip(first, second, clusters, strict=True))
    both = [(a - b, c) for a, b, c in rows if a is not None and b is not None]
    if not rows:
        return Difference(0, 0, None, None, None, "none", None)
    bounds = _bounds(rows)
    if not both:
        return Difference(len(rows), 0, None, None, None, "none", bounds)
    gaps, kept = [d for d, _ in both], [c for _, c in both]
    sums, counts = cluster_sums(gaps, kept)
    value = float(sums.sum() / counts.sum())
    if len(sums) < 2:
        return Difference(len(rows), len(both), value, None, None, f"one of {unit}: no interval", bounds)
    p, how = sign_flip(sums, seed)
    if np.ptp(sums / counts) < 1e-12:
        edge = wilson(0, len(sums)).high
        interval, name = (max(-1.0, value - edge), min(1.0, value + edge)), f"wilson over {unit} (all alike)"
    elif len(sums) < FEW:
        interval, name = _t_interval(sums, counts), f"t over {unit} (few)"
    else:
        interval = percentiles(resampled_means(sums, counts, seed), len(sums))
        name = f"paired bootstrap over {unit}"
    return Difference(len(rows), len(both), value, interval, p, f"{name}; {how} sign-flip test", bounds)


def _t_interval(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> tuple[float, float]:
    """Return the t interval of a ratio of cluster sums (Cochran 1977, section 6.4), within what is possible."""
    n, value = len(sums), float(sums.sum() / counts.sum())
    spread = float(np.sqrt(np.sum((sums - value * counts) ** 2) * n / (n - 1)) / counts.sum())
    half = float(stats.t.ppf(0.975, n - 1)) * spread
    return max(-1.0, value - half), min(1.0, value + half)


def sign_flip(sums: NDArray[np.float64] | Sequence[float], seed: int = 0) -> tuple[float, str]:
    """Return the two-sided p-value that the clusters' sums are symmetric about 0, and how it was reached.

    All sign patterns up to `EXACT_UP_TO` non-zero clusters, seeded Monte Carlo beyond with (b + 1) / (B + 1)
    (Phipson & Smyth 2010). Without a non-zero cluster p is 1.
    """
    data = np.asarray(sums, dtype=float)
    data = data[np.abs(data) > 1e-12]
    seen = abs(data.sum()) - 1e-9
    n = len(data)
    if n == 0:
        return 1.0, "exact"
    if n <= EXACT_UP_TO:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ data) >= seen)), "exact"
    rng = np.random.default_rng(seed)
    hits, step = 0, max(1, _CHUNK // n)
    for start in range(0, FLIPS, step):
        signs = rng.integers(0, 2, size=(min(step, FLIPS - start), n)) * 2 - 1
        hits += int(np.sum(np.abs(signs @ data) >= seen))
    return (hits + 1) / (FLIPS + 1), f"Monte Carlo ({FLIPS:,})"


def _bounds(rows: Sequence[tuple[float | None, float | None, Hashable]]) -> tuple[float, float]:
    low = [(0.0 if a is None else a) - (1.0 if b is None else b) for a, b, _ in rows]
    high = [(1.0 if a is None else a) - (0.0 if b is None else b) for a, b, _ in rows]
    return float(np.mean(low)), float(np.mean(high))
