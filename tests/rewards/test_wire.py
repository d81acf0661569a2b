"""The wire of Palate's reward server: both ends read the same forms, strictly."""

from typing import Any

import pytest

from palate.records import STATUSES
from palate.rewards import wire

ASK: dict[str, Any] = {"id": "a", "question": "Which way?", "response": "Left."}
TURNS = [{"role": "user", "content": "Which way?"}]


def request(**changes: Any) -> Any:
    item = {k: v for k, v in (ASK | changes).items() if v is not None}
    return wire.read(wire.ScoreRequest, {"items": [item]})


@pytest.mark.parametrize(
    "changes",
    [{}, {"history": ["I walk."]}, {"plan": ["Short"]}, {"history": []}, {"question": None, "messages": TURNS}],
)
def test_each_form_of_an_item_is_taken(changes: dict[str, Any]) -> None:
    assert request(**changes).items[0].id == "a"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question": None}, "exactly one of 'messages' and 'question'"),
        ({"messages": TURNS}, "exactly one of 'messages' and 'question'"),
        ({"question": None, "messages": TURNS, "history": ["x"]}, "'history' belongs to 'question'"),
        ({"question": None, "messages": TURNS, "plan": ["x"]}, "'plan' belongs to 'question'"),
        ({"history": ["x"], "plan": ["y"]}, "only one of 'history' and 'plan'"),
        ({"question": None, "messages": [{"role": "assistant", "content": "x"}]}, "no turn of the user"),
        ({"hisotry": ["x"]}, "items.0.hisotry: unknown field"),
        ({"response": None}, "items.0.response: Field required"),
        ({"response": 3}, "items.0.response: Input should be a valid string, found 3"),
        ({"id": ""}, "items.0.id"),
        ({"question": ""}, "items.0.question"),
        ({"response": "x" * (wire.LONGEST_TEXT + 1)}, "items.0.response"),
        ({"history": ["x"] * (wire.MOST_ENTRIES + 1)}, "items.0.history"),
        ({"question": None, "messages": TURNS * (wire.MOST_TURNS + 1)}, "items.0.messages"),
        ({"question": None, "messages": [{"role": "robot", "content": "x"}]}, "items.0.messages.0.role"),
    ],
)
def test_what_is_not_agreed_is_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(wire.WireError) as refused:
        request(**changes)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_requests_have_a_size_and_ids_of_their_own() -> None:
    with pytest.raises(wire.WireError, match="the id 'a' is there twice"):
        wire.read(wire.ScoreRequest, {"items": [ASK, ASK]})
    many = [ASK | {"id": str(k)} for k in range(wire.MOST_ITEMS + 1)]
    assert len(wire.read(wire.ScoreRequest, {"items": many[1:]}).items) == wire.MOST_ITEMS
    for items in (many, []):
        with pytest.raises(wire.WireError, match="items: List should have at"):
            wire.read(wire.ScoreRequest, {"items": items})


@pytest.mark.parametrize("score", [1, 1.5, -0.0])
def test_a_score_is_a_number(score: float) -> None:
    assert wire.read(wire.ScoreResult, {"id": "a", "status": "ok", "score": score}).score == score


@pytest.mark.parametrize("status", [s for s in STATUSES if s != "ok"])
def test_a_failure_has_a_reason_and_no_number(status: str) -> None:
    good = {"id": "a", "status": status, "score": None, "error": "why"}
    assert wire.read(wire.ScoreResult, good).error == "why"
    for change in ({"score": 0.0}, {"error": None}, {"error": ""}):
        with pytest.raises(wire.WireError):
            wire.read(wire.ScoreResult, good | change)


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), "1.0", True, [1.0]])
def test_what_is_no_finite_number_is_no_score(score: Any) -> None:
    with pytest.raises(wire.WireError):
        wire.read(wire.ScoreResult, {"id": "a", "status": "ok", "score": score})


def test_a_result_that_cannot_be_read_leaves_the_others_alone() -> None:
    rows = [{"id": n, "status": "ok", "score": v} for n, v in (("b", 2.0), ("a", float("nan")))]
    found = wire.read_results({"results": rows}, ["a", "b"])
    assert "finite" in str(found["a"])
    assert isinstance(found["b"], wire.ScoreResult)
    assert found["b"].score == 2.0


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"id": "a"}],
        [{"id": "a"}, {"id": "a"}],
        [{"id": "a"}, {"id": "c"}],
        [{"id": "a"}, {"id": "b"}, {"id": "c"}],
        [3, 4],
    ],
)
def test_results_are_of_what_was_asked(rows: Any) -> None:
    with pytest.raises(wire.WireError, match="asked for the ids"):
        wire.read_results({"results": rows}, ["a", "b"])


@pytest.mark.parametrize("found", [None, [], "no", {}, {"results": {}}])
def test_a_reply_has_results(found: Any) -> None:
    with pytest.raises(wire.WireError, match="expected an object with 'results'"):
        wire.read_results(found, ["a"])


HEALTH = {"status": "ok", "server": "palate", "version": "1", "model": {}, "window": 100, "room": 10}


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"window": None, "room": None}, True),
        ({"window": None}, False),
        ({"room": None}, False),
        ({"room": 100}, False),
        ({"server": "other"}, False),
        ({"status": "loading"}, False),
        ({"extra": 1}, False),
    ],
)
def test_health_tells_window_and_room_or_neither(change: dict[str, Any], good: bool) -> None:
    if good:
        assert wire.read(wire.Health, HEALTH | change).server == "palate"
        return
    with pytest.raises(wire.WireError):
        wire.read(wire.Health, HEALTH | change)


def test_counts_are_whole_numbers_or_null() -> None:
    assert wire.read(wire.CountReply, {"tokens": None}).tokens is None
    assert wire.read(wire.CountReply, {"tokens": [3, 0]}).tokens == [3, 0]
    assert len(wire.read(wire.CountRequest, {"prompts": [TURNS]}).prompts) == 1
    for bad in ([1.5], [-1], ["3"], 3):
        with pytest.raises(wire.WireError):
            wire.read(wire.CountReply, {"tokens": bad})


def test_an_error_names_each_field_and_shows_nothing_of_it() -> None:
    items = [{"id": str(k), "question": "secret", "respons": "secret"} for k in range(5)]
    with pytest.raises(wire.WireError) as told:
        wire.read(wire.ScoreRequest, {"items": items})
    assert set(told.value.fields) == {f"items.{k}.{name}" for k in range(5) for name in ("response", "respons")}
    assert "secret" not in str(told.value.fields)


def test_a_result_may_tell_what_was_dropped_and_stripped() -> None:
    found = wire.read(wire.ScoreResult, {"id": "a", "status": "ok", "score": 1.0, "dropped": 2, "stripped": 1})
    assert (found.dropped, found.stripped) == (2, 1)
    for bad in (-1, 1.5, None, "1"):
        with pytest.raises(wire.WireError, match="dropped"):
            wire.read(wire.ScoreResult, {"id": "a", "status": "ok", "score": 1.0, "dropped": bad})
