"""Word runs and near-duplicates, against plain loops."""

from hypothesis import given
from hypothesis import strategies as st

from palate.grading.texts import NEAR, Near, is_spaced, likeness, shared_run, words

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=14)
TEXTS = st.lists(WORDS.map(" ".join), min_size=1, max_size=6)


@given(WORDS, WORDS, st.integers(1, 5))
def test_a_run_is_found_if_and_only_if_there_is_one(one: list[str], other: list[str], length: int) -> None:
    runs = [one[k : k + length] for k in range(len(one) - length + 1)]
    held = [r for r in runs if any(other[k : k + length] == r for k in range(len(other)))]
    found = shared_run(" ".join(one), " ".join(other), length)
    assert found == (" ".join(held[0]) if held else None)


def test_case_and_punctuation_do_not_hide_a_run_and_what_is_allowed_is_none() -> None:
    text, hidden = "Bring it back, to LIFE yourself now.", "something I bring it back to life yourself"
    assert shared_run(text, hidden, 6) == "bring it back to life yourself"
    assert shared_run(text, hidden, 6, allowed="Can I bring it back to life yourself?") is None
    assert words("Don’t stop") == ["don't", "stop"]


@given(TEXTS, WORDS.map(" ".join))
def test_near_duplicates_are_those_that_a_loop_over_all_finds(held: list[str], text: str) -> None:
    near = Near()
    for k, other in enumerate(held):
        near.add(f"q{k}", [other])
    found = near.find(text, "me")
    likes = {f"q{k}": likeness(text, other) for k, other in enumerate(held)}
    assert (found is None) == all(share < NEAR for share in likes.values())
    assert found is None or likes[found] >= NEAR


def test_ones_own_earlier_text_is_no_duplicate() -> None:
    near = Near()
    near.add("q1", ["one two three four five"])
    assert near.find("one two three four five", "q1") is None
    assert near.find("one two three four five", "q2") == "q1"


def test_scripts_without_spaces_are_known() -> None:
    assert is_spaced("Cook a stew.")
    assert is_spaced("Сварите суп из бобов.")
    assert not is_spaced("今晚做豆子汤吧。")
    assert not is_spaced("ทำซุปถั่วคืนนี้")
