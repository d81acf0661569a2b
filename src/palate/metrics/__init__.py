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
from palate.metrics.agreement import (
    Figure,
    Level,
    PairFigures,
    Weights,
    cohen_kappa,
    cohen_pairs,
    fleiss_kappa,
    krippendorff_alpha,
    raw_agreement,
)
from palate.metrics.equivalence import Equivalence, Floor, above_floor, mean_ci95, tost
from palate.metrics.fdr import benjamini_hochberg
from palate.metrics.intervals import Interval, bootstrap_mean, wilson
from palate.metrics.paired import Difference, difference, sign_flip
from palate.metrics.ratings import Label, Ratings, tabulate

__all__ = [
    "CREDIT",
    "Difference",
    "Equivalence",
    "Figure",
    "Floor",
    "Interval",
    "Label",
    "Level",
    "PairFigures",
    "Ratings",
    "Result",
    "Tally",
    "Weights",
    "above_floor",
    "benjamini_hochberg",
    "bootstrap_mean",
    "both_right",
    "by_group",
    "cohen_kappa",
    "cohen_pairs",
    "difference",
    "fleiss_kappa",
    "krippendorff_alpha",
    "macro_mean",
    "mean_ci95",
    "mean_interval",
    "raw_agreement",
    "sign_flip",
    "spread",
    "tabulate",
    "tally",
    "tost",
    "wilson",
]
