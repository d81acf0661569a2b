"""The offline planner: phrases of this user, not of everybody, and never of the key."""

from pathlib import Path
from typing import Any

import pytest

from palate.data import Dataset, open_data
from palate.errors import PalateError
from palate.planning import Plan, Planner, Task, make_planner
from palate.planning.keyphrase import STOP, choose, content_words
from palate.planning.words import stem
from palate.records import Post
from palate.store import RowLog
from rows import make_row

COMMON = "My neighbours wrote about the weather again and about the weather report."


def data_of(write: Any, *rows: Any) -> Dataset:
    return open_data(str(write(*rows)))


def plans(planner: Planner, data: Dataset, **changes: Any) -> dict[str, Plan]:
    tasks = [Task(i.id, i.id, i.domain, i.question, changes.get("posts", i.posts)) for i in data]
    return {p.id: p for p in planner.plan(tasks, RowLog(Path("nowhere")))}


def row(number: int, *texts: str, **changes: Any) -> Any:
    profile = [{"id": f"p{number}-{k}", "text": text} for k, text in enumerate(texts)]
    return make_row(number, profile=profile, **changes)


def test_what_everybody_writes_counts_less_than_what_this_user_writes(write: Any) -> None:
    data = data_of(
        write,
        row(1, COMMON, "The beehive stood in the orchard.", "A beehive needs quiet."),
        row(2, COMMON, "The lathe hummed in the cellar.", "Oil the lathe."),
        row(3, COMMON, "The weather again."),
    )
    found = plans(make_planner("keyphrase", data), data)
    assert "beehive" in found["q1"].aspects[0]
    assert "lathe" in found["q2"].aspects[0]
    assert not any("lathe" in a for a in found["q1"].aspects)


def test_the_sample_gets_three_to_six_short_phrases_without_stop_words() -> None:
    data = open_data("sample")
    for plan in plans(make_planner("keyphrase", data), data).values():
        assert 3 <= len(plan.aspects) <= 6
        stems = [stem(w) for a in plan.aspects for w in a.split()]
        assert len(set(stems)) == len(stems)
        for aspect in plan.aspects:
            assert 1 <= len(aspect.split()) <= 3
            assert not STOP.intersection(aspect.split())


def test_the_control_never_reads_posts(write: Any) -> None:
    data = data_of(write, row(1, "A beehive."), row(2, "A lathe."))
    control = make_planner("question-only", data)
    assert not control.reads_posts
    assert plans(control, data) == plans(control, data, posts=(Post("x", "Zeppelins everywhere."),))


def test_posts_without_words_are_no_plan(write: Any) -> None:
    data = data_of(write, row(1, "It is 12 of 14, and so on!"), row(2, "A lathe."))
    plan = plans(make_planner("keyphrase", data), data)["q1"]
    assert (plan.status, plan.aspects) == ("no_context", ())
    assert plan.notes == ("no words to plan from",)


def test_few_words_give_few_phrases_and_say_so(write: Any) -> None:
    data = data_of(write, row(1, "Beehives!"), row(2, "A lathe."))
    plan = plans(make_planner("keyphrase", data), data)["q1"]
    assert plan.aspects == ("beehives",)
    assert "1 phrases" in plan.notes[0]


def test_a_phrase_does_not_cross_punctuation_or_stop_words() -> None:
    weights = dict.fromkeys(("black", "tea", "green", "garden"), 1.0)
    assert choose(weights, ["black tea. green is the garden"])[0] == "black tea"
    assert content_words("I don't like the old lathe, 12 times") == ["lathe"]


def test_words_of_any_script(write: Any) -> None:
    data = data_of(write, row(1, "Люблю зелёный чай"), row(2, "A lathe."))
    assert plans(make_planner("keyphrase", data), data)["q1"].status == "ok"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keyphras", "Did you mean 'keyphrase'"),
        ("keyphrase?n=3", "unknown option"),
        ("keyphrase@main", "no revision"),
        ("llm/", "unknown"),
        ("stored/plans", "unknown"),
        ("llm/m?temprature=1", "Did you mean 'temperature'"),
        ("llm/m?temperature=hot", "0 to 2"),
    ],
)
def test_bad_planners(text: str, message: str) -> None:
    with pytest.raises(PalateError, match=message):
        make_planner(text, open_data("sample"))


@pytest.mark.parametrize(
    ("first", "second"), [("rides", "riding"), ("ride", "riding"), ("running", "run"), ("parties", "party")]
)
def test_stems_meet(first: str, second: str) -> None:
    assert stem(first) == stem(second)
