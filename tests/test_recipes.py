"""Recipes: strict, the command line wins, and those that ship are valid."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bon.world import rows, sample
from palate.errors import PalateError
from palate.recipes import read_recipe
from places import ROOT


def test_values_come_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('model = ["a", "b"]\nn = 8\nbase-url = "x"\n')
    assert read_recipe(path, ["model", "n", "base-url", "view"]) == {"model": ["a", "b"], "n": 8, "base-url": "x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle = 'x'", "unknown option 'modle'. Did you mean 'model'"),
        ("[model]\na = 1", "'model' must be a text"),
        ("model = [[1]]", "'model' must be a text"),
        ("model = ", "not TOML"),
        ("model = 'a'\nmodel = 'b'", "not TOML"),
    ],
)
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(PalateError, match=message):
        read_recipe(path, ["model", "n"])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PalateError, match="no such file"):
        read_recipe(tmp_path / "none.toml", ["n"])


def palate(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "palate", *map(str, args)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_command_line_wins(write: Any, tmp_path: Path) -> None:
    data = write(*rows(1))
    samples = tmp_path / "s.jsonl"
    samples.write_text("".join(json.dumps(sample(1, k)) + "\n" for k in range(4)))
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        f'data = "{data}"\nsamples = "{samples}"\nmodel = ["builtin/length", "builtin/lexical"]\nn = 2\n'
        f'view = ["question"]\nout = "{tmp_path / "out"}"\n'
    )
    found = palate("bon", "--config", recipe, "--json")
    assert found.returncode == 0, found.stderr
    record = json.loads(found.stdout)["record"]
    assert (record["n"], len(record["systems"])) == (2, 2)
    found = palate("bon", "--config", recipe, "--n", "4", "--model", "builtin/length", "--json")
    record = json.loads(found.stdout)["record"]
    assert (record["n"], len(record["systems"])) == (4, 1)
    recipe.write_text("n = 'many'\nmodel = ['builtin/length']\n")
    found = palate("bon", "--config", recipe)
    assert found.returncode == 2
    assert "--n" in found.stderr
    recipe.write_text("limt = 3\n")
    found = palate("bon", "--config", recipe)
    assert (found.returncode, "Did you mean 'limit'" in found.stderr) == (2, True)
    assert "Traceback" not in found.stderr


def test_the_recipes_that_ship_are_read_and_say_what_they_would_do(tmp_path: Path) -> None:
    for path in sorted((ROOT / "recipes").glob("bon-*.toml")):
        options = tomllib.loads(path.read_text())
        models = [arg for _ in options["model"] for arg in ("--model", "builtin/length")]
        found = palate("bon", "--config", path, *models, "--data", "sample", "--retriever", "bm25", "--dry-run",
                       "--json", "--out", tmp_path / path.stem)  # fmt: skip
        assert found.returncode == 0, found.stderr
        stages = {s["stage"]: s["calls"] for s in json.loads(found.stdout)["stages"]}
        assert stages["sample"] == min(60, options.get("limit", 60)) * options["n"]
        assert stages["grade"] > 0


def test_the_papers_recipe_has_the_papers_numbers() -> None:
    found = tomllib.loads((ROOT / "recipes" / "bon-paper.toml").read_text())
    assert found["n"] == 16
    for part in ("Qwen2.5-0.5B-Instruct", "temperature=1.0", "top_p=0.9", "max_tokens=512", "view=history", "k=10"):
        assert part in found["policy"]
    assert "Qwen2.5-32B-Instruct" in found["grader"]
    assert "temperature=0" in found["grader"]
