"""Best-of-k against every subset, one by one."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palate.metrics.best_of import (
    cross_fitted,
    first_k,
    gap_closed,
    mean_grades,
    over_first,
    over_subsets,
    pick_weights,
)

NAN = float("nan")
SCORES = st.one_of(st.sampled_from([NAN, float("-inf"), float("inf")]), st.sampled_from([0.0, 0.25, 1.0, 2.5, -3.0]))
GRADES = st.one_of(st.just(NAN), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
ITEMS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(st.lists(SCORES, min_size=n, max_size=n), st.lists(GRADES, min_size=n, max_size=n))
)


def brute(scores: list[float], grades: list[float], k: int) -> tuple[float | None, float, float]:
    """Return value, coverage and ties over all subsets, each tied top with its share."""
    value = covered = tied = 0.0
    count = 0
    for subset in combinations(range(len(scores)), k):
        count += 1
        live = [j for j in subset if np.isfinite(scores[j])]
        if not live:
            continue
        top = max(scores[j] for j in live)
        best = [j for j in live if scores[j] == top]
        tied += len(best) > 1
        for j in best:
            if not np.isnan(grades[j]):
                covered += 1 / len(best)
                value += grades[j] / len(best)
    return (value / covered if covered else None), covered / count, tied / count


@settings(max_examples=300)
@given(ITEMS)
def test_the_estimator_is_the_mean_over_every_subset(item: Any) -> None:
    scores, grades = item
    ks = list(range(1, len(scores) + 1))
    found = over_subsets(scores, grades, ks)
    for place, k in enumerate(ks):
        value, covered, tied = brute(scores, grades, k)
        assert found.covered[place] == pytest.approx(covered, abs=1e-12)
        assert found.tied[place] == pytest.approx(tied, abs=1e-9)
        if value is None:
            assert np.isnan(found.value[place])
        else:
            assert found.value[place] == pytest.approx(value, abs=1e-9)


@given(ITEMS)
def test_weights_are_the_probability_that_anything_is_scored(item: Any) -> None:
    scores, _ = item
    n, failed = len(scores), sum(not np.isfinite(s) for s in scores)
    weights, _ = pick_weights(scores, range(1, n + 1))
    for k in range(1, n + 1):
        nothing = sum(1 for s in combinations(range(n), k) if all(not np.isfinite(scores[j]) for j in s))
        every = sum(1 for _ in combinations(range(n), k))
        assert weights[k - 1].sum() == pytest.approx(1 - nothing / every)
    assert failed == n or weights[-1].sum() == pytest.approx(1)


def test_a_broken_score_is_never_picked() -> None:
    assert first_k([NAN, 0.2, 0.9], [1, 2, 3]) == ([None, 1, 2], [False, False, False])
    assert first_k([float("inf"), 0.2], [2]) == ([1], [False])
    assert over_subsets([NAN, 0.2, 0.9], [1.0, 0.0, 0.5], [3]).value[0] == 0.5


def test_a_tie_is_counted_and_the_earliest_is_taken() -> None:
    assert first_k([0.5, 0.5], [1, 2]) == ([0, 0], [False, True])
    found = over_subsets([0.5, 0.5], [0.0, 1.0], [1, 2])
    assert list(found.value) == [0.5, 0.5]
    assert list(found.tied) == [0.0, 1.0]
    assert over_first([0.5, 0.5], [0.0, 1.0], [2]).value[0] == 0.0


def test_by_hand() -> None:
    # Four samples, scores 1 < 2 < 3 < 4, grades 0, 1, 0, 1: of the six pairs three are topped by the 4th,
    # two by the 3rd, one by the 2nd.
    assert over_subsets([1, 2, 3, 4], [0, 1, 0, 1], [2]).value[0] == pytest.approx(4 / 6)


@pytest.mark.parametrize("k", [0, 3])
def test_a_k_that_is_not_there_is_refused(k: int) -> None:
    for what in (lambda: pick_weights([1.0, 2.0], [k]), lambda: first_k([1.0, 2.0], [k])):
        with pytest.raises(ValueError, match="from 1 to the 2 samples"):
            what()


def test_large_n_stays_exact() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=128)
    weights, _ = pick_weights(scores, [1, 64, 128])
    assert np.allclose(weights.sum(axis=1), 1)
    assert np.allclose(weights[0], 1 / 128)
    assert weights[2, np.argmax(scores)] == 1.0


def test_its_standard_error_is_below_that_of_the_first_k() -> None:
    rng = np.random.default_rng(11)
    ks, n, found = [1, 2, 4, 8], 8, {"all": [], "first": []}
    for _ in range(1500):
        scores = rng.normal(size=n)
        grades = np.clip(0.5 + 0.2 * scores + 0.2 * rng.normal(size=n), 0, 1)
        found["all"].append(over_subsets(scores, grades, ks).value)
        found["first"].append(over_first(scores, grades, ks).value)
    every, first = np.array(found["all"]), np.array(found["first"])
    gap = np.abs(every.mean(axis=0) - first.mean(axis=0))
    assert np.all(gap < 4 * first.std(axis=0) / np.sqrt(len(first))), "both estimate the same"
    assert np.all(every.std(axis=0)[:3] < 0.9 * first.std(axis=0)[:3])
    assert np.allclose(every[:, 3], first[:, 3])


def test_choosing_and_valuing_by_one_grading_is_too_good_and_cross_fitting_is_not() -> None:
    rng = np.random.default_rng(5)
    naive, fair = [], []
    for _ in range(800):
        draws = 0.5 + 0.2 * rng.normal(size=(2, 8))  # all samples are equally good: the grader is pure noise
        naive.append(over_subsets(draws[0], draws[0], [8]).value[0])
        fair.append(cross_fitted(draws, [8]).value[0])
    assert np.mean(naive) > 0.7
    assert np.mean(fair) == pytest.approx(0.5, abs=0.03)
    with pytest.raises(ValueError, match="two draws"):
        cross_fitted([[0.5]], [1])


def test_mean_over_draws_leaves_out_what_is_missing() -> None:
    assert np.allclose(mean_grades([[1.0, NAN, NAN], [0.0, 0.5, NAN]]), [0.5, 0.5, NAN], equal_nan=True)


def test_share_of_the_gap() -> None:
    values, random, oracle = [0.5] * 12, [0.4] * 12, [0.6] * 12
    value, span, reason = gap_closed(values, random, oracle, list(range(12)), "items")
    assert value == pytest.approx(0.5)
    assert reason is None
    assert span is not None
    assert span.low == pytest.approx(0.5)
    assert gap_closed(random, random, random, list(range(12)), "items")[0] is None
    value, span, reason = gap_closed([0.5] * 4, [0.4] * 4, [0.9, 0.1, 0.6, 0.5], list("abcd"), "users")
    assert value == pytest.approx(0.4 / 0.5)
    assert span is None
    assert reason is not None
    assert "not clear of 0" in reason
    assert gap_closed([0.5], [0.4], [0.6], ["a"], "users")[2] == "one of users: no interval"


def test_the_interval_of_the_gap_covers() -> None:
    rng, hits = np.random.default_rng(2), 0
    for seed in range(60):
        random = rng.uniform(0.2, 0.5, 40)
        gap = rng.uniform(0.1, 0.3, 40)
        gain = gap * 0.5 + 0.05 * rng.normal(size=40)
        _, span, _ = gap_closed(list(random + gain), list(random), list(random + gap), list(range(40)), "items", seed)
        assert span is not None
        hits += span.low <= 0.5 <= span.high
    assert hits >= 52
