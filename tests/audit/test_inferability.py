"""BM25 over numbers against bm25s, blocks, and support by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.audit.inferability import BLOCK, Member, blocks, supports
from palate.audit.words import Words
from palate.data import open_data
from palate.retrieval.bm25 import bm25_matrix, bm25_scores
from rows import make_row

WORDS = st.lists(st.sampled_from(["ash", "beech", "cedar", "date", "elm"]), max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=3), st.lists(WORDS, min_size=1, max_size=6))
def test_the_matrix_is_what_bm25s_gives(queries: list[list[str]], documents: list[list[str]]) -> None:
    numbers = [Words.of([" ".join(q)]).numbers for q in queries]
    words = Words.of([" ".join(d) for d in documents])
    found = bm25_matrix(numbers, words.numbers, words.owner, len(documents))
    assert found.shape == (len(queries), len(documents))
    for row, query in zip(found, queries, strict=True):
        assert row == pytest.approx(bm25_scores(query, documents), rel=1e-4, abs=1e-5)


def test_scores_do_not_depend_on_the_numbers_of_words() -> None:
    texts = ["ash elm ash oak", "elm", "cedar ash elm date"]
    words = Words.of(texts)
    order = {int(n): k for k, n in enumerate(np.unique(words.numbers)[::-1])}
    renumbered = np.array([order[int(n)] for n in words.numbers], dtype=np.uint64)
    one = bm25_matrix([words.numbers[:3]], words.numbers, words.owner, 3)
    other = bm25_matrix([renumbered[:3]], renumbered, words.owner, 3)
    assert np.array_equal(one, other)


def test_blocks_hold_each_item_once_and_one_domain(write: Any) -> None:
    data = open_data(str(write(*(make_row(k, domain="ab"[k % 3 == 0]) for k in range(50)))))
    found = list(blocks(data.entries, 0))
    assert sorted(i for block in found for i in block) == sorted(data.ids)
    assert all(len({data.entries[i].domain for i in block}) == 1 for block in found)
    assert all(BLOCK // 2 <= len(block) <= BLOCK for block in found)
    assert found == list(blocks(data.entries, 0)) != list(blocks(data.entries, 1))


def support_of(write: Any, *rows: dict[str, Any]) -> dict[str, Any]:
    data = open_data(str(write(*rows)))
    members = [
        Member.of(data.entry(i), data.get(i), data.key(i), Words.of([p.text for p in data.get(i).posts]))
        for i in data.ids
    ]
    return dict(supports(members, data.entries))


def history(*texts: str) -> list[dict[str, str]]:
    return [{"id": str(k), "text": t} for k, t in enumerate(texts)]


def wants(aspect: str) -> list[dict[str, str]]:
    return [{"aspect": aspect, "reason": ""}]


def test_support_by_hand(write: Any) -> None:
    found = support_of(
        write,
        make_row(1, profile=history("I climb.", "Quiet walks at dusk."), rubric_aspects=wants("quiet dusk")),
        make_row(2, profile=history("Quiet evenings.", "Trains."), rubric_aspects=wants("loud trains")),
        make_row(3, profile=history("Loud trains, loud music."), rubric_aspects=wants("nowhere to be found")),
        make_row(4, profile=[], rubric_aspects=wants("quiet dusk")),
    )
    assert {i: s.mean for i, s in found.items()} == {"q1": 1.0, "q2": 0.5, "q3": 0.5}
    assert (found["q1"].places, found["q2"].places, found["q3"].places) == ((1.0,), (1.0,), ())
    assert {s.others for s in found.values()} == {2}


def test_neither_the_own_user_nor_the_twin_is_compared_with(write: Any) -> None:
    swapped = {
        "chosen": make_row(1)["rejected"],
        "rejected": make_row(1)["chosen"],
        "question": make_row(1)["question"],
    }
    found = support_of(
        write,
        make_row(1, twin="q2", user_id="ann"),
        make_row(2, twin="q1", user_id="bob", **swapped),
        make_row(3, user_id="ann"),
        make_row(4, user_id="cem"),
        make_row(5, user_id="cem"),
    )
    assert {i: s.others for i, s in found.items()} == {"q1": 1, "q2": 1, "q3": 2, "q4": 2, "q5": 2}


def test_words_of_the_question_do_not_count(write: Any) -> None:
    same = "What should I cook with beans on day one?"
    found = support_of(
        write,
        make_row(1, question=same, rubric_aspects=wants("beans")),
        make_row(2, question=same, rubric_aspects=wants("beans and chilli")),
    )
    assert list(found) == ["q2"]
