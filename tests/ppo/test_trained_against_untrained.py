"""Trained against untrained: answers of both, the same form for both, grades by a stub, a paired difference."""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm.stub import Asked, Reply, Stub, score
from models import TinyModels
from palate.cli.app import run
from palate.errors import DataError, RunError, SpecError
from palate.ppo import Judging, evaluate
from palate.store import RowLog
from rows import make_row

pytestmark = pytest.mark.hf
N = 6


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def data(write: Any) -> Path:
    return Path(write(*[make_row(k) for k in range(1, N + 1)]))


@pytest.fixture
def before(models: TinyModels) -> Path:
    return models("llama", causal=True, num_hidden_layers=1)


@pytest.fixture
def after(models: TinyModels) -> Path:
    return models("llama", causal=True, num_hidden_layers=1, hidden_size=16, num_attention_heads=2)


def judging(before: Path, after: Path, data: Path, **changes: Any) -> Judging:
    given = {"policy_before": str(before), "policy_after": str(after), "data": str(data), "grader": "llm/g"}
    return Judging.of(given | {"response": 6, "view": "history?k=1", "batch": 4} | changes)


def by_answer(asked: Asked) -> Reply:
    """Grade by the answer's first letter, so that grades can be told from the answers."""
    return score(ord(asked.first[0]) % 3 if asked.first.strip() else 0)


def samples(folder: Path) -> dict[str, dict[str, Any]]:
    return {r["id"]: r for r in map(json.loads, (folder / "samples.jsonl").read_text().splitlines())}


def level(text: str) -> float:
    return ord(text[0]) % 3 / 2 if text.strip() else 0.0


def test_the_difference_is_that_of_the_grades_of_both_sides(
    before: Path, after: Path, data: Path, tmp_path: Path
) -> None:
    with Stub(by_answer) as server:
        found = evaluate(judging(before, after, data), tmp_path / "o", base_url=server.url)
    sides = {name: samples(tmp_path / "o" / name) for name in ("before", "after")}
    graded = {name: [level(r["text"]) for r in rows.values()] for name, rows in sides.items()}
    assert all(len(rows) == N for rows in sides.values())
    assert found["before"]["mean"] == pytest.approx(statistics.mean(graded["before"]))
    gap = statistics.mean(graded["after"]) - statistics.mean(graded["before"])
    assert found["difference"]["value"] == pytest.approx(gap)
    assert found["difference"]["common"] == N
    assert found["before"]["coverage"] == 1.0
    board = {
        (r["metric"], r["source"].get("side")): r for r in json.loads((tmp_path / "o/board.json").read_text())["rows"]
    }
    assert board["ppo/gain", None]["value"] == found["difference"]["value"]
    assert board["ppo/grade", "after"]["value"] == found["after"]["mean"]
    row = next(iter(sides["after"].values()))
    assert row.keys() >= {"id", "item_id", "k", "status", "text", "finish_reason", "policy", "view"}


def test_what_is_there_is_not_done_again(before: Path, after: Path, data: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "o", judging(before, after, data)
    with Stub(by_answer) as server:
        first = evaluate(told, out, base_url=server.url)
        asked = len(server.asked)
        assert evaluate(told, out, base_url=server.url) == first
        assert len(server.asked) == asked
        kept = samples(out / "before")
        whole = (out / "before" / "samples.jsonl").read_bytes()
        (out / "before" / "samples.jsonl").write_bytes(whole[: len(whole) // 2])
        progress: list[tuple[str, int, int, int]] = []
        assert evaluate(told, out, base_url=server.url, seen=lambda *now: progress.append(now)) == first
        answering = [now for now in progress if now[0] == "before: answers"]
        assert answering[0][1] == answering[0][3] < N, "the clock starts before the first batch, at what was there"
        assert answering[-1][1:3] == (N, N)
        assert samples(out / "before") == kept
        with pytest.raises(RunError, match="these differ: sampling"):
            evaluate(judging(before, after, data, seed=1), out, base_url=server.url)


def test_sampling_depends_on_the_seed_alone(before: Path, after: Path, data: Path, tmp_path: Path) -> None:
    texts = []
    with Stub(by_answer) as server:
        for name, seed in (("a", 0), ("b", 0), ("c", 1)):
            told = judging(before, after, data, temperature=1.0, seed=seed)
            evaluate(told, tmp_path / name, base_url=server.url)
            texts.append([r["text"] for r in samples(tmp_path / name / "before").values()])
    assert texts[0] == texts[1] != texts[2]


def test_an_ungraded_answer_is_no_zero(before: Path, after: Path, data: Path, tmp_path: Path) -> None:
    def rule(asked: Asked) -> Reply:
        return Reply("I cannot tell.") if asked.day == 2 else score(2)

    with Stub(rule) as server:
        found = evaluate(judging(before, after, data), tmp_path / "o", base_url=server.url)
    assert (found["before"]["graded"], found["before"]["mean"]) == (N - 1, 1.0)
    assert found["difference"]["common"] == N - 1
    assert found["difference"]["bounds"][0] < 0 < found["difference"]["bounds"][1]
    with Stub(lambda asked: Reply("I cannot tell.")) as server, pytest.raises(DataError, match="no answer is graded"):
        evaluate(judging(before, after, data), tmp_path / "p", base_url=server.url)


def test_no_rubric_is_shown_to_a_policy(before: Path, after: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="never goes into a prompt"):
        evaluate(judging(before, after, data, view="oracle"), tmp_path / "o", base_url="http://127.0.0.1:9/v1")


def training(folder: Path, policy: Path, **changes: Any) -> Path:
    """A folder as `train` leaves it."""
    import shutil

    from palate.ppo.policy import open_policy

    identity = open_policy(str(policy), 6).identity
    source = {"view": "history?k=1", "retriever": {"id": "bm25", "similarity": "bm25 lucene"}}
    reward = {"family": "builtin", "id": "length", "options": {}}
    config = {"method": "grpo", "response": 6, "policy": identity, "source": source, "reward": reward}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"status": "done", "config": config} | changes))
    shutil.copytree(policy, folder / "policy")
    return folder


def test_a_training_says_itself_what_its_policy_reads(before: Path, data: Path, tmp_path: Path) -> None:
    trained = training(tmp_path / "t", before)
    with Stub(by_answer) as server:
        told = judging(before, trained, data, view=None, response=None)
        found = evaluate(told, tmp_path / "o", base_url=server.url)
        assert found["difference"]["value"] == 0.0
        assert [found[side]["policy"] for side in ("before", "after")] == [before.name, "t"]
        assert {r["view"] for r in samples(tmp_path / "o" / "after").values()} == {"history?k=1"}
        board = json.loads((tmp_path / "o" / "board.json").read_text())["rows"]
        assert [r["system"] for r in board] == [before.name, "builtin/length", "builtin/length"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"view": "history?k=2"}, "view = history"),
        ({"response": 7}, "response = 7"),
        ({"retriever": "recency"}, "ranked"),
    ],
)
def test_what_differs_from_the_training_is_refused(
    changes: dict[str, Any], words: str, before: Path, data: Path, tmp_path: Path
) -> None:
    trained = training(tmp_path / "t", before)
    told = judging(before, trained, data, **{"view": None, "response": None} | changes)
    with pytest.raises(SpecError, match=words):
        evaluate(told, tmp_path / "o", base_url="http://127.0.0.1:9/v1")


def test_another_start_or_an_unfinished_training_is_refused(
    before: Path, after: Path, data: Path, tmp_path: Path
) -> None:
    trained = training(tmp_path / "t", before)
    told = judging(after, trained, data, view=None, response=None)
    with pytest.raises(SpecError, match="began from"):
        evaluate(told, tmp_path / "o", base_url="http://127.0.0.1:9/v1")
    half = training(tmp_path / "h", before, status="running")
    with pytest.raises(RunError, match="no finished training"):
        evaluate(judging(before, half, data), tmp_path / "o", base_url="http://127.0.0.1:9/v1")


def test_the_command_prints_the_difference(
    before: Path, after: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("response = 6\nbatch = 4\n")
    with Stub(by_answer) as server:
        args = ["--policy-before", str(before), "--policy-after", str(after), "--data", str(data), "--grader", "llm/g"]
        args += ["--base-url", server.url, "--config", str(recipe), "--view", "question", "--out", str(tmp_path / "o")]
        assert run(["ppo", "evaluate", *args]) == 0
    assert "after − before:" in capsys.readouterr().out


@pytest.mark.parametrize("asked", [2, N + 2], ids=["grading before", "grading after"])
def test_killed_and_gone_on_with(asked: int, before: Path, after: Path, data: Path, tmp_path: Path) -> None:
    def slow(one: Asked) -> Reply:
        return replace(by_answer(one), delay=0.05)

    recipe = tmp_path / "r.toml"
    recipe.write_text("response = 6\nbatch = 4\n")
    with Stub(slow) as server:
        command = [sys.executable, "-m", "palate", "ppo", "evaluate", "--policy-before", str(before)]
        command += ["--policy-after", str(after), "--data", str(data), "--grader", "llm/g?connections=1"]
        command += ["--base-url", server.url, "--config", str(recipe), "--view", "question", "--out"]
        with subprocess.Popen([*command, str(tmp_path / "o")], stderr=subprocess.DEVNULL) as child:
            end = time.monotonic() + 300
            while len(server.asked) < asked and time.monotonic() < end:
                time.sleep(0.005)
            child.kill()
        assert not (tmp_path / "o" / "metrics.json").exists()
        time.sleep(0.2)
        came_back = sum(len(RowLog(p, mend=False)) for p in (tmp_path / "o").glob("*/grades/calls.jsonl"))
        assert asked - 1 <= came_back < 2 * N
        server.asked.clear()
        assert run([*command[3:], str(tmp_path / "o")]) == 0
        assert len(server.asked) == 2 * N - came_back
        assert run([*command[3:], str(tmp_path / "whole")]) == 0
    figures = [json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("o", "whole")]
    assert figures[0] == figures[1]
