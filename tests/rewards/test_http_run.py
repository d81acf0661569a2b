"""Whole runs against reward servers: the same numbers as at home, servers that die, secrets that stay secret."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import palate
from llm.stub import Asked, Reply
from palate.errors import ModelError
from palate.evaluation import Run
from rewards.servers import Route, Site, length, ok, results, vllm
from rewards.servers import palate as palate_server
from rewards.test_http import groups, scorer, scores
from rows import make_row

KEY = "sk-TEST-abc123"


def numbers(run: Run) -> dict[str, Any]:
    return {i: (r["status"], r["outcome"], r["chosen_score"], r["rejected_score"]) for i, r in run.rows.items()}


@pytest.mark.parametrize("routes", [palate_server(), vllm(), palate_server(window=100_000, room=5000)])
@pytest.mark.parametrize("view", ["history", "swapped?draws=2"])
def test_a_run_against_a_server_is_the_run_at_home(view: str, routes: dict[str, Route], tmp_path: Path) -> None:
    with Site(routes) as site:
        found = palate.evaluate("sample", [f"http/{site.address}", "builtin/length"], view, tmp_path, limit=6)
    served, home = found.runs
    assert len(served.rows) == 6
    assert numbers(served) == numbers(home)
    assert served.metrics["accuracy"] == home.metrics["accuracy"]
    assert served.folder.name.startswith(f"http_{site.address.replace(':', '_')}--")
    assert served.record["environment"]["server"] in ("palate", "vllm")


def test_a_small_window_drops_posts_from_the_bottom_of_the_ranking(tmp_path: Path) -> None:
    with Site(palate_server(window=3000, room=1000)) as site:
        one = palate.evaluate("sample", f"http/{site.address}", "history", tmp_path, limit=6).runs[0]
        sent_off = [i["messages"] for a in site.at("/score") for i in a.body["items"]]
    assert one.metrics["dropped_posts"]["posts"] > 0
    assert all(sum(len(t["content"]) for t in turns) <= 2000 for turns in sent_off)


def dying(after: int) -> tuple[Site, list[int]]:
    """A Palate server that drops every connection after so many requests for scores."""
    count = [0]

    def score(asked: Asked) -> Reply:
        count[0] += 1
        if count[0] > after:
            return Reply(raw=b"{" * 100, cut=True)
        return results(lambda i: ok(i, length(i["response"])))(asked)

    return Site(palate_server(score)), count


def test_a_server_that_dies_leaves_errors_and_the_same_command_goes_on(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palate.rewards.http.options.RETRIES", 1)
    data = write(*(make_row(k) for k in range(1, 13)))
    site, count = dying(1)
    with site:
        model = f"http/{site.address}?parallel=1&timeout=1"
        first = palate.evaluate(data, model, "question", tmp_path / "runs").runs[0]
        assert first.metrics["status"] == {"ok": 4, "error": 8}
        asked_before = len(site.at("/score"))
        count[0] = -1000
        again = palate.evaluate(data, model, "question", tmp_path / "runs").runs[0]
        assert again.metrics["status"] == {"ok": 12}
        assert len(site.at("/score")) - asked_before == 2
    assert again.folder == first.folder


def test_a_dead_server_is_not_waited_for_by_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palate.rewards.http.options.RETRIES", 2)
    told: list[str] = []
    with Site(vllm()) as site:
        model = scorer(site, "?parallel=1", told=lambda item, text: told.append(text))
        assert model.budget is not None
    found = scores(model, groups(20))
    assert {s.status for s in found.values()} == {"error"}
    assert len(found) == 40
    assert all("onnection" in str(s.note) for s in found.values())
    assert told == ["tried again after no reply"] * 2


@pytest.mark.parametrize(
    "routes", [{}, vllm(lambda asked: [0.0] * 8), vllm(lambda asked: Reply(status=400, error="no template"))]
)
def test_a_server_that_gives_no_rewards_leaves_no_folder(routes: dict[str, Route], tmp_path: Path) -> None:
    with Site(routes) as site, pytest.raises(ModelError):
        palate.evaluate("sample", f"http/{site.address}", "question", tmp_path / "runs", limit=2)
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.parametrize("score", [None, lambda a: Reply(status=422, error=f"bad key {KEY} pw-hush t-999")])
def test_planted_keys_are_found_nowhere(score: Any, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(make_row(k)) + "\n" for k in (1, 2)))
    args = ["--data", str(data), "--view", "question", "--out", str(tmp_path / "runs"), "--json"]
    with Site(palate_server(score)) as site:
        model = f"http/someone:pw-hush@{site.address}/%3Fteam=t-999?key_env=RM_KEY"
        done = subprocess.run(
            [sys.executable, "-m", "palate", "eval", "--model", model, *args],
            capture_output=True,
            text=True,
            env={**os.environ, "RM_KEY": KEY, "OPENAI_LOG": "debug"},
            cwd=tmp_path,
            check=False,
        )
    files = [p for p in (tmp_path / "runs").rglob("*") if p.is_file()]
    told = "\n".join([done.stdout, done.stderr, *map(str, files), *(p.read_text() for p in files)])
    assert done.returncode == 0, done.stderr
    assert len(site.at("/score")) >= 1
    assert len(files) >= 3
    assert site.address in told
    for secret in (KEY, "pw-hush", "t-999"):
        assert secret not in told


def test_a_dry_run_asks_for_no_score(tmp_path: Path) -> None:
    from palate.evaluation import estimate

    with Site(vllm()) as site:
        estimate("sample", f"http/{site.address}", "question", tmp_path / "runs", limit=3)
        assert site.at("/classify") == []
