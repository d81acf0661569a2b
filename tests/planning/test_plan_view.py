"""The view `plan`: whose plan is shown, where it comes from, and what a run records of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from palate import evaluate
from palate.data import open_data
from palate.errors import DataError, RunError, SpecError
from palate.planning import PlanBook
from palate.planning.made import plan_all
from palate.records import Query
from palate.retrieval import make_retriever
from palate.store import RunFolder
from palate.views import Looker, NoContext, View
from rows import make_row

LEXICAL = "builtin/lexical"


def three(write: Any) -> str:
    return str(write(*(make_row(k) for k in (1, 2, 3))))


def looker(path: str, out: Path, *views: str) -> Looker:
    data, ranker = open_data(path), make_retriever("bm25")
    book = PlanBook(data, ranker, out)
    for view in views:
        book.make(book.open(View.parse(view)), data.ids)
    return Looker(data, ranker, book)


def shown(query: Query | NoContext) -> list[str]:
    assert not isinstance(query, NoContext)
    assert query.context is not None
    return [b.text for b in query.context.blocks]


@pytest.mark.parametrize(
    "text",
    [
        "plan",
        "plan?k=3",
        "plan?planner=question-only&user=none",
        "plan?planner=llm/m%3Fmax_tokens%3D9&user=other",
    ],
)
def test_view_strings_print_back(text: str) -> None:
    assert str(View.parse(text)) == text


def test_only_plan_takes_a_planner() -> None:
    assert View.parse("plan?planner=keyphrase") == View.parse("plan")
    with pytest.raises(SpecError, match="planner"):
        View.parse("history?planner=keyphrase")


def test_other_plans_the_donors_posts_for_this_question(write: Any, tmp_path: Path) -> None:
    path = three(write)
    look = looker(path, tmp_path, "plan", "plan?user=other")
    query = look.query("q1", View.parse("plan?user=other"))
    assert not isinstance(query, NoContext)
    assert query.context is not None
    donor = query.context.donors[0]
    assert donor != "q1"
    rows = [json.loads(x) for x in next(tmp_path.glob("plans--keyphrase--other*/plans.jsonl")).read_text().splitlines()]
    row = next(r for r in rows if r["id"] == "q1")
    assert row["donor"] == donor
    assert all(p.startswith(f"p{donor[1:]}-") for p in row["posts"])
    assert shown(query) == row["aspects"]


def test_none_is_filler_as_long_as_the_own_plan(write: Any, tmp_path: Path) -> None:
    look = looker(three(write), tmp_path, "plan", "plan?user=none")
    own, none = (shown(look.query("q1", View.parse(v))) for v in ("plan", "plan?user=none"))
    assert len(own) == len(none)
    assert all(len(filler) <= len(aspect) for aspect, filler in zip(own, none, strict=True))
    assert not set(own) & set(none)
    assert len(list(tmp_path.glob("plans--*"))) == 1


@pytest.mark.parametrize("view", ["plan", "plan?user=none", "plan?user=other", "plan?planner=question-only"])
def test_what_a_row_says_was_shown_can_be_shown_again_without_plans(view: str, write: Any, tmp_path: Path) -> None:
    path = three(write)
    query = looker(path, tmp_path, view).query("q1", View.parse(view))
    row = evaluate(path, LEXICAL, view, tmp_path).runs[0].rows["q1"]
    assert Looker(open_data(path)).again("q1", View.parse(view), row["shown"]) == query


def test_no_posts_and_no_donor_are_no_context_with_the_reason(write: Any, tmp_path: Path) -> None:
    path = str(write(make_row(1, profile=[]), make_row(2), make_row(3, domain="art")))
    own, other = evaluate(path, LEXICAL, ["plan", "plan?user=other"], tmp_path).runs
    assert own.rows["q1"]["status"] == "no_context"
    assert "no posts to plan from" in own.rows["q1"]["notes"][0]
    assert other.rows["q3"]["status"] == "no_context"
    assert "domain 'art'" in other.rows["q3"]["notes"][0]
    assert own.metrics["status"] == {"no_context": 1, "ok": 2}


def test_a_run_records_planner_and_retriever(write: Any, tmp_path: Path) -> None:
    path = three(write)
    runs = evaluate(path, LEXICAL, ["plan?k=4", "plan?planner=question-only"], tmp_path).runs
    first, second = (run.record["config"] for run in runs)
    assert (first["planner"]["name"], first["retriever"]["id"], first["k"]) == ("keyphrase", "bm25", 4)
    assert (second["planner"]["name"], second["retriever"], second["k"]) == ("question-only", None, None)


def test_lift_and_swap_drop_compare_plans_of_one_planner(tmp_path: Path) -> None:
    views = ["plan", "plan?user=other", "plan?user=none", "plan?planner=question-only&user=none"]
    kinds = [(c.kind, c.other_view) for c in evaluate("sample", LEXICAL, views, tmp_path, limit=12).contrasts]
    assert kinds == [("lift", "plan?user=none"), ("swap_drop", "plan?user=other")]


def test_plans_are_reused_and_extended(tmp_path: Path) -> None:
    evaluate("sample", LEXICAL, "plan", tmp_path, limit=3)
    plans = next(tmp_path.glob("plans--*")) / "plans.jsonl"
    before = plans.read_text()
    evaluate("sample", "builtin/length", "plan", tmp_path, limit=3)
    assert plans.read_text() == before
    evaluate("sample", LEXICAL, "plan", tmp_path, limit=5)
    assert plans.read_text().startswith(before)
    assert len(plans.read_text().splitlines()) == 5


def test_draws_have_plans_of_their_own(tmp_path: Path) -> None:
    run = evaluate("sample", LEXICAL, "plan?user=other&draws=2", tmp_path, limit=2).runs[0]
    ids = [json.loads(x)["id"] for x in next(tmp_path.glob("plans--*/plans.jsonl")).read_text().splitlines()]
    assert len(ids) == 4
    assert sum(name.endswith("@1") for name in ids) == 2
    assert all(len(row["shown"]["draws"]) == 2 for row in run.rows.values())


def test_stored_plans_are_used_as_they_are(write: Any, tmp_path: Path) -> None:
    path, folder = three(write), tmp_path / "mine"
    plan_all(path, "keyphrase", folder, score=True)
    views = [f"plan?planner=stored/{folder}{rest}" for rest in ("", "&user=none", "&user=other")]
    stored = evaluate(path, LEXICAL, views, tmp_path / "runs")
    made = evaluate(path, LEXICAL, ["plan", "plan?user=none", "plan?user=other"], tmp_path / "runs")
    for a, b in zip(stored, made, strict=True):
        assert a.rows == b.rows
    assert stored.runs[0].record["config"]["planner"]["name"] == "keyphrase"
    assert len(stored.runs[0].record["config"]["planner"]["plans"]) == 64
    assert {c.kind for c in stored.contrasts} == {"lift", "swap_drop"}


def test_an_item_that_stored_plans_lack_is_no_context(write: Any, tmp_path: Path) -> None:
    path, folder = three(write), tmp_path / "mine"
    plan_all(path, "keyphrase", folder, limit=2)
    run = evaluate(path, LEXICAL, f"plan?planner=stored/{folder}", tmp_path / "runs").runs[0]
    assert run.metrics["status"] == {"ok": 2, "no_context": 1}


def test_stored_plans_that_are_not_the_ones_asked_for_are_refused(write: Any, tmp_path: Path) -> None:
    path, folder = three(write), tmp_path / "mine"
    plan_all(path, "keyphrase", folder)
    view = f"plan?planner=stored/{folder}"
    for bad, message in ((f"{view}&k=3", "k=10"), (f"{view}&user=other", "user=own"), (f"{view}x", "no plan.json")):
        with pytest.raises(DataError, match=message):
            evaluate(path, LEXICAL, bad, tmp_path / "runs")
    with pytest.raises(DataError, match="other data"):
        evaluate("sample", LEXICAL, view, tmp_path / "runs")


def test_a_folder_is_for_one_kind_of_plans_and_one_process(write: Any, tmp_path: Path) -> None:
    path, folder = three(write), tmp_path / "mine"
    plan_all(path, "keyphrase", folder)
    with pytest.raises(RunError, match="another planner"):
        plan_all(path, "question-only", folder)
    with RunFolder(folder), pytest.raises(RunError, match="another process"):
        plan_all(path, "keyphrase", folder)


def test_a_view_without_a_planner_in_reach_says_so(write: Any) -> None:
    with pytest.raises(SpecError, match="planner"):
        Looker(open_data(three(write))).query("q1", View.parse("plan"))
