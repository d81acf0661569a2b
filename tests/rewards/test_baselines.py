"""The built-in scorers and the verdict they lead to."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.data import open_data
from palate.errors import PalateError
from palate.records import Answer, Group, Item, Message, Post, Query, Score
from palate.rewards import decide, families, open_model, register
from palate.rewards.style import FEATURES, components, features, fit_bradley_terry
from palate.views import View, look
from rows import make_row

ITEM = Item("q1", "u1", "food", None, (Message("user", "What about green tea?"),), ())


def scores(model: str, query: Query, *texts: str) -> list[float]:
    answers = tuple(Answer(str(k), "q1", t, "sample") for k, t in enumerate(texts))
    return [s.value for s in open_model(model).score([Group(query, answers)]) if s.value is not None]


def history(*texts: str, user: str = "own") -> Query:
    return look(ITEM, View.parse(f"history?user={user}"), posts=[Post(str(k), t) for k, t in enumerate(texts)])


QUESTION = look(ITEM, View.parse("question"))


def test_length_counts_characters() -> None:
    assert scores("builtin/length", QUESTION, "äö", "abc", "") == [2.0, 3.0, 0.0]


def test_random_is_a_coin_that_repeats() -> None:
    once = scores("builtin/random", QUESTION, *(f"answer {k}" for k in range(2000)))
    assert once == scores("builtin/random", QUESTION, *(f"answer {k}" for k in range(2000)))
    assert scores("builtin/random?seed=1", QUESTION, "answer 1") != once[1:2]
    assert scores("builtin/random", history("tea"), "answer 1") != once[1:2]
    assert 0.48 < np.mean(once) < 0.52
    assert 0.0 <= min(once) <= max(once) < 1.0


def test_lexical_reads_the_posts() -> None:
    high, low = scores("builtin/lexical", history("I grow jasmine", "bread"), "jasmine cake", "granite cake")
    assert high > low == 0.0


def test_lexical_compares_with_the_question_where_there_is_no_context() -> None:
    high, low = scores("builtin/lexical", QUESTION, "green leaves", "red leaves")
    assert high > low == 0.0


def test_lexical_has_nothing_to_say_of_an_empty_context() -> None:
    assert scores("builtin/lexical", history(), "jasmine", "") == [0.0, 0.0]


def test_lexical_does_not_grow_with_repetition_of_words() -> None:
    once, thrice = scores("builtin/lexical", history("jasmine rice", "rye"), "jasmine", "jasmine jasmine jasmine")
    assert once == pytest.approx(thrice)


def test_bradley_terry_is_the_maximum_of_its_likelihood() -> None:
    rng = np.random.default_rng(0)
    gaps = rng.normal(size=(200, len(FEATURES)))
    gaps[:, 0] += 1
    weights = fit_bradley_terry(gaps)
    scale = np.sqrt(np.mean(gaps**2, axis=0))

    def loss(w: Any) -> float:
        return float(2 * np.log1p(np.exp(-gaps @ w)).sum() + 0.5 * np.sum((w * scale) ** 2))

    for k in range(len(FEATURES)):
        for step in (-0.02, 0.02):
            moved = weights.copy()
            moved[k] += step
            assert loss(moved) > loss(weights)


def test_style_learns_a_surface_rule_and_not_the_user(write: Any) -> None:
    rows = [
        make_row(k, user_id=f"u{k % 12}", chosen=f"Soup {k}! Try it!", rejected=f"Soup {k}. Try it.") for k in range(60)
    ]
    data = open_data(str(write(*rows)))
    query = look(data.get("q7"), View.parse("question"))
    up, down = (s.value for s in open_model("builtin/style", data).score([Group(query, data.answers("q7"))]))
    assert up is not None
    assert down is not None
    assert up > down


def test_style_is_blind_on_twins() -> None:
    data = open_data("sample")
    model = open_model("builtin/style", data)
    for item in data:
        assert item.twin is not None
        pairs = [Group(look(item, View.parse("question")), data.answers(name)) for name in (item.id, item.twin)]
        chosen, rejected, twin_chosen, twin_rejected = (s.value for s in model.score(pairs))
        assert (chosen, rejected) == (twin_rejected, twin_chosen)


def test_twins_and_users_share_a_fold(write: Any) -> None:
    a, b = (
        make_row(1, question="Q?", twin="q2", chosen="A.", rejected="B."),
        make_row(2, question="Q?", twin="q1", chosen="B.", rejected="A."),
    )
    found = components(open_data(str(write(a, b, make_row(3, user_id="u2"), make_row(4)))))
    assert found["q1"] == found["q2"] == found["q3"] != found["q4"]


@given(st.text())
def test_features_are_finite(text: str) -> None:
    assert features(text).shape == (len(FEATURES),)
    assert np.isfinite(features(text)).all()


def test_style_needs_pairs() -> None:
    with pytest.raises(PalateError, match="pairs"):
        open_model("builtin/style")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("builtin/lenght", "Did you mean 'length'"),
        ("bultin/length", "Did you mean 'builtin'"),
        ("builtin", "a name is needed"),
        ("builtin/length?seed=1", "unknown option 'seed'"),
        ("builtin/random?seed=x", "whole number"),
        ("length", "unknown family"),
    ],
)
def test_bad_models(model: str, message: str) -> None:
    with pytest.raises(PalateError, match=message):
        open_model(model)


def test_a_family_cannot_be_taken_twice() -> None:
    assert families() == ["builtin", "dpo", "hf", "http", "judge", "likelihood", "rate"]
    with pytest.raises(ValueError, match="already"):
        register("builtin", lambda *_: None)  # type: ignore[arg-type, return-value]


def ok(value: float) -> Score:
    return Score("a", "ok", value)


@pytest.mark.parametrize(("up", "down", "outcome"), [(1.0, 0.0, "correct"), (0.0, 1.0, "wrong"), (0.5, 0.5, "tie")])
def test_the_higher_score_wins(up: float, down: float, outcome: str) -> None:
    assert decide("q", [ok(up)], [ok(down)]).outcome == outcome


def test_draws_are_averaged() -> None:
    found = decide("q", [ok(1.0), ok(0.0)], [ok(0.2), ok(0.4)])
    assert (found.outcome, found.chosen_score, found.rejected_score) == ("correct", 0.5, pytest.approx(0.3))


def test_a_failed_score_is_never_a_verdict() -> None:
    found = decide("q", [ok(1.0)], [Score("b", "overlong", None, "too long")])
    assert (found.status, found.outcome, found.chosen_score, found.notes) == ("overlong", None, None, ("too long",))
    with pytest.raises(AssertionError):
        Score("a", "error", 0.5)


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(PalateError, match="no model folder"):
        open_model(f"hf/{tmp_path}/nothing")
