"""What a training is told: checked, with what its defaults come to, from the command line or a recipe."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate.cli.app import run
from palate.errors import SpecError
from palate.ppo import Training
from palate.ppo.schedule import schedule, steps_of
from palate.recipes import read_recipe
from places import ROOT

NEEDED = {"method": "grpo", "policy": "p", "reward": "builtin/length", "data": "sample"}


def test_defaults_are_resolved_by_method() -> None:
    assert Training.of(NEEDED).as_dict()["group"] == 4
    alone = Training.of(NEEDED | {"method": "ppo"})
    assert (alone.answers, alone.questions, alone.as_dict()["ppo_epochs"]) == (1, 32, 4)
    assert Training.of(NEEDED | {"batch": 4}).at_once == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "dpo"}, "method"),
        ({"policy": None}, "'policy' is needed"),
        ({"lr": -1.0}, "lr"),
        ({"batch": 0}, "batch"),
        ({"colour": "red"}, "colour"),
        ({"batch": 30}, "no multiple of 4"),
        ({"batch": 32, "minibatch": 5}, "minibatch"),
        ({"group": 1, "batch": 8}, "group must be 2"),
        ({"ppo_epochs": 2}, "ppo_epochs"),
        ({"method": "ppo", "on_failure": "mask"}, "cannot leave one out"),
        ({"on_failure": "zero"}, "on_failure"),
        ({"max_failure_rate": 1.5}, "max_failure_rate"),
    ],
)
def test_what_cannot_be_is_told(changes: dict[str, object], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        Training.of(NEEDED | changes)


def test_a_recipe_is_read_and_the_command_line_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('method = "ppo"\npolicy = "nowhere/"\nreward = "builtin/length"\ndata = "sample"\nbatch = 8\n')
    assert run(["ppo", "train", "--config", str(recipe), "--batch", "0", "--out", str(tmp_path / "o")]) == 2
    assert "batch = 0" in capsys.readouterr().err
    recipe.write_text('metod = "ppo"\n')
    assert run(["ppo", "train", "--config", str(recipe), "--out", str(tmp_path / "o")]) == 2
    assert "Did you mean 'method'?" in capsys.readouterr().err


def test_the_recipe_of_the_repository_is_whole() -> None:
    path = ROOT / "recipes" / "ppo-small.toml"
    told = Training.of(read_recipe(path, [f.name for f in fields(Training)]))
    assert (told.method, told.questions) == ("grpo", 2)


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 9), st.integers(0, 5))
def test_every_item_comes_before_any_comes_again(items: int, questions: int, steps: int, seed: int) -> None:
    ids = [f"q{k}" for k in range(items)]
    found = schedule(ids, steps, questions, seed)
    flat = [name for step in found for name in step]
    assert all(len(step) == questions for step in found)
    assert len(found) == steps
    for start in range(0, len(flat), items):
        part = flat[start : start + items]
        assert len(set(part)) == len(part)
    assert schedule(ids, steps + 3, questions, seed)[:steps] == found


def test_a_pass_takes_as_many_steps_as_it_takes() -> None:
    assert [steps_of(60, 8, 1.0), steps_of(60, 8, 2.0), steps_of(3, 8, 0.1)] == [8, 15, 1]
    assert schedule(["a", "b", "c"], 1, 3, 0) != schedule(["a", "b", "c"], 1, 3, 3)
