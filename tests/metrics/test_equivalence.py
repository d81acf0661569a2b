"""Equivalence against scipy's one-sided t tests, and what cannot be tested."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from palate.metrics import above_floor, mean_ci95, tost

MARGIN = 0.25


@given(st.integers(0, 5000), st.floats(-1, 1), st.integers(2, 60))
def test_both_tests_and_the_interval_equal_scipy(seed: int, shift: float, n: int) -> None:
    data = np.random.default_rng(seed).normal(shift, 0.7, n)
    found = tost(data.tolist(), MARGIN)
    lower = stats.ttest_1samp(data, -MARGIN, alternative="greater")
    upper = stats.ttest_1samp(data, MARGIN, alternative="less")
    two = stats.ttest_1samp(data, 0).confidence_interval(0.9)
    assert (found.p_lower, found.p_upper) == pytest.approx((lower.pvalue, upper.pvalue), rel=1e-9)
    assert found.ci90 == pytest.approx((two.low, two.high))
    assert mean_ci95(data.tolist()) == pytest.approx(tuple(stats.ttest_1samp(data, 0).confidence_interval(0.95)))
    assert (found.verdict == "equivalent") == (max(lower.pvalue, upper.pvalue) < 0.05)
    assert found.ci90 is not None
    inside = found.ci90[0] > -MARGIN and found.ci90[1] < MARGIN
    assert (found.verdict == "equivalent") == inside
    assert (found.verdict == "different") == (found.ci90[0] > MARGIN or found.ci90[1] < -MARGIN)


def test_the_three_verdicts() -> None:
    assert tost([0.1, -0.1] * 30, MARGIN).verdict == "equivalent"
    assert tost([0.9, 1.1] * 30, MARGIN).verdict == "different"
    assert tost([-0.9, -1.1] * 30, MARGIN).verdict == "different"
    assert tost([1.0, -1.0] * 5, MARGIN).verdict == "inconclusive"


def test_no_difference_seen_in_few_items_is_no_proof_of_equivalence() -> None:
    few, many = tost([1.0, -1.0, 0.0, 0.0], MARGIN), tost([1.0, -1.0, 0.0, 0.0] * 40, MARGIN)
    assert few.mean == many.mean == 0
    assert (few.verdict, many.verdict) == ("inconclusive", "equivalent")


@pytest.mark.parametrize(
    ("data", "reason"), [([], "no values"), ([0.5], "one value"), ([0.0] * 12, "all values are the same")]
)
def test_what_cannot_be_tested_says_why(data: list[float], reason: str) -> None:
    found = tost(data, MARGIN)
    assert (found.verdict, found.p_lower, found.p_upper, found.ci90) == ("inconclusive", None, None, None)
    assert found.reason is not None
    assert reason in found.reason
    assert found.mean == (data[0] if data else None)


def test_a_floor_is_met_missed_or_not_decided() -> None:
    assert above_floor([4, 5] * 20, 3.5).verdict == "met"
    assert above_floor([2, 3] * 20, 3.5).verdict == "missed"
    assert above_floor([3, 4] * 20, 3.5).verdict == "inconclusive"
    assert above_floor([4.0] * 20, 3.5).verdict == "met"
    assert above_floor([3.0] * 20, 3.5).verdict == "missed"
    assert above_floor([4.0], 3.5).verdict == "inconclusive"


@pytest.mark.parametrize("n", range(1, 12))
@pytest.mark.parametrize(("value", "verdict"), [(4.0, "met"), (3.0, "missed")])
def test_values_without_spread_decide_where_a_sign_test_does(n: int, value: float, verdict: str) -> None:
    significant = stats.binomtest(n, n, 0.5, alternative="greater").pvalue <= 0.05
    assert above_floor([value] * n, 3.5).verdict == (verdict if significant else "inconclusive")


def test_a_mean_of_nothing_is_undecided() -> None:
    assert above_floor([], 3.5).mean is None
