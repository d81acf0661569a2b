"""Ranking small histories, ties by a stated rule, and cold start."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.errors import PalateError
from palate.records import Post
from palate.retrieval import make_retriever, rank
from palate.retrieval.bm25 import K1, B, bm25_scores, tokenize

BM25 = make_retriever("bm25")
WORDS = st.lists(st.sampled_from(["apple", "bread", "cider", "dough", "endive", "fig"]), max_size=8)


class Fixed:
    """A retriever that gives the numbers it was made with."""

    def __init__(self, *values: float) -> None:
        self.identity = {"id": "fixed"}
        self.values = values

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        return self.values


def posts(*texts: str, dates: Sequence[str | None] | None = None) -> list[Post]:
    return [Post(str(k), t, date=dates[k] if dates else None) for k, t in enumerate(texts)]


def ids(found: Sequence[Post]) -> list[str]:
    return [p.id for p in found]


def test_the_post_that_matches_comes_first_in_a_history_of_two() -> None:
    found = rank("vegan ideas", posts("I train for marathons", "I cook vegan food"), BM25, k=1)
    assert ids(found.posts) == ["1"]


def test_a_history_of_one_that_matches_scores_above_nothing() -> None:
    found = rank("vegan ideas", posts("I cook vegan food"), BM25)
    assert found.scores[0] is not None
    assert found.scores[0] > 0


@given(WORDS, st.lists(WORDS, min_size=1, max_size=6))
def test_bm25_is_the_formula(query: list[str], documents: list[list[str]]) -> None:
    mean = sum(map(len, documents)) / len(documents) or 1.0
    expected = []
    for words in documents:
        total = 0.0
        for term in query:
            df = sum(term in d for d in documents)
            tf = words.count(term)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + K1 * (1 - B + B * len(words) / mean)) if tf else 0.0
        expected.append(total)
    # An empty document counts one stand-in word, which moves the mean length a little.
    if all(documents):
        assert bm25_scores(query, documents) == pytest.approx(expected, rel=1e-4, abs=1e-6)


@given(WORDS.filter(bool), st.lists(WORDS, min_size=1, max_size=6))
def test_a_match_outranks_none(query: list[str], documents: list[list[str]]) -> None:
    scores = bm25_scores(query, documents)
    matching = [s for s, d in zip(scores, documents, strict=True) if set(d) & set(query)]
    other = [s for s, d in zip(scores, documents, strict=True) if not set(d) & set(query)]
    assert not matching or not other or min(matching) > max(other)


def test_k_above_the_history_returns_all_once() -> None:
    for size in (0, 1, 3, 12):
        found = rank("tea", posts(*(f"post {k}" for k in range(size))), BM25, k=10)
        assert len(found.posts) == min(size, 10)
        assert len(set(ids(found.posts))) == len(found.posts)


def test_ties_newer_first_then_file_order_whatever_the_ids() -> None:
    texts, dates = ("tea", "tea", "tea"), ("2024-01-01", "2025-01-01", "2025-01-01")
    found = rank("tea", posts(*texts, dates=dates), BM25)
    renamed = [Post("zyx"[k], t, date=d) for k, (t, d) in enumerate(zip(texts, dates, strict=True))]
    assert ids(found.posts) == ["1", "2", "0"]
    assert ids(rank("tea", renamed, BM25).posts) == ["y", "x", "z"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_comes_last_and_is_counted(bad: float) -> None:
    found = rank("tea", posts("a", "b", "c"), Fixed(0.1, bad, 0.9))
    assert ids(found.posts) == ["2", "0", "1"]
    assert found.scores[-1] is None
    assert found.lost == 1


def test_recency_by_date_then_by_place() -> None:
    recency = make_retriever("recency")
    dated = posts("a", "b", "c", dates=("2024-05-01", None, "2025-01-01"))
    assert ids(rank("?", dated, recency).posts) == ["2", "0", "1"]
    assert ids(rank("?", posts("a", "b", "c"), recency).posts) == ["2", "1", "0"]


def test_choices_are_found_by_what_was_asked() -> None:
    history = [Post("a", "Take the tram.", prompt="How do I reach the harbour?", rejected="Walk."), Post("b", "Tea")]
    assert rank("harbour", history, BM25).posts[0].id == "a"


def test_words_of_any_script() -> None:
    assert tokenize("Čaj, чай — 茶 & Tea_2!") == ["čaj", "чай", "茶", "tea_2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm26", "Did you mean 'bm25'"),
        ("bm25?x=1", "unknown option"),
        ("bm25/x", "takes no model"),
        ("stored/nowhere", "no retrieval.json"),
    ],
)
def test_bad_retrievers(text: str, message: str) -> None:
    with pytest.raises(PalateError, match=message):
        make_retriever(text)
