"""From item and view to a query: whose posts, whose rubric, and what if there is none."""

from pathlib import Path
from typing import Any

import pytest

from palate.data import open_data
from palate.errors import SpecError
from palate.evaluation.verdicts import shown
from palate.retrieval import make_retriever
from palate.views import Looker, NoContext, View
from rows import make_row


def looker(path: Path) -> Looker:
    return Looker(open_data(str(path)), make_retriever("bm25"))


def test_swapped_shows_another_users_posts_and_never_the_twins(write: Any) -> None:
    rows = [make_row(k, question="What is for supper?") for k in (1, 2, 3)]
    rows[0] |= {"twin": "q2", "chosen": "Beans.", "rejected": "Meat."}
    rows[1] |= {"twin": "q1", "chosen": "Meat.", "rejected": "Beans."}
    query = looker(write(*rows)).query("q1", View.parse("swapped"))
    assert not isinstance(query, NoContext)
    assert query.context is not None
    assert query.context.donors == ("q3",)
    assert {b.id for b in query.context.blocks} == {"p3-1", "p3-2"}


def test_no_donor_is_no_context(write: Any) -> None:
    found = looker(write(make_row(1), make_row(2, domain="art"))).query("q1", View.parse("swapped"))
    assert isinstance(found, NoContext)
    assert "domain 'food'" in found.reason


def test_no_rubric_is_no_context(write: Any) -> None:
    found = looker(write(make_row(1, rubric_aspects=None))).query("q1", View.parse("oracle"))
    assert found == NoContext("the item has no rubric")


def test_an_empty_history_is_shown_as_nothing(write: Any) -> None:
    for view in ("history", "history?user=none"):
        query = looker(write(make_row(1, profile=[]), make_row(2))).query("q1", View.parse(view))
        assert not isinstance(query, NoContext)
        assert "(nothing)" in query.messages[0].content


def test_draws_are_different_donors(write: Any) -> None:
    look_at = looker(write(*(make_row(k) for k in range(1, 6))))
    donors = set()
    for draw in range(4):
        query = look_at.query("q1", View.parse("swapped?draws=4"), draw)
        assert not isinstance(query, NoContext)
        assert query.context is not None
        donors.add(query.context.donors)
    assert len(donors) == 4
    assert isinstance(look_at.query("q1", View.parse("swapped?draws=5"), 4), NoContext)


def test_the_plan_view_says_what_it_needs(write: Any) -> None:
    with pytest.raises(SpecError, match="planner"):
        looker(write(make_row(1))).query("q1", View.parse("plan"))


@pytest.mark.parametrize(
    "view", ["question", "history?k=3", "history?user=none", "swapped", "oracle", "oracle?user=other"]
)
def test_what_a_row_says_was_shown_can_be_shown_again(view: str) -> None:
    look_at, parsed = Looker(open_data("sample"), make_retriever("bm25")), View.parse(view)
    query = look_at.query("life-04a", parsed)
    assert not isinstance(query, NoContext)
    assert look_at.again("life-04a", parsed, shown([query])) == query
