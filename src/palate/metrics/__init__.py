"""Pure functions of numbers: accuracy, intervals, paired differences. They know no records, files or models."""

from palate.metrics.accuracy import (
    CREDIT,
    Result,
    Tally,
    both_right,
    by_group,
    macro_mean,
    mean_interval,
    spread,
    tally,
)
from palate.metrics.fdr import benjamini_hochberg
from palate.metrics.intervals import Interval, bootstrap_mean, wilson
from palate.metrics.paired import Difference, difference, sign_flip

__all__ = [
    "CREDIT",
    "Difference",
    "Interval",
    "Result",
    "Tally",
    "benjamini_hochberg",
    "bootstrap_mean",
    "both_right",
    "by_group",
    "difference",
    "macro_mean",
    "mean_interval",
    "sign_flip",
    "spread",
    "tally",
    "wilson",
]
