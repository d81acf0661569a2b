"""Figures of agreement against krippendorff, scikit-learn, plain loops, tables worked by hand and public votes."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from palate.metrics import (
    Figure,
    Level,
    Ratings,
    Weights,
    cohen_kappa,
    cohen_pairs,
    fleiss_kappa,
    krippendorff_alpha,
    raw_agreement,
    tabulate,
)

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
SK: dict[Weights, str | None] = {"none": None, "linear": "linear", "quadratic": "quadratic"}
SCALE = (1, 2, 3, 4, 5)


def table(*columns: str, scale: Any = None) -> Ratings:
    """Return the table of annotators whose labels are the signs of a text each; a dot is a gap."""
    rows = [(k, f"a{c}", sign) for c, column in enumerate(columns) for k, sign in enumerate(column) if sign != "."]
    return tabulate(sorted(rows, key=lambda r: r[0]), scale)


def random_table(seed: int, items: int = 40, people: int = 4, gaps: float = 0.2) -> tuple[Ratings, Any]:
    """Return a table on the scale 1 to 5 and the same as floats, annotators × items, with NaN for gaps."""
    rng = np.random.default_rng(seed)
    true = rng.integers(1, 6, items)
    values = np.clip(true[None, :] + rng.integers(-1, 2, (people, items)), 1, 5).astype(float)
    values[rng.random(values.shape) < gaps] = np.nan
    rows = [(i, f"a{a}", int(v)) for a, row in enumerate(values) for i, v in enumerate(row) if not np.isnan(v)]
    return tabulate(rows, SCALE), values


def plain_raw(columns: Any) -> float:
    """Return mean agreement of pairs, one item after the other."""
    shares = []
    for item in np.array(columns, dtype=float).T:
        labels = [v for v in item if not np.isnan(v)]
        pairs = list(combinations(labels, 2))
        if pairs:
            shares.append(sum(a == b for a, b in pairs) / len(pairs))
    return sum(shares) / len(shares)


def plain_fleiss(rows: list[list[int]]) -> float:
    """Return Fleiss' kappa of items × labels counts as the paper writes it, with loops."""
    total, n = len(rows), sum(rows[0])
    shares = [sum(row[j] for row in rows) / (total * n) for j in range(len(rows[0]))]
    each = [(sum(c * c for c in row) - n) / (n * (n - 1)) for row in rows]
    mean, chance = sum(each) / total, sum(p * p for p in shares)
    return (mean - chance) / (1 - chance)


@given(st.integers(0, 10_000))
def test_alpha_equals_krippendorff_on_random_tables(seed: int) -> None:
    ratings, values = random_table(seed)
    for level in LEVELS:
        expected = krippendorff.alpha(reliability_data=values, level_of_measurement=level, value_domain=list(SCALE))
        assert krippendorff_alpha(ratings, level).value == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 10_000))
def test_kappa_equals_scikit_learn_on_random_tables(seed: int) -> None:
    ratings, values = random_table(seed)
    both = ~np.isnan(values[0]) & ~np.isnan(values[1])
    first, second = (values[k][both].astype(int) for k in (0, 1))
    for weights, theirs in SK.items():
        expected = cohen_kappa_score(first, second, weights=theirs, labels=list(SCALE))
        found = cohen_kappa(ratings, "a0", "a1", weights)
        assert found.kappa.value == pytest.approx(expected, abs=1e-12)
        assert found.raw.value == pytest.approx(float((first == second).mean()))
        assert found.kappa.items == int(both.sum())


@given(st.integers(0, 10_000))
def test_raw_and_fleiss_equal_plain_loops(seed: int) -> None:
    ratings, values = random_table(seed)
    assert raw_agreement(ratings).value == pytest.approx(plain_raw(values))
    whole, whole_values = random_table(seed, gaps=0)
    counts = [[int((item == label).sum()) for label in SCALE] for item in whole_values.T]
    assert fleiss_kappa(whole).value == pytest.approx(plain_fleiss(counts))


def test_cohen_by_hand() -> None:
    # 20 + 15 of 50 alike; chance (25 · 30 + 25 · 20) / 2500 = 0.5, so (0.7 - 0.5) / 0.5 = 0.4.
    ratings = table("y" * 25 + "n" * 25, "y" * 20 + "n" * 5 + "y" * 10 + "n" * 15)
    found = cohen_kappa(ratings, "a0", "a1")
    assert found.kappa.value == pytest.approx(0.4)
    assert found.raw.value == pytest.approx(0.7)


def test_fleiss_by_hand() -> None:
    # Three people, four items: aaa aab abb bbb. P = 1, 1/3, 1/3, 1, mean 2/3; chance 1/4 + 1/4.
    # (2/3 - 1/2) / (1/2) = 1/3.
    assert fleiss_kappa(table("aaab", "aabb", "abbb")).value == pytest.approx(1 / 3)


def test_fleiss_of_the_much_quoted_table_of_ten_items_and_fourteen_raters() -> None:
    counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    rows = [
        (item, f"r{rater}", label)
        for item, row in enumerate(counts)
        for rater, label in enumerate([k + 1 for k, c in enumerate(row) for _ in range(c)])
    ]
    found = fleiss_kappa(tabulate(rows))
    assert found.value == pytest.approx(0.2099, abs=1e-4)
    assert found.value == pytest.approx(plain_fleiss(counts))
    assert (found.items, found.annotators) == (10, 14)
    assert found.ci95 is not None


def test_alpha_by_hand() -> None:
    # Coincidences aa 2, bb 2, ab and ba 1 each: D_o = 2/6, D_e = (3·3 + 3·3) / (6·5) = 0.6, alpha = 1 - 5/9.
    assert krippendorff_alpha(table("aab", "abb"), "nominal").value == pytest.approx(4 / 9)


def test_fleiss_takes_the_items_with_the_usual_number_of_labels() -> None:
    found = fleiss_kappa(table("aaabb", "aabb.", "abbba"))
    assert found.items == 4
    assert found.value == fleiss_kappa(table("aaab", "aabb", "abbb")).value


@pytest.mark.parametrize(
    ("ratings", "raw", "reason"),
    [
        (table("aaaaaaaaaaaa", "aaaaaaaaaaaa"), 1.0, "one label used"),
        (table("abababababab"), None, "one annotator"),
        (table("ababababab..........", "..........babababbba"), None, "no shared items"),
        (tabulate([]), None, "no labels"),
    ],
)
def test_what_is_undefined_says_why_and_raw_agreement_stays(ratings: Ratings, raw: float | None, reason: str) -> None:
    agreed = raw_agreement(ratings)
    assert agreed.value == raw
    for found in [fleiss_kappa(ratings), *(krippendorff_alpha(ratings, level) for level in LEVELS[:2])]:
        assert (found.value, found.ci95, found.reason) == (None, None, reason)
    if len(ratings.annotators) == 2:
        pair = cohen_kappa(ratings, "a0", "a1")
        assert (pair.kappa.value, pair.kappa.reason, pair.raw.value) == (None, reason, raw)


def test_full_agreement_is_not_certain() -> None:
    found = raw_agreement(table("ab" * 10, "ab" * 10))
    assert found.ci95 == pytest.approx((0.839, 1.0), abs=1e-3)
    assert found.method == "wilson over items (all alike)"
    alpha = krippendorff_alpha(table("ab" * 10, "ab" * 10), "nominal")
    assert (alpha.value, alpha.ci95, alpha.reason) == (1.0, None, "all resamples alike: no interval")


def test_few_items_have_no_interval_and_rare_labels_say_how_often_they_vanish() -> None:
    few = krippendorff_alpha(table("abab", "abaa"), "nominal")
    assert few.value is not None
    assert (few.ci95, few.reason) == (None, "fewer than 10 items: no interval")
    rare = krippendorff_alpha(table("a" * 29 + "b", "a" * 30), "nominal")
    assert rare.value is not None
    assert rare.ci95 is None
    assert rare.reason is not None
    assert "of 1000 resamples" in rare.reason


def test_two_who_never_agree_and_use_one_label_each_have_a_kappa_of_zero() -> None:
    assert cohen_kappa(table("a" * 5, "b" * 5), "a0", "a1").kappa.value == 0


def test_the_bootstrap_equals_one_that_draws_items_one_by_one() -> None:
    ratings, values = random_table(3, items=60)
    rng = np.random.default_rng(1)
    drawn = [
        krippendorff.alpha(
            reliability_data=values[:, rng.integers(0, 60, 60)],
            level_of_measurement="ordinal",
            value_domain=list(SCALE),
        )
        for _ in range(600)
    ]
    found = krippendorff_alpha(ratings, "ordinal")
    assert found.ci95 is not None
    assert found.ci95 == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.03)
    assert found.ci95 == krippendorff_alpha(ratings, "ordinal").ci95


def test_two_answers_of_an_item_are_drawn_together() -> None:
    rng = np.random.default_rng(0)
    rows = [(i, f"a{a}", int(rng.integers(1, 6))) for i in range(30) for a in range(3)]
    doubled = [((i, side), a, label) for i, a, label in rows for side in ("x", "y")]
    owner = {(i, side): i for i in range(30) for side in ("x", "y")}
    once, twice = tabulate(rows, SCALE), tabulate(doubled, SCALE, owner)
    assert twice.item_count == 30
    one, two = fleiss_kappa(once), fleiss_kappa(twice)
    assert two.items == one.items == 30
    assert two.value == pytest.approx(one.value)
    assert two.ci95 == pytest.approx(one.ci95)


@given(st.integers(0, 1000), st.permutations(range(4)))
def test_the_order_of_annotators_does_not_matter(seed: int, order: list[int]) -> None:
    _, values = random_table(seed)
    one, two = (
        tabulate([(i, f"a{a}", int(v[a, i])) for i in range(40) for a in range(4) if not np.isnan(v[a, i])], SCALE)
        for v in (values, values[order])
    )
    for level in LEVELS:
        assert krippendorff_alpha(one, level) == krippendorff_alpha(two, level)
    assert fleiss_kappa(one) == fleiss_kappa(two)


def test_bad_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="labelled q twice"):
        tabulate([("q", "ann", 1), ("q", "ann", 2)])
    with pytest.raises(ValueError, match="not on the scale 1, 2"):
        tabulate([("q", "ann", 3)], (1, 2))


def test_labels_are_sorted_as_numbers() -> None:
    assert tabulate([("q", "ann", 10), ("q", "ben", 9.5), ("q", "cy", -1)]).labels == (-1, 9.5, 10)


def inside(figure: Figure) -> bool:
    return figure.ci95 is not None and figure.value is not None and figure.ci95[0] < figure.value < figure.ci95[1]


@pytest.mark.shared
def test_pandalm(shared: Path) -> None:
    rows = json.loads((shared / "pandalm/testset-v1.json").read_text())
    names = ["annotator1", "annotator2", "annotator3"]
    ratings = tabulate([(r["idx"], name, r[name]) for r in rows for name in names])
    values = np.array([[r[name] for r in rows] for name in names], dtype=float)
    assert values.shape == (3, 999)
    for level in LEVELS:
        found = krippendorff_alpha(ratings, level)
        assert found.value == pytest.approx(krippendorff.alpha(reliability_data=values, level_of_measurement=level))
        assert (found.items, found.annotators) == (999, 3)
        assert inside(found)
    assert raw_agreement(ratings).value == pytest.approx(plain_raw(values))
    counts = [[int((item == label).sum()) for label in (0, 1, 2)] for item in values.T]
    assert fleiss_kappa(ratings).value == pytest.approx(plain_fleiss(counts))
    for pair in cohen_pairs(ratings):
        first, second = (values[names.index(name)] for name in (pair.first, pair.second))
        assert pair.kappa.value == pytest.approx(cohen_kappa_score(first, second))
        assert inside(pair.kappa)


@pytest.mark.shared
def test_the_named_judges_of_mt_bench(shared: Path) -> None:
    lines = (shared / "mtbench_human_votes/human.jsonl").read_text().splitlines()
    votes = [json.loads(line) for line in lines]
    keys = [(v["question_id"], v["turn"], v["model_a"], v["model_b"]) for v in votes]
    ratings = tabulate([(key, v["judge"], v["winner"]) for key, v in zip(keys, votes, strict=True)])
    values = np.where(ratings.codes.T < 0, np.nan, ratings.codes.T.astype(float))
    expected = krippendorff.alpha(reliability_data=values, level_of_measurement="nominal")
    found = krippendorff_alpha(ratings, "nominal")
    assert found.value == pytest.approx(expected)
    assert (len(ratings.annotators), found.items) == (65, sum(n > 1 for n in Counter(keys).values()))
    checked = 0
    for pair in cohen_pairs(ratings):
        first, second = (ratings.codes[:, ratings.annotators.index(name)] for name in (pair.first, pair.second))
        both = (first >= 0) & (second >= 0)
        used = set(first[both]) | set(second[both])
        if pair.kappa.value is None:
            assert len(used) == 1
            assert pair.raw.value == 1.0
        else:
            assert pair.kappa.value == pytest.approx(cohen_kappa_score(first[both], second[both]))
            checked += 1
    assert checked > 100
