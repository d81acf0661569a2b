"""A real model behind a real server: SmolLM2-135M-Instruct and llama.cpp, in this process, on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import palate
from palate.evaluation import Run
from palate.llm.client import Ask, Client
from palate.llm.transport import Endpoint
from palate.records import Message
from palate.rewards.judge.forms import SCORE_SCHEMA, VERDICT_SCHEMA
from rows import make_row
from smollm import CONTEXT, serving_smollm

pytestmark = [pytest.mark.llm, pytest.mark.xdist_group("llm")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of the server while the tests of this file run."""
    with serving_smollm() as url:
        yield url


def run(server: str, out: Path, model: str, view: str = "question", **options: Any) -> Run:
    full = f"{model}{'&' if '?' in model else '?'}connections=2"
    return palate.evaluate("sample", full, view, out, base_url=server, **options).runs[0]


def calls(one: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (one.folder / "calls.jsonl").read_text().splitlines()]


def test_judge(server: str, tmp_path: Path) -> None:
    one = run(server, tmp_path, "judge/smol?max_tokens=48", limit=2)
    stored = calls(one)
    assert len({row["id"] for row in stored}) == 4
    assert all(row["usage"]["prompt_tokens"] > 100 for row in stored)
    assert sum(one.metrics["status"].values()) == 2
    assert set(one.metrics["status"]) <= {"ok", "truncated", "unparsed"}
    for row in stored:
        if row["status"] == "ok":
            assert json.loads(row["text"])["verdict"] in ("A", "B", "tie")
    before = len(stored)
    assert run(server, tmp_path, "judge/smol?max_tokens=48", limit=2).metrics == one.metrics
    assert len(calls(one)) == before


def test_log_probabilities(server: str, tmp_path: Path) -> None:
    one = run(server, tmp_path, "judge/smol?mode=logprob", limit=2)
    assert one.metrics["coverage"] == 1.0
    for row in calls(one):
        assert len(row["logprobs"]) >= 20
        assert row["usage"]["completion_tokens"] == 1
    assert all(0 < v < 1 for row in one.rows.values() for v in row["judge"]["first_seat"])


def test_rate(server: str, write: Any, tmp_path: Path) -> None:
    data = write(make_row(1))
    one = palate.evaluate(data, "rate/smol?connections=2&max_tokens=48", "question", tmp_path, base_url=server).runs[0]
    assert set(one.metrics["status"]) <= {"ok", "truncated", "unparsed"}
    assert len({row["id"] for row in calls(one)}) == 2


@pytest.mark.parametrize("schema", [VERDICT_SCHEMA, SCORE_SCHEMA])
def test_structured_output(server: str, schema: dict[str, Any]) -> None:
    """The server holds the model to the schema although nothing in the prompt speaks of it."""
    ask = Ask("k", "q", (Message("user", "Say a word about soup, in JSON."),), 200, schema=schema)
    [call] = Client(Endpoint("smol", server)).ask([ask])
    assert (call.text or "").lstrip().startswith("{")
    if call.status == "ok":
        assert set(json.loads(call.text or "")) == set(schema["required"])


def test_what_is_too_long_is_told(server: str) -> None:
    ask = Ask("k", "q", (Message("user", "word " * 2 * CONTEXT),), 10)
    [call] = Client(Endpoint("smol", server)).ask([ask])
    assert call.status == "overlong"
    assert "context" in str(call.note)
