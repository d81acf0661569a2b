"""Scores of samples: broken numbers, views that lend, draws that are averaged, and work that goes on."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bon.world import rows, sample
from palate.bon.api import live_of
from palate.bon.curve import Scored, Table, curve_of, picked
from palate.bon.job import Request, open_job
from palate.bon.score import Scoring
from palate.data import open_data
from palate.grading import grade_id
from palate.records import Group, Score
from palate.retrieval import make_retriever
from palate.views import Looker, View


class Fixed:
    """A scorer that gives numbers by the answer's text, and notes what it was asked."""

    name = "fixed/x"
    probe = needs_context = False
    budget = None

    def __init__(self, values: dict[str, float | None]) -> None:
        self.identity: dict[str, Any] = {"family": "fixed", "id": "x", "options": {}}
        self.environment: dict[str, Any] = {}
        self.values = values
        self.groups: list[Group] = []

    def prepare(self) -> None:
        """Nothing to load."""

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        for group in groups:
            self.groups.append(group)
            for answer in group.answers:
                value = self.values[answer.text]
                if value is not None:
                    yield Score(answer.id, "ok", value)


def scoring(data: Path, model: Fixed, view: str = "question") -> Scoring:
    opened = open_data(str(data))
    looker = Looker(opened, make_retriever("bm25"))
    return Scoring(opened, looker, "fixed/x", model, View.parse(view), {}, "s")


def run(one: Scoring, out: Path, *texts: str, items: int = 1) -> dict[str, Any]:
    made = [sample(i, k, text) | {"id": f"q{i}@{k}"} for i in range(1, items + 1) for k, text in enumerate(texts)]
    held = {row["id"]: row for row in made}
    return dict(one.run(out, held, list(held), (), lambda *now: None))


def table(data: Path, found: dict[str, Any], grades: list[float], ks: list[int]) -> Table:
    opened = open_data(str(data))
    held = {s: sample(1, k) | {"id": s} for k, s in enumerate(f"q1@{k}" for k in range(len(grades)))}
    given = {grade_id(s, 0): {"value": g, "status": "ok"} for s, g in zip(held, grades, strict=True)}
    return Table(opened, ["q1"], len(grades), ks, held, [Scored("x", "question", False, found, "")], given)


def test_a_number_that_is_none_never_wins(write: Any, tmp_path: Path) -> None:
    data = write(*rows(1))
    values = {"a": float("nan"), "b": 0.2, "c": 0.9, "d": float("inf")}
    found = run(scoring(data, Fixed(values)), tmp_path, *"abcd")
    assert [found[f"q1@{k}"]["status"] for k in range(4)] == ["error", "ok", "ok", "error"]
    assert [found[f"q1@{k}"]["score"] for k in range(4)] == [None, 0.2, 0.9, None]
    made = table(data, found, [1.0, 0.0, 0.5, 1.0], [1, 4])
    assert picked(made) == ["q1@0", "q1@2"], "the first sample for the random choice, and the third"
    curve = curve_of(made)
    assert curve["systems"][0]["points"][-1]["value"] == 0.5
    assert curve["systems"][0]["scores"]["effective"]["least"] == 2
    assert curve["systems"][0]["points"][0]["coverage"] == 0.5


def test_an_answer_that_the_model_passes_over_is_an_error(write: Any, tmp_path: Path) -> None:
    found = run(scoring(write(*rows(1)), Fixed({"a": 1.0, "b": None})), tmp_path, "a", "b")
    assert (found["q1@1"]["status"], found["q1@1"]["notes"]) == ("error", ["the reward model gave no number"])


def test_an_item_is_one_group_and_only_what_is_missing_is_scored(write: Any, tmp_path: Path) -> None:
    model = Fixed({"a": 1.0, "b": 2.0, "c": 3.0})
    one = scoring(write(*rows(2)), model)
    run(one, tmp_path, "a", "b", items=2)
    assert [len(g.answers) for g in model.groups] == [2, 2]
    model.groups.clear()
    found = run(one, tmp_path, "a", "b", "c", items=2)
    assert [[a.text for a in g.answers] for g in model.groups] == [["c"], ["c"]]
    assert len(found) == 6
    model.groups.clear()
    run(one, tmp_path, "a", "b", "c", items=2)
    assert model.groups == []


def test_draws_are_averaged_and_a_lone_user_has_no_donor(write: Any, tmp_path: Path) -> None:
    model = Fixed({"a": 1.0})
    found = run(scoring(write(*rows(3)), model, "swapped?draws=2"), tmp_path / "three", "a", items=3)
    assert len(model.groups) == 6
    assert all(row["score"] == 1.0 for row in found.values())
    found = run(scoring(write(*rows(1)), model, "swapped"), tmp_path / "one", "a")
    assert (found["q1@0"]["status"], found["q1@0"]["score"]) == ("no_context", None)


def test_samples_keep_the_order_of_items_whatever_the_order_of_the_file(write: Any, tmp_path: Path) -> None:
    import json

    path = tmp_path / "s.jsonl"
    made = [sample(i, k) for k in (1, 0) for i in (2, 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    job = open_job(Request(str(write(*rows(2))), ["builtin/length"], ["question"], tmp_path / "o", samples=path, n=2))
    assert live_of(job, {row["id"]: row for row in job.given}) == ["q1@0", "q1@1", "q2@0", "q2@1"]


@pytest.mark.parametrize(("n", "ks"), [(1, [1]), (5, [1, 2, 4]), (16, [1, 2, 4, 8, 16])])
def test_the_grid_is_the_powers_of_two(n: int, ks: list[int], write: Any, tmp_path: Path) -> None:
    job = open_job(
        Request(str(write(*rows(1))), ["builtin/length"], ["question"], tmp_path, policy="llm/p", n=n, base_url="x")
    )
    assert list(job.ks) == ks
