"""Differences on common items: by hand, against scipy, and under the null."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from palate.metrics import difference, sign_flip

CREDIT = st.sampled_from([0.0, 0.5, 1.0, None])


def test_sign_flip_by_hand() -> None:
    p, how = sign_flip([1.0, 1.0, 1.0, 1.0])
    assert (p, how) == (2 / 16, "exact")
    assert sign_flip([0.0, 0.0]) == (1.0, "exact")


@settings(max_examples=50)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_sign_flip_is_the_plain_loop(sums: list[int]) -> None:
    seen = abs(sum(sums))
    patterns = [
        abs(sum(s * v for s, v in zip(signs, sums, strict=True))) for signs in product((1, -1), repeat=len(sums))
    ]
    assert sign_flip([float(v) for v in sums])[0] == pytest.approx(np.mean([p >= seen for p in patterns]))


def test_sign_flip_is_scipys_permutation_test() -> None:
    sums = np.array([0.5, -1.0, 2.0, 1.5, 1.0, -0.5, 1.0, 2.5])
    reference = stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(sums)[0] == pytest.approx(reference.pvalue)


def test_monte_carlo_is_near_exact() -> None:
    sums = np.array([1.0] * 12 + [-1.0] * 5)
    exact = stats.binomtest(12, 17).pvalue
    p, how = sign_flip(sums)
    assert how.startswith("Monte Carlo")
    assert p == pytest.approx(exact, abs=0.02)


def test_only_common_items_count_and_bounds_hold_the_rest() -> None:
    found = difference([1.0, 1.0, 0.0, None], [0.0, 1.0, None, None], list("abcd"), "items")
    assert (found.n, found.common, found.value) == (4, 2, 0.5)
    assert found.bounds == (pytest.approx((1 + 0 - 1 - 1) / 4), pytest.approx((1 + 0 + 0 + 1) / 4))


@given(st.lists(st.tuples(CREDIT, CREDIT), min_size=1, max_size=12), st.data())
def test_bounds_contain_every_completion(pairs: list[tuple[float | None, float | None]], data: st.DataObject) -> None:
    found = difference([a for a, _ in pairs], [b for _, b in pairs], range(len(pairs)), "items")
    filled = [tuple(data.draw(st.sampled_from([0.0, 0.5, 1.0])) if v is None else v for v in pair) for pair in pairs]
    value = np.mean([a - b for a, b in filled])
    assert found.bounds is not None
    assert found.bounds[0] - 1e-9 <= value <= found.bounds[1] + 1e-9


def test_users_are_flipped_as_a_whole() -> None:
    first, second = [1.0] * 8, [0.0] * 8
    assert difference(first, second, list("aaaabbbb"), "users").p == 0.5
    assert difference(first, second, range(8), "items").p == 2 / 256


def test_few_clusters_take_a_t_interval() -> None:
    gaps = [1.0, 0.0, 0.5, 0.0, 1.0]
    found = difference(gaps, [0.0] * 5, range(5), "items")
    half = stats.t.ppf(0.975, 4) * np.std(gaps, ddof=1) / np.sqrt(5)
    assert found.ci95 == pytest.approx((0.5 - half, min(1.0, 0.5 + half)))
    assert found.method.startswith("t over items (few)")


def test_alike_everywhere_is_not_certain() -> None:
    found = difference([1.0] * 20, [1.0] * 20, range(20), "items")
    assert found.value == 0.0
    assert found.ci95 == pytest.approx((-0.161, 0.161), abs=5e-4)
    assert "all alike" in found.method


def test_nothing_in_common_is_undefined() -> None:
    found = difference([None], [1.0], ["a"], "items")
    assert (found.value, found.ci95, found.p, found.bounds) == (None, None, None, (-1.0, 0.0))
    assert difference([], [], [], "items").bounds is None


def test_lists_must_match() -> None:
    with pytest.raises(ValueError, match="shorter"):
        difference([1.0], [], ["a"], "items")


def test_the_test_keeps_its_level_and_the_interval_its_promise() -> None:
    rng = np.random.default_rng(5)
    rejected = covered = 0
    for trial in range(300):
        first, second = (list((rng.random(60) < 0.6).astype(float)) for _ in range(2))
        found = difference(first, second, [k // 3 for k in range(60)], "users", seed=trial)
        assert found.p is not None
        assert found.ci95 is not None
        rejected += found.p <= 0.05
        covered += found.ci95[0] <= 0 <= found.ci95[1]
    assert rejected / 300 <= 0.075
    assert covered / 300 >= 0.925
