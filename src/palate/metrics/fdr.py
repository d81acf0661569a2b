"""Many tests at once: the share of false alarms among the alarms, kept under a level."""

from collections.abc import Sequence

import numpy as np


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values: rejecting those under a level keeps the false discovery rate under it.

    Benjamini & Hochberg (1995); for tests that are independent or positively dependent.

    Args:
        p_values: one a test, each in [0, 1].
    """
    values = np.asarray(p_values, dtype=float)
    assert np.all((values >= 0) & (values <= 1)), "a p-value lies between 0 and 1"
    count = len(values)
    if count == 0:
        return []
    order = np.argsort(values)[::-1]
    ranks = np.arange(count, 0, -1)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(values[order] * count / ranks))
    return [float(v) for v in adjusted]
