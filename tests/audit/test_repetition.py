"""What counts as repeated, and what does not."""

from typing import Any

import pytest

from palate.audit.repetition import find_repeats
from palate.audit.words import Words
from palate.records import Answer, Item, Message, Post

QUESTION = "How do I keep a small balcony garden alive through a dry July?"
CHOSEN = (
    "Group the pots in the shade of the wall, water them at dawn from saucers, and mulch with straw so nothing dries."
)


def repeats(*posts: Post | str, date: str | None = None, question: str = QUESTION) -> list[tuple[str, str]]:
    own = tuple(p if isinstance(p, Post) else Post(str(k), p) for k, p in enumerate(posts))
    extra: dict[str, Any] = {"date": date} if date else {}
    item = Item("q", "u", "all", None, (Message("user", question),), own, extra=extra)
    pair = (Answer("q#c", "q", CHOSEN, "chosen"), Answer("q#r", "q", "Buy plastic flowers.", "rejected"))
    found = find_repeats(item, pair, Words.of([p.text for p in own]))
    return [(r.what, r.post_id) for r in found]


@pytest.mark.parametrize(
    "post",
    [
        QUESTION,
        QUESTION.upper().replace("?", " ..."),
        f"Hello all. {QUESTION} Thank you.",
        QUESTION.replace("small", "tiny"),
        "Through a dry July, how do I keep alive a small balcony garden?",
        f"Another year. {' '.join(QUESTION.split()[:10])} August and beyond, when we are away and nobody waters?",
    ],
)
def test_the_question_is_found_again(post: str) -> None:
    assert repeats("Something else.", post) == [("question", "1")]


@pytest.mark.parametrize(
    "post",
    ["", "A small balcony garden, alive through a dry July, is what my sister wants.", "How do I keep a cat?"],
)
def test_a_like_topic_is_no_repetition(post: str) -> None:
    assert repeats(post) == []


def test_a_short_question_has_to_be_the_whole_post() -> None:
    assert repeats("I wonder: tea or coffee? Both?", question="Tea or coffee?") == []
    assert repeats("tea OR coffee", question="Tea or coffee?") == [("question", "0")]


def test_an_answer_that_is_quoted_is_found() -> None:
    assert repeats("Mum says: " + " ".join(CHOSEN.split()[4:17])) == [("chosen", "0")]
    assert repeats("Mum says: " + " ".join(CHOSEN.split()[4:11])) == []
    assert repeats("buy plastic flowers") == [("rejected", "0")]


def test_posts_from_after_the_question() -> None:
    dated = [Post("a", "x", date="2024-05-01"), Post("b", "y", date="2024-05-03T10:00"), Post("c", "z", date="2024")]
    assert repeats(*dated, date="2024-05-02") == [("later", "b")]
    assert repeats(*dated) == []
