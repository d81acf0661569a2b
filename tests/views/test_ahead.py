"""Ranking ahead: what a view shows does not depend on whether items were ranked at once or one by one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from palate.data import open_data
from palate.records import Post
from palate.retrieval import Ask
from palate.retrieval.bm25 import Bm25
from palate.views import Looker, View


class AtOnce:
    """BM25 that ranks many at once, the last first, and refuses single items."""

    def __init__(self) -> None:
        self.names: list[Any] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"id": "at once"}

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        raise AssertionError("this was to be ranked ahead")

    def many(self, asks: Iterable[Ask]) -> Iterator[tuple[Any, Sequence[float]]]:
        for ask in reversed(list(asks)):
            self.names.append(ask.name)
            yield ask.name, Bm25().scores(ask.item_id, ask.question, ask.posts)


@pytest.mark.parametrize("text", ["history", "history?k=3", "history?user=none", "swapped", "swapped?draws=3&seed=2"])
def test_what_is_shown_is_the_same(text: str) -> None:
    data, view, retriever = open_data("sample"), View.parse(text), AtOnce()
    ids = data.ids[:12]
    ahead, single = Looker(data, retriever), Looker(data, Bm25())
    ahead.ahead(view, ids)
    for item_id in ids:
        for draw in range(view.draws):
            assert ahead.query(item_id, view, draw) == single.query(item_id, view, draw)
    assert len(retriever.names) == len(set(retriever.names)) == len(ids) * view.draws
    ahead.ahead(view, ids)
    assert len(retriever.names) == len(ids) * view.draws


def test_other_views_and_empty_histories_need_no_ranking(write: Any, tmp_path: Path) -> None:
    from rows import make_row

    data, retriever = open_data(str(write(make_row(1, profile=[]), make_row(2, domain="art")))), AtOnce()
    for text in ("question", "oracle", "swapped", "plan"):
        Looker(data, retriever).ahead(View.parse(text), ["q1"])
    Looker(data, retriever).ahead(View.parse("history"), ["q1"])
    assert retriever.names == []
