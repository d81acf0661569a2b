"""Runs of words against plain loops over the words."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from palate.audit.leakage import RUN, find_leaks
from palate.audit.words import Words, runs_of, shared_runs
from palate.records import Answer, Aspect, Item, Key, Message, Post

FEW = st.lists(st.sampled_from("abc"), max_size=14).map(" ".join)
TEXTS = st.lists(FEW, max_size=5)


def plain(wanted: list[str], texts: list[str], n: int) -> list[tuple[int, int]]:
    known = {run for text in wanted for run in runs_of(text.split(), n)}
    places = [(t, k, text.split()[k : k + n]) for t, text in enumerate(texts) for k in range(len(text.split()))]
    return [(t, k) for t, k, words in places if tuple(words) in known]


@given(TEXTS, TEXTS, st.integers(1, 6))
def test_shared_runs_are_those_that_a_loop_finds(wanted: list[str], texts: list[str], n: int) -> None:
    found = shared_runs(Words.of(wanted), Words.of(texts), n)
    assert [(text, place) for text, place, _ in found] == plain(wanted, texts, n)
    for text, place, source in found:
        run = tuple(texts[text].split()[place : place + n])
        assert run in runs_of(wanted[source].split(), n)


@given(TEXTS, st.integers(1, 8))
def test_no_run_spans_two_texts(texts: list[str], n: int) -> None:
    words = Words.of(texts)
    numbers, places = words.runs(n)
    assert len(numbers) == sum(max(0, len(t.split()) - n + 1) for t in texts)
    assert all(words.run_at(int(p), n)[1] in runs_of(texts[words.run_at(int(p), n)[0]].split(), n) for p in places)


def test_words_that_share_a_number_raise_no_alarm() -> None:
    one, other = Words.of(["a b c"]), Words.of(["d e f"])
    clash = Words(other.texts, one.numbers, other.owner, other.starts)
    assert np.array_equal(one.runs(3)[0], clash.runs(3)[0])
    assert shared_runs(one, clash, 3) == []


def item(question: str = "What now?", *texts: str) -> Item:
    return Item(
        "q", "u", "all", None, (Message("user", question),), tuple(Post(f"p{k}", t) for k, t in enumerate(texts))
    )


def answers(chosen: str, rejected: str) -> tuple[Answer, ...]:
    return Answer("q#chosen", "q", chosen, "chosen"), Answer("q#rejected", "q", rejected, "rejected")


KEY = Key(
    "q", (Aspect("Quiet", "I like it very quiet at night", "noise keeps this person from any sleep"),), "N one two"
)


def leaks(one: Item, pair: tuple[Answer, ...], key: Key = KEY) -> list[tuple[str, str, str]]:
    found = find_leaks(one, pair, key, Words.of([p.text for p in one.posts]))
    return [(leak.place, leak.part, leak.text) for leak in found]


def test_the_longest_run_is_told_with_its_place_and_part() -> None:
    post = "Yes: noise keeps THIS person, from any sleep! And then some."
    assert leaks(item("What now?", "Else.", post), answers("A", "B")) == [
        ("history", "reason", "noise keeps this person from any sleep")
    ]


def test_five_words_are_not_six() -> None:
    assert leaks(item("What now?", "noise keeps this person from me"), answers("A", "B")) == []
    assert RUN == 6


def test_what_stands_in_both_answers_or_in_the_question_tells_nothing() -> None:
    quote = "I like it very quiet at night"
    assert leaks(item(), answers(f"{quote} x", f"y {quote}")) == []
    assert leaks(item(), answers(f"{quote} x", "y")) == [("chosen", "evidence", quote.lower())]
    assert leaks(item(), answers("y", quote)) == [("rejected", "evidence", quote.lower())]
    asked = leaks(item(f"{quote}, so what now?", quote), answers(quote, "y"))
    assert [place for place, _, _ in asked] == ["question"]


def test_the_narrative_in_the_question_is_told_apart_from_the_rubric() -> None:
    key = Key("q", (), "I have moved to a town by the sea")
    found = leaks(item("Why have I moved to a town by the sea?"), answers("a", "b"), key)
    assert [(place, part) for place, part, _ in found] == [("question", "narrative")]
