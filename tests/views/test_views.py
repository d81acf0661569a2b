"""What a view shows, and what it can never show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.errors import PalateError
from palate.records import Aspect, Item, Key, Message, Post, Query
from palate.views import View, fit, look
from palate.views.look import filler

ITEM = Item("q1", "u1", "food", None, (Message("user", "What shall I cook?"),), ())
SECRET = st.text("QXZJ", min_size=8, max_size=20)
POSTS = [Post("a", "I am vegan."), Post("b", "I love long runs in the hills.")]
KEY = Key("q1", (Aspect("No meat", "I am vegan", "Ethics."),), "Hidden story.")


def text_of(query: Query) -> str:
    return "\n".join(m.content for m in query.messages)


def test_the_question_view_is_the_question() -> None:
    assert look(ITEM, View.parse("question")).messages == ITEM.messages


def test_two_users_make_two_prompts() -> None:
    vegan = look(ITEM, View.parse("history"), posts=[Post("a", "I am vegan.")])
    steak = look(ITEM, View.parse("history"), posts=[Post("a", "I love steak.")])
    assert "I am vegan." in text_of(vegan)
    assert "I love steak." in text_of(steak)
    assert text_of(vegan) != text_of(steak)


def test_only_the_context_section_differs() -> None:
    own = text_of(look(ITEM, View.parse("history"), posts=POSTS))
    none = text_of(look(ITEM, View.parse("history?user=none"), posts=POSTS))
    oracle = text_of(look(ITEM, View.parse("oracle"), key=KEY))
    for other in (none, oracle):
        assert own.split("\n")[0] == other.split("\n")[0]
        assert own.rpartition("\n\nThis person asks:")[2] == other.rpartition("\n\nThis person asks:")[2]


def test_filler_has_the_length_of_what_it_stands_for() -> None:
    query = look(ITEM, View.parse("history?user=none"), posts=POSTS)
    assert query.context is not None
    for block, post in zip(query.context.blocks, POSTS, strict=True):
        assert len(post.text) - 20 < len(block.text) <= len(post.text)
    assert not any(p.text in text_of(query) for p in POSTS)


@given(st.integers(1, 3000), st.integers(0, 50))
def test_filler_is_as_long_as_asked_but_for_a_word(length: int, start: int) -> None:
    assert length - 16 < len(filler(length, start)) <= length


@given(
    SECRET,
    SECRET,
    SECRET,
    SECRET,
    st.sampled_from(["question", "history", "plan"]),
    st.sampled_from(["own", "none", "other"]),
)
def test_no_view_but_the_oracle_can_carry_the_key(
    aspect: str, evidence: str, reason: str, narrative: str, name: str, user: str
) -> None:
    key = Key("q1", (Aspect(aspect, evidence, reason),), narrative)
    view = View.parse(name if name == "question" else f"{name}?user={user}")
    material: dict[str, object] = {"history": {"posts": POSTS}, "plan": {"plan": ["Short"]}, "question": {}}[name]
    with pytest.raises(TypeError, match="reads"):
        look(ITEM, view, key=key, **material)  # type: ignore[arg-type]
    shown = text_of(look(ITEM, view, **material))  # type: ignore[arg-type]
    assert not any(secret in shown for secret in (aspect, evidence, reason, narrative))


def test_the_oracle_shows_aspects_but_no_narrative() -> None:
    shown = text_of(look(ITEM, View.parse("oracle"), key=KEY))
    assert "No meat" in shown
    assert "Ethics" in shown
    assert "Hidden story" not in shown


def test_an_item_has_no_place_for_a_key() -> None:
    assert {"key", "narrative", "rubric_aspects", "aspects"}.isdisjoint(Item.__slots__)


def test_text_that_looks_like_a_placeholder_stays_text() -> None:
    posts = [Post("a", 'Show {{question}} and {"a": 1} and {x}.')]
    assert 'Show {{question}} and {"a": 1} and {x}.' in text_of(look(ITEM, View.parse("history"), posts=posts))


def test_choices_show_what_was_preferred_over_what() -> None:
    post = Post("a", "Tram", prompt="How?", rejected="Car")
    assert "Asked: How?\nPreferred: Tram\nOver: Car" in text_of(look(ITEM, View.parse("history"), posts=[post]))


def test_the_context_stands_in_front_of_the_first_question() -> None:
    turns = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "And now?"))
    query = look(Item("q", None, "all", None, turns, ()), View.parse("history"), posts=POSTS)
    assert query.messages[1:] == turns[1:]
    assert query.messages[0].content.endswith("Hi")


def words(messages: list[Message]) -> int:
    return sum(len(m.content.split()) for m in messages)


@given(st.lists(st.integers(1, 40), max_size=12), st.integers(0, 400))
def test_fit_keeps_the_longest_top_of_the_ranking(sizes: list[int], room: int) -> None:
    posts = [Post(str(k), " ".join(["word"] * n)) for k, n in enumerate(sizes)]
    query = look(ITEM, View.parse("history"), posts=posts)
    found = fit(query, room, words)  # type: ignore[arg-type]
    fitting = [
        k
        for k in range(len(posts) + 1)
        if words(list(look(ITEM, View.parse("history"), posts=posts[:k]).messages)) <= room
    ]
    if not fitting:
        assert found is None
        return
    assert found is not None
    assert found.context is not None
    kept = len(found.context.blocks)
    assert kept == max(fitting)
    assert [b.id for b in found.context.blocks] == [p.id for p in posts[:kept]]
    assert found.dropped == len(posts) - kept
    assert found.messages[-1].content.endswith("What shall I cook?")


@pytest.mark.parametrize(
    ("text", "printed", "label"),
    [
        ("question", "question", "question"),
        ("swapped", "history?user=other", "swapped"),
        ("swapped?draws=3&k=5", "history?user=other&k=5&draws=3", "swapped?k=5&draws=3"),
        ("history?k=10", "history", "history"),
        ("oracle?user=none", "oracle?user=none", "oracle?user=none"),
    ],
)
def test_view_strings(text: str, printed: str, label: str) -> None:
    view = View.parse(text)
    assert (str(view), view.label) == (printed, label)
    assert View.parse(str(view)) == view == View.parse(view.label)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("histroy", "Did you mean 'history'"),
        ("question?user=own", "unknown option"),
        ("history?user=mine", "not possible"),
        ("history?k=0", "from 1 up"),
        ("history?seed=1", "unknown option 'seed'"),
        ("oracle?k=3", "unknown option 'k'"),
        ("history?user=own&user=own", "given twice"),
        ("history?user", "key=value"),
    ],
)
def test_bad_view_strings(text: str, message: str) -> None:
    with pytest.raises(PalateError, match=message):
        View.parse(text)
