"""Counts, accuracies and what is undefined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.metrics import both_right, by_group, macro_mean, mean_interval, spread, tally

OUTCOMES = st.sampled_from(["correct", "wrong", "tie", None])


def test_constant_scorer_is_at_chance() -> None:
    found = tally(["tie"] * 10)
    assert (found.accuracy, found.strict_accuracy, found.ties) == (0.5, 0.0, 10)


def test_failures_lower_coverage_and_nothing_else() -> None:
    found = tally(["correct"] * 6 + [None] * 4)
    assert (found.n, found.scored, found.coverage, found.accuracy) == (10, 6, 0.6, 1.0)


def test_nothing_scored_has_no_accuracy() -> None:
    found = mean_interval([None, None], ["a", "b"])
    assert found.tally.accuracy is None
    assert found.interval is None
    assert tally([]).coverage is None


@given(st.lists(OUTCOMES, max_size=60))
def test_accuracy_is_the_mean_of_the_credits(outcomes: list[str | None]) -> None:
    credit = {"correct": 1.0, "tie": 0.5, "wrong": 0.0}
    scored = [credit[o] for o in outcomes if o is not None]
    found = tally(outcomes)
    assert found.scored + outcomes.count(None) == found.n
    assert found.accuracy == (pytest.approx(sum(scored) / len(scored)) if scored else None)


@pytest.mark.parametrize(
    ("outcomes", "users", "method"),
    [
        (["correct"] * 20, [str(k) for k in range(20)], "wilson"),
        (["correct"] * 20, None, "wilson"),
        (["correct", "tie", "wrong"] * 5, [str(k) for k in range(15)], "bootstrap over items"),
        (["correct", "wrong", "correct"] * 12, [str(k % 11) for k in range(36)], "bootstrap over users"),
        (["correct", "wrong", "correct"] * 5, [str(k % 4) for k in range(15)], "wilson over users (few)"),
        (["correct"] * 6, ["a", "a", "b", "b", "c", "c"], "wilson over users (all alike)"),
    ],
)
def test_the_method_follows_the_data(outcomes: list[str], users: list[str] | None, method: str) -> None:
    found = mean_interval(outcomes, users).interval
    assert found is not None
    assert found.method == method


def test_both_right_counts_pairs_once_and_only_whole_ones() -> None:
    twins = {"a": "b", "b": "a", "c": "d", "d": "c", "e": "f", "f": "e", "g": None}
    outcomes = {"a": "correct", "b": "correct", "c": "correct", "d": "wrong", "e": "correct", "f": None, "g": "correct"}
    assert both_right(outcomes, twins) == (0.5, 2)
    assert both_right({"g": "correct"}, twins) == (None, 0)


@given(st.lists(st.tuples(OUTCOMES, st.sampled_from("xyz")), min_size=1, max_size=40))
def test_groups_add_up(pairs: list[tuple[str | None, str]]) -> None:
    outcomes, groups = [o for o, _ in pairs], [g for _, g in pairs]
    found = by_group(outcomes, groups, None, intervals=False)
    assert sum(r.tally.n for r in found.values()) == len(pairs)
    assert sum(r.tally.correct for r in found.values()) == outcomes.count("correct")


def test_macro_mean_is_missing_if_a_group_is() -> None:
    assert macro_mean([0.5, 1.0]) == 0.75
    assert macro_mean([0.5, None]) is None
    assert macro_mean([]) is None


def test_spread_over_users() -> None:
    assert spread([0.0, 0.5, 1.0, 0.5]) == pytest.approx(
        {"users": 4, "mean": 0.5, "sd": 0.408248, "min": 0.0, "q1": 0.375, "median": 0.5, "q3": 0.625, "max": 1.0},
        abs=1e-6,
    )
    assert spread([1.0]) is None
