"""Every command and every piece of Python in README and docs is run; what needs a hub or a GPU is at least parsed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from palate.cli.app import app
from palate.cluster import Place
from palate.data.source import parse
from palate.rewards import families
from palate.spec import Spec
from palate.views import View
from places import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(page: Path) -> list[tuple[str, str, str]]:
    return [(m[1], m[2].strip(), m[3]) for m in BLOCK.finditer(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for language, mark, text in blocks(page):
        if language == "bash" and not mark:
            script = "\n".join(line for line in text.splitlines() if not line.startswith("pip install"))
            done = subprocess.run(
                ["bash", "-euc", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
        elif language == "python":
            done = subprocess.run(
                [sys.executable, "-c", text], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
        else:
            assert language == "text" or mark == "not-run"
            continue
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def test_what_cannot_run_here_is_at_least_a_command() -> None:
    command = typer.main.get_command(app)
    found = [t for page in PAGES for language, mark, t in blocks(page) if language == "bash" and mark == "not-run"]
    assert found
    for line in "".join(found).splitlines():
        if line.startswith("export "):
            continue
        name, *args = shlex.split(line)[1:]
        found_command = command.commands[name]  # type: ignore[attr-defined]
        while hasattr(found_command, "commands"):
            name, *args = args
            found_command = found_command.commands[name]
        context = found_command.make_context(name, args)
        values = context.params
        if name == "serve" and "model" in values:
            assert Spec.parse(values["model"]).head.partition("/")[0] in families()
            assert View.parse(values["view"] or "question")
        elif "model" in values:
            parse(values["data"])
            assert all(Spec.parse(m).head.partition("/")[0] in families() for m in values["model"])
            assert all(View.parse(v) for v in values["view"])
            assert not values.get("ray") or Place.parse(values["ray"])


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in LINK.findall(page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_readme_shows_the_table_that_its_command_prints(tmp_path: Path) -> None:
    views = ["--view", "question", "--view", "history", "--view", "swapped", "--view", "oracle"]
    args = [sys.executable, "-m", "palate", "eval", "--data", "sample", "--model", "builtin/lexical", *views]
    shown = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    printed = [" ".join(line.split()) for line in shown.splitlines()]
    table = next(t for language, _, t in blocks(ROOT / "README.md") if language == "text")
    for line in table.splitlines():
        assert " ".join(line.split()) in printed


def test_the_audit_page_shows_the_verdicts_that_its_command_prints(tmp_path: Path) -> None:
    page = blocks(ROOT / "docs" / "audit.md")
    line = next(t for language, _, t in page if language == "bash")
    args = [sys.executable, "-m", *shlex.split(line)]
    shown = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    printed = [" ".join(row.split()) for row in shown.splitlines()]
    table = next(t for language, _, t in page if language == "text")
    told = [" ".join(row.split()) for row in table.splitlines()]
    assert told == [row for row in printed[2:] if row and set(row) != {"─"}][: len(told)]
    assert printed[-3] == told[-1]
    assert (tmp_path / "audit" / "audit.html").is_file()
