"""Grading again as a command: rows and metrics change, the server is not needed."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import palate
from llm.stub import Asked, Reply, Stub
from palate.cli.app import app
from palate.errors import RunError
from palate.evaluation.regrade import regrade
from palate.store import RowLog
from rows import make_row


def first_seat(asked: Asked) -> Reply:
    """Say A in a form that two parsers read, and only one of them for odd items."""
    return Reply("[[A]]" if asked.day % 2 else "Verdict: A")


@pytest.fixture
def folder(write: Any, tmp_path: Path) -> Path:
    data = write(*(make_row(k) for k in range(1, 9)))
    with Stub(first_seat) as server:
        run = palate.evaluate(data, "judge/m", "question", tmp_path / "runs", base_url=server.url).runs[0]
    assert (run.metrics["accuracy"], run.metrics["coverage"]) == (0.5, 1.0)
    return run.folder


def test_another_parser_and_back(folder: Path) -> None:
    old = RowLog(folder / "rows.jsonl").rows
    other = regrade(folder, parser="brackets")
    assert (other.after["coverage"], other.after["status"]) == (0.5, {"ok": 4, "unparsed": 4})
    assert json.loads((folder / "metrics.json").read_text()) == other.after
    assert regrade(folder, parser="verdict").after == other.before
    assert RowLog(folder / "rows.jsonl").rows == old


def test_the_command(folder: Path) -> None:
    done = CliRunner().invoke(app, ["regrade", str(folder), "--tie", "agree"])
    assert done.exit_code == 0, done.output
    assert "Graded again" in done.output
    assert json.loads((folder / "metrics.json").read_text())["grade"]["tie"] == "agree"


def test_what_cannot_be_graded_again_is_told(folder: Path, write: Any, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not the folder of a finished run"):
        regrade(tmp_path)
    with pytest.raises(RunError, match="other data"):
        regrade(folder, str(write(make_row(99), name="other.jsonl")), tie="agree")
    scored = palate.evaluate("sample", "builtin/length", "question", tmp_path / "runs", limit=2).runs[0]
    with pytest.raises(RunError, match="gives numbers, not replies"):
        regrade(scored.folder, tie="agree")
