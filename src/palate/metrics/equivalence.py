"""Are two means alike within a margin that was fixed beforehand? Not finding a difference does not say so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

Verdict = Literal["equivalent", "different", "inconclusive"]
FloorVerdict = Literal["met", "missed", "inconclusive"]
LEVEL = 0.05
FEWEST_ALIKE = 5  # the sign test's 0.5 ** n is within LEVEL from here on
NO_SPREAD = "all values are the same: without a spread there is nothing to test"


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The mean of paired differences against ±`margin`.

    `p_lower` is of the hypothesis that the mean is at or below -margin, `p_upper` that it is at or above +margin;
    `ci90` is the interval that goes with the two tests. None where undefined, with the `reason`.
    """

    n: int
    margin: float
    mean: float | None
    p_lower: float | None
    p_upper: float | None
    ci90: tuple[float, float] | None
    verdict: Verdict
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Floor:
    """A mean against a floor: met if the whole 90 % interval is at or above it, missed if it is all below."""

    n: int
    floor: float
    mean: float | None
    ci90: tuple[float, float] | None
    verdict: FloorVerdict
    reason: str | None = None


def tost(differences: Sequence[float], margin: float) -> Equivalence:
    """Test equivalence by two one-sided paired t tests (Schuirmann 1987) at 5 % each.

    `equivalent` if both are significant, which is the same as a 90 % interval inside ±margin; `different` if that
    interval lies wholly beyond the margin on one side; else `inconclusive`.

    Args:
        differences: one a pair.
        margin: above 0, in the unit of the differences.
    """
    assert margin > 0, "a margin of nothing can never be kept"
    data = np.asarray(differences, dtype=float)
    n, mean = len(data), float(np.mean(data)) if len(data) else None
    interval, reason = _interval(data)
    if mean is None or interval is None:
        return Equivalence(n, margin, mean, None, None, None, "inconclusive", reason)
    error = float(data.std(ddof=1)) / float(np.sqrt(n))
    p_lower = float(stats.t.sf((mean + margin) / error, n - 1))
    p_upper = float(stats.t.cdf((mean - margin) / error, n - 1))
    verdict: Verdict = "inconclusive"
    if max(p_lower, p_upper) < LEVEL:
        verdict = "equivalent"
    elif interval[0] > margin or interval[1] < -margin:
        verdict = "different"
    return Equivalence(n, margin, mean, p_lower, p_upper, interval, verdict)


def above_floor(values: Sequence[float], floor: float) -> Floor:
    """Compare a mean with a floor at 5 % on either side.

    Where all values are the same there is no t interval; the sign test decides, which takes `FEWEST_ALIKE` of them.
    """
    data = np.asarray(values, dtype=float)
    if not len(data):
        return Floor(0, floor, None, None, "inconclusive", "no values")
    mean = float(data.mean())
    interval, reason = _interval(data)
    if interval is None:
        alone: FloorVerdict = "inconclusive" if len(data) < FEWEST_ALIKE else "met" if mean >= floor else "missed"
        return Floor(len(data), floor, mean, None, alone, reason)
    verdict: FloorVerdict = "met" if interval[0] >= floor else "missed" if interval[1] < floor else "inconclusive"
    return Floor(len(data), floor, mean, interval, verdict)


def mean_ci95(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % t interval of a mean; None for fewer than two values, or where all are the same."""
    return _interval(np.asarray(values, dtype=float), 0.975)[0]


def _interval(
    data: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", level: float = 0.95
) -> tuple[tuple[float, float] | None, str | None]:
    """Return the two-sided t interval whose upper end is at `level`, or why there is none."""
    if len(data) < 2:
        return None, f"{'one value' if len(data) else 'no values'}: a test needs two or more"
    if np.ptp(data) < 1e-12:
        return None, NO_SPREAD
    mean, error = float(data.mean()), float(data.std(ddof=1)) / float(np.sqrt(len(data)))
    half = float(stats.t.ppf(level, len(data) - 1)) * error
    return (mean - half, mean + half), None
