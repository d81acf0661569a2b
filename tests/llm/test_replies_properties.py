"""What holds for all replies: nothing raises, a verdict at the end decides, and nothing comes of nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.llm.replies import (
    PAIR_PARSERS,
    SCORE_PARSERS,
    Parsed,
    Unparsed,
    read_aspects,
    read_object,
    without_thoughts,
)

MARKS = ["tie", "Verdict: ", "Score: ", "[[A]]", "[[7]]", "</think>", "<answer>", "Output (a) is better", "1. "]
MESS = st.lists(st.sampled_from([*"ABCab12 \n\t[](){}<>=/\\\"'`*_.:,!?#-~“”", *MARKS])).map("".join)
ANYTHING = (
    st.text() | MESS | st.lists(st.sampled_from(["```\n", "<think>", "{", '{"verdict": "A"}', "x", "\n"])).map("".join)
)
SETTLED = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`~<[{"))


@given(ANYTHING)
def test_no_reader_ever_raises(text: str) -> None:
    for pair in PAIR_PARSERS.values():
        assert isinstance(pair(text), Parsed | Unparsed)
    for name, score in SCORE_PARSERS.items():
        got = score(text, 0, 2)
        assert isinstance(got, Unparsed) or 0 <= got.value <= 2, name
    assert isinstance(read_aspects(text), Parsed | Unparsed)
    assert isinstance(read_object(text), dict | Unparsed)
    assert isinstance(without_thoughts(text), str | Unparsed)


@given(SETTLED, st.sampled_from(["A", "B", "tie"]))
def test_a_verdict_of_its_own_at_the_end_decides(text: str, choice: str) -> None:
    for line in (f"Verdict: {choice}", f"Final verdict: [[{choice}]]", f'{{"verdict": "{choice}"}}\nResult: {choice}.'):
        assert PAIR_PARSERS["verdict"](f"{text}\n{line}") == Parsed(choice)


@given(SETTLED, st.sampled_from("AB"))
def test_a_mark_of_its_own_at_the_end_decides(text: str, side: str) -> None:
    assert PAIR_PARSERS["brackets"](f"{text}\nFinal verdict: [[{side}]]") == Parsed(side)
    assert PAIR_PARSERS["arena"](f"{text}\n[[{side}>{'AB'.replace(side, '')}]]") == Parsed(side)
    assert PAIR_PARSERS["answer_tag"](f"{text}\n<answer>[[{side}]]</answer>") == Parsed(side)
    assert PAIR_PARSERS["output_ab"](f"{text}\nTherefore, Output ({side.lower()}) is better.") == Parsed(side)


@given(st.text(st.characters(exclude_characters="AaBbCcTt", exclude_categories=["N"])))
def test_without_an_allowed_token_there_is_no_verdict(text: str) -> None:
    for name, parse in PAIR_PARSERS.items():
        assert isinstance(parse(text), Unparsed), name
    for name, score in SCORE_PARSERS.items():
        assert isinstance(score(text, 0, 10), Unparsed), name


SPACE = st.text(" \t", max_size=3)
CASE = st.sampled_from([str.lower, str.upper, str.title])


@given(SPACE, SPACE, CASE, st.sampled_from(["think", "thinking", "reasoning", "thought"]))
def test_space_and_case_of_tags_do_not_matter(one: str, two: str, case: Any, name: str) -> None:
    tag = case(name)
    thought = f"<{one}{tag}{two}>[[B]]<{one}/{two}{tag}>"
    assert PAIR_PARSERS["brackets"](f"{thought}{one}[[{two}A{one}]]{two}") == Parsed("A")
    assert PAIR_PARSERS["verdict"](f"{one}{thought}{two}\n{case('verdict')}: A{one}") == Parsed("A")
    answer = f"<{one}{case('answer')}{two}>{one}[[A]]{two}<{two}/{case('answer')}>"
    assert PAIR_PARSERS["answer_tag"](one + answer + two) == Parsed("A")


PIECES = ["{", '{"', '{"a":', "}", "[[", '"', '\\"', "“", "`", "```a\n", "<quote_a>", "<think>", "</think>", "[[A]] "]
PIECES += ["> ", "Verdict: ", "Output (a) is better. ", "both ", "neither ", ". ", " ", "\n", "*", "_", "1. a\n", "9"]


@pytest.mark.parametrize("piece", PIECES)
def test_a_reply_that_repeats_itself_without_end_is_no_trap(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    for pair in PAIR_PARSERS.values():
        pair(text)
    for score in SCORE_PARSERS.values():
        score(text, 0, 10)
    read_aspects(text)
    read_object(json.dumps({"a": 1}) + text)
