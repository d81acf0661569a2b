"""Intervals against published values, and what they promise against simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from palate.metrics import bootstrap_mean, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(20, 20, 0.839, 1.0), (7, 10, 0.397, 0.892), (0, 20, 0.0, 0.161)],
)
def test_wilson_reference_values(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert found.low == pytest.approx(low, abs=5e-4)
    assert found.high == pytest.approx(high, abs=5e-4)


@given(st.integers(1, 400), st.data())
def test_wilson_is_scipys(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    reference = stats.binomtest(k, n).proportion_ci(method="wilson")
    found = wilson(k, n)
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=1e-12)


def test_bootstrap_over_items_is_close_to_scipys() -> None:
    values = ([1.0] * 55 + [0.5] * 10 + [0.0] * 35) * 3
    found = bootstrap_mean(values, range(len(values)), "items")
    assert found is not None
    reference = stats.bootstrap(
        (np.array(values),), np.mean, method="percentile", n_resamples=4000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert found.method == "bootstrap over items"
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=0.01)


def test_clusters_widen_the_interval() -> None:
    values = [1.0] * 50 + [0.0] * 50
    alone = bootstrap_mean(values, range(100), "items")
    grouped = bootstrap_mean(values, [k // 10 for k in range(100)], "users")
    assert alone is not None
    assert grouped is not None
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)


def test_no_spread_is_not_certainty() -> None:
    found = bootstrap_mean([1.0] * 40, [k // 2 for k in range(40)], "users")
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.839, 1.0), abs=5e-4)
    assert found.method == "wilson over users (all alike)"


def test_one_cluster_has_no_interval() -> None:
    assert bootstrap_mean([1.0, 0.0], ["a", "a"], "users") is None


def test_bootstrap_covers_the_truth() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for trial in range(400):
        tastes = rng.beta(6, 4, size=20)
        values = (rng.random((20, 3)) < tastes[:, None]).astype(float).ravel()
        found = bootstrap_mean(list(values), [k // 3 for k in range(60)], "users", seed=trial)
        hits += found is not None and found.low <= 0.6 <= found.high
    assert 0.92 <= hits / 400 <= 0.98
