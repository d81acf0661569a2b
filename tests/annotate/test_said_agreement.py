"""Rows of people: read strictly, agreement worked by hand, results, judges beside people."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from said import first, save, second
from scipy import stats
from sklearn.metrics import cohen_kappa_score

import palate
from palate.annotate.agreement import UNNAMED, judged, majorities, questions
from palate.annotate.reading import read_annotations
from palate.annotate.results import FLOOR, MARGIN, results
from palate.errors import DataError, RunError
from palate.evaluation.runs import read_rows

# Ten items, three annotators. Of each item the three preferences: c chosen, r rejected, n no difference.
VOTES = ["ccc", "ccc", "ccr", "cnc", "crr", "ccc", "rrr", "ccn", "ccc", "cnn"]
WORDS = {"c": "chosen", "r": "rejected", "n": "none"}
PEOPLE = ["ana", "ben", "cy"]


def ten() -> list[dict[str, Any]]:
    return [
        first(f"q{k}", who, WORDS[sign])
        for k, signs in enumerate(VOTES)
        for who, sign in zip(PEOPLE, signs, strict=True)
    ]


@pytest.fixture
def said(tmp_path: Path) -> Any:
    def to(rows: list[dict[str, Any]]) -> Any:
        return read_annotations([save(tmp_path / "said.jsonl", rows)])

    return to


def test_agreement_worked_by_hand(said: Any) -> None:
    # Five items agree fully, five in one pair of three: raw is (5 + 5/3) / 10 = 2/3.
    counts = [sum(v.count(sign) for v in VOTES) for sign in "crn"]
    assert counts == [20, 6, 4]
    by_name = {q.name: q for q in questions(said(ten()))}
    raw, fleiss, alpha = by_name["preference"].figures
    assert raw.value == pytest.approx(2 / 3)
    chance = (20**2 + 6**2 + 4**2) / 30**2
    assert fleiss.value == pytest.approx((2 / 3 - chance) / (1 - chance))
    # Krippendorff: with three labels an item, D_o = 1 - raw; D_e = 1 - sum n (n - 1) / (30 · 29).
    expected = 1 - (20 * 19 + 6 * 5 + 4 * 3) / (30 * 29)
    assert alpha.value == pytest.approx(1 - (1 / 3) / expected)
    assert (raw.items, raw.annotators) == (10, 3)
    question = by_name["preference"]
    assert (question.items, question.annotators, question.labels) == (10, 3, 30)


def test_with_the_sides_unnamed_chance_is_even(said: Any) -> None:
    question = next(q for q in questions(said(ten())) if q.name == UNNAMED)
    raw, fleiss, _ = question.figures
    assert raw.value == pytest.approx(2 / 3)
    # Each side is named 26 times of 60 in both namings together, no difference 8 times.
    chance = 2 * (26 / 60) ** 2 + (8 / 60) ** 2
    assert fleiss.value == pytest.approx((2 / 3 - chance) / (1 - chance))
    assert (raw.items, question.labels) == (10, 30)


def test_nearly_one_sided_votes_are_no_sign_of_chance(said: Any) -> None:
    rows = [
        first(f"q{k}", who, "rejected" if (k, who) in {(0, "ana"), (1, "ben")} else "chosen")
        for k in range(20)
        for who in PEOPLE
    ]
    by_name = {q.name: q.figures for q in questions(said(rows))}
    assert by_name["preference"][1].value == pytest.approx(-1 / 29)
    assert by_name[UNNAMED][1].value == pytest.approx(13 / 15)


def test_ratings_are_ordinal_with_both_answers_as_units(said: Any) -> None:
    rng = np.random.default_rng(0)
    sides = {
        (k, who): {s: int(rng.integers(1, 6)) for s in ("chosen", "rejected")} for k in range(12) for who in PEOPLE[:2]
    }
    rows = [first(f"q{k}", who, factuality=sides[k, who]) for k, who in sides]
    question = next(q for q in questions(said(rows)) if q.name == "factuality")
    one, two = ([sides[k, who][s] for k in range(12) for s in ("chosen", "rejected")] for who in PEOPLE[:2])
    assert question.level == "ordinal"
    pair = question.pairs[0]
    assert pair.kappa.value == pytest.approx(cohen_kappa_score(one, two, weights="quadratic", labels=[1, 2, 3, 4, 5]))
    assert pair.kappa.items == 12
    assert question.labels == 48
    assert [f.name for f in question.figures] == ["raw", "fleiss", "alpha ordinal", "alpha interval"]


@pytest.mark.parametrize(
    ("rows", "raw", "reason"),
    [
        ([first(f"q{k}", who) for k in range(10) for who in ("ana", "ben")], 1.0, "one label used"),
        ([first(f"q{k}", "ana") for k in range(10)], None, "one annotator"),
        ([first(f"q{k}", "ana" if k < 5 else "ben") for k in range(10)], None, "no shared items"),
    ],
)
def test_undefined_says_why(said: Any, rows: Any, raw: float | None, reason: str) -> None:
    for question in questions(said(rows)):
        if question.name == UNNAMED and raw:
            continue  # under both namings two labels are used
        assert question.figures[0].value == raw
        assert {f.reason for f in question.figures[1:]} == {reason}


def test_results_are_paired_by_item(said: Any) -> None:
    rng = np.random.default_rng(1)
    rows, gaps, fits = [], [], []
    for k in range(30):
        each = []
        for who in PEOPLE:
            pair = {s: int(rng.integers(3, 6)) for s in ("chosen", "rejected")}
            rows += [first(f"q{k}", who, relevance=pair), second(f"q{k}", who, 5 - k % 2, 2)]
            each.append(pair["chosen"] - pair["rejected"])
        gaps.append(np.mean(each))
        fits.append(3 - k % 2)
    found = results(said(rows))
    relevance = found.criteria[1]
    lower = stats.ttest_1samp(gaps, -MARGIN, alternative="greater").pvalue
    upper = stats.ttest_1samp(gaps, MARGIN, alternative="less").pvalue
    assert (relevance.equivalence.p_lower, relevance.equivalence.p_upper) == pytest.approx((lower, upper))
    assert relevance.equivalence.n == 30
    assert [s.ratings for s in relevance.sides] == [90, 90]
    assert found.criteria[0].equivalence.verdict == "inconclusive"
    assert found.fit.value == pytest.approx(np.mean(fits))
    assert found.fit.p is not None
    assert found.fit.p < 0.001
    assert (found.items, found.annotators) == (30, 3)
    assert (found.share.share, found.share.votes, found.share.none_share) == (1.0, 90, 0.0)


def test_good_means_alike_and_above_the_floor(said: Any) -> None:
    def rows(low: int, gap: int) -> list[dict[str, Any]]:
        pairs = [{"chosen": low + k % 2 + gap, "rejected": low + (k // 2) % 2} for k in range(60)]
        names = ("factuality", "relevance", "helpfulness")
        return [first(f"q{k}", "ana", **dict.fromkeys(names, pair)) for k, pair in enumerate(pairs)]

    assert results(said(rows(4, 0))).general == "confirmed"
    assert results(said(rows(2, 0))).general == "refuted"
    assert results(said(rows(2, 1))).general == "refuted"
    assert results(said(rows(4, 0)[:5])).general == "inconclusive"
    assert FLOOR == 3.5
    assert MARGIN == 0.25


def test_ties_count_half_and_users_are_drawn_whole(said: Any) -> None:
    found = results(said(ten()))
    assert found.share.share == pytest.approx((20 + 4 / 2) / 30)
    assert found.share.method == "bootstrap over items"
    assert found.share.none_share == pytest.approx(4 / 30)
    grouped = results(said(ten()), lambda item: f"u{int(item[1:]) // 2}")
    assert grouped.share.method == "wilson over users (few)"
    ana = found.people[0]
    assert (ana.share.chosen, ana.share.rejected, ana.share.method) == (9, 1, "wilson")


def test_the_first_seat_is_counted_apart(said: Any) -> None:
    rows = [first(f"q{k}", "ana", seats=["rejected", "chosen"]) for k in range(4)] + [first("q9", "ana")]
    found = results(said(rows))
    assert (found.first_seat.chosen, found.first_seat.rejected) == (1, 4)


def test_attention_items_are_in_no_figure_but_their_own(said: Any) -> None:
    checks = [
        first("check", who, "rejected", attention=True, passed=who != "cy", factuality={"chosen": 1, "rejected": 1})
        for who in PEOPLE
    ]
    plain, checked = results(said(ten())), results(said([*ten(), *checks]))
    assert checked.share == plain.share
    assert checked.criteria == plain.criteria
    assert (checked.items, checked.attention_items) == (10, 1)
    assert {p.name: p.failed for p in checked.people} == {"ana": (), "ben": (), "cy": ("check",)}
    assert questions(said([*ten(), *checks])) == questions(said(ten()))


def test_majorities(said: Any) -> None:
    rows = [first("even", "ana", "chosen"), first("even", "ben", "rejected"), *ten()]
    found = majorities(said(rows))
    signs = [max(set(v), key=v.count) for v in VOTES]
    assert found == {f"q{k}": WORDS[s] for k, s in enumerate(signs)} | {"even": None}


def test_judges_beside_people(said: Any, tmp_path: Path) -> None:
    palate.evaluate("sample", ["builtin/length", "builtin/lexical"], ["history", "oracle"], tmp_path / "runs", limit=30)
    ids = palate.open_data("sample").ids[:40]
    votes = {item: "rejected" if k % 5 == 0 else "none" if k % 7 == 0 else "chosen" for k, item in enumerate(ids)}
    rows = [first(item, "ana", vote) for item, vote in votes.items()] + [first("art-01a", "ben", votes["art-01a"])]
    found = judged(said(rows), [tmp_path / "runs"])
    assert len(found) == 4
    words = {"correct": "chosen", "wrong": "rejected", "tie": "none"}
    for one in found:
        lines = read_rows(tmp_path / "runs" / one.folder)
        both = [(words[row.derived], votes[name]) for name, row in lines.items() if row.derived]
        assert one.covered == len(both) == 30
        assert one.coverage == pytest.approx(30 / 40)
        assert one.raw.value == pytest.approx(sum(a == b for a, b in both) / 30)
        assert one.kappa.value == pytest.approx(cohen_kappa_score(*zip(*both, strict=True)))
    assert [j.raw.value for j in found] == sorted((j.raw.value for j in found), reverse=True)  # type: ignore[type-var]


def test_runs_of_other_items_share_none(said: Any, tmp_path: Path) -> None:
    palate.evaluate("sample", "builtin/length", "history", tmp_path / "runs", limit=2)
    (found,) = judged(said(ten()), [tmp_path / "runs"])
    assert (found.covered, found.raw.value, found.raw.reason, found.kappa.reason) == (
        0,
        None,
        "no shared items",
        "no shared items",
    )
    (tmp_path / "empty").mkdir()
    rows = said(ten())
    with pytest.raises(RunError, match="no run folder"):
        judged(rows, [tmp_path / "empty"])


BAD = {
    "rating": (
        first("q", "ana", factuality={"chosen": 0}),
        "factuality.chosen: Input should be greater than or equal to 1",
    ),
    "side": (first("q", "ana", factuality={"best": 3}), "factuality.best"),
    "step": (first("q", "ana", step=3), "step: Input should be 1 or 2"),
    "seats": (first("q", "ana", seats=["chosen", "chosen"]), "seats must name chosen and rejected"),
    "preference": (first("q", "ana", "A"), "preference: Input should be 'chosen', 'rejected' or 'none'"),
    "foreign": (first("q", "ana", fit={"chosen": 3}), "step 1 has no fit"),
    "missing": (first("q", "ana", item_id=None), "item_id: the required field is missing"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_rows_are_told_by_line(said: Any, fault: str) -> None:
    row, text = BAD[fault]
    with pytest.raises(DataError) as caught:
        said([first("q0", "ana"), row])
    assert caught.value.problems[0].startswith("said.jsonl, line 2: ")
    assert text in caught.value.problems[0]


def test_one_row_in_two_files_counts_once_and_two_that_differ_are_a_problem(tmp_path: Path) -> None:
    one, two = save(tmp_path / "a.jsonl", ten()), save(tmp_path / "b.jsonl", ten()[:5])
    assert len(read_annotations([one, two])) == 30
    save(two, [first("q0", "ana", "none")])
    with pytest.raises(DataError, match=r"'ana' on 'q0', step 1: said otherwise in a\.jsonl, line 1"):
        read_annotations([one, two])


def test_a_torn_file_and_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_text(json.dumps(first("q", "ana")) + '\n{"item_id": "q2", "anno')
    with pytest.raises(DataError, match="line 2: the line is cut off"):
        read_annotations([path])
    path.write_text("\n")
    with pytest.raises(DataError, match="no annotations in it"):
        read_annotations([path])
    with pytest.raises(DataError, match="no such file"):
        read_annotations([tmp_path / "none.jsonl"])


def test_what_was_not_given_is_in_no_mean(said: Any) -> None:
    rows = [
        first("q1", "ana", None, factuality={"chosen": 5}),
        first("q1", "ben", factuality={"chosen": 3, "rejected": 2}),
    ]
    found = results(said(rows))
    chosen, rejected = found.criteria[0].sides
    assert (chosen.mean, chosen.ratings, rejected.mean, rejected.ratings) == (4, 2, 2, 1)
    assert found.criteria[0].equivalence.mean == 1
    assert found.share.votes == 1
    assert found.fit.value is None
