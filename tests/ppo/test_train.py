"""Training a tiny random policy for real: what pays is learnt, what is constant is not, the same seed does the same."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from llm.stub import Asked, Reply
from models import TinyModels
from palate.cli.app import run
from palate.data import open_data
from palate.errors import RunError, SpecError, Stopped
from palate.ppo import METHODS, train
from palate.ppo.policy import open_policy
from palate.records import Answer, Score
from palate.retrieval import make_retriever
from palate.views import Looker, View
from ppo.parts import Rule, Ruled, constant, failed, letter, settings, share_of_e
from rewards.servers import Site, ok, results
from rewards.servers import palate as palate_server

pytestmark = pytest.mark.ppo
LEARN = {"steps": 14, "batch": 32, "minibatch": 32, "response": 12}


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = TinyModels(tmp_path_factory.mktemp("tiny"))
    return models("llama", causal=True, hidden_size=32, num_hidden_layers=1)


def curve(out: Path) -> list[dict[str, Any]]:
    """The last row of each step."""
    rows = {r["step"]: r for r in map(json.loads, (out / "curve.jsonl").read_text().splitlines())}
    return [rows[k] for k in sorted(rows)]


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def changed(before: Path, after: Path) -> bool:
    old, new = weights(before), weights(after)
    assert old.keys() == new.keys()
    return any(not old[name].equal(new[name]) for name in old)


@pytest.mark.parametrize("method", METHODS)
def test_what_pays_is_learnt(method: str, policy: Path, tmp_path: Path) -> None:
    record = train(settings(method, policy, **LEARN), tmp_path, scorer=Ruled(letter))
    found = record["result"]
    assert found["value"] > 3 * found["se"]
    assert found["failed"] == 0
    assert changed(policy, tmp_path / "policy")
    assert [r["step"] for r in curve(tmp_path)] == list(range(1, 15))
    board = {r["metric"]: r for r in json.loads((tmp_path / "board.json").read_text())["rows"]}
    assert board["train/reward_gain"]["value"] == found["value"]
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("method", ["rloo", "grpo"])
def test_a_constant_reward_leaves_every_weight_as_it_was(method: str, policy: Path, tmp_path: Path) -> None:
    train(settings(method, policy), tmp_path, scorer=Ruled(constant))
    assert not changed(policy, tmp_path / "policy")


def test_under_ppo_a_constant_reward_does_not_move_what_was_learnt_above(policy: Path, tmp_path: Path) -> None:
    scorer = Ruled(constant)
    train(settings("ppo", policy, **LEARN), tmp_path, scorer=scorer)
    shares = [share_of_e(a.text) for g in scorer.groups for a in g.answers]
    ends = [shares[:64], shares[-64:]]
    means = [sum(e) / 64 for e in ends]
    squares = [sum((v - m) ** 2 for v in e) / 63 / 64 for e, m in zip(ends, means, strict=True)]
    assert abs(means[1] - means[0]) < 3 * sum(squares) ** 0.5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lora", [0, 4])
def test_a_run_that_was_stopped_goes_on_to_the_very_same_curve(
    method: str, lora: int, policy: Path, tmp_path: Path
) -> None:
    told = settings(method, policy, steps=5, save_every=2, lora=lora, kl=0.05)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(told, whole, scorer=Ruled(letter))

    def until(n: int) -> Rule:
        left = [n]

        def rule(answer: Answer) -> Score:
            left[0] -= 1
            return letter(answer) if left[0] >= 0 else failed(answer)

        return rule

    with pytest.raises(Stopped, match="16 of 16 rewards failed"):
        train(told, parts, scorer=Ruled(until(3 * 16)))
    assert [r["step"] for r in curve(parts)] == [1, 2, 3]
    assert train(told, parts, scorer=Ruled(letter))["resumed_at"] == 2
    assert curve(parts) == curve(whole)
    assert not changed(whole / "policy", parts / "policy")
    assert curve(parts)[-1]["kl"] is not None


def test_the_same_seed_does_the_same_and_another_one_does_not(policy: Path, tmp_path: Path) -> None:
    for method in METHODS:
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            train(settings(method, policy, steps=2, seed=seed), tmp_path / method / name, scorer=Ruled(letter))
        a, b, c = (curve(tmp_path / method / name) for name in "abc")
        assert a == b != c


def test_more_steps_extend_a_run_and_other_settings_are_refused(policy: Path, tmp_path: Path) -> None:
    scorer = Ruled(letter)
    train(settings("grpo", policy, steps=2), tmp_path, scorer=scorer)
    asked = len(scorer.groups)
    train(settings("grpo", policy, steps=2), tmp_path, scorer=scorer)
    assert len(scorer.groups) == asked
    train(settings("grpo", policy, steps=4), tmp_path, scorer=scorer)
    assert len(scorer.groups) == 2 * asked
    assert [r["step"] for r in curve(tmp_path)] == [1, 2, 3, 4]
    with pytest.raises(RunError, match=r"these differ: lr, view|these differ: lr"):
        train(settings("grpo", policy, steps=4, lr=2e-2), tmp_path, scorer=scorer)


def test_policy_and_reward_model_read_what_evaluation_shows(policy: Path, tmp_path: Path) -> None:
    scorer = Ruled(letter)
    told = settings("ppo", policy, steps=1, view="history?k=2", batch=4, minibatch=4)
    record = train(told, tmp_path, scorer=scorer)
    assert record["config"]["source"]["k"] == 2
    looker, opened = Looker(open_data("sample"), make_retriever("bm25")), open_policy(str(policy), 8)
    for group in scorer.groups:
        query = looker.query(group.query.item_id, View.parse("history?k=2"))
        assert group.query == query
        ids = opened.prompt(query.messages)
        assert opened.tokenizer.decode(ids) == f"[user] {query.messages[0].content}</s>"


def test_the_rubric_never_goes_into_a_prompt(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="never goes into a prompt"):
        train(settings("grpo", policy, view="oracle"), tmp_path, scorer=Ruled(letter))


@pytest.mark.parametrize("method", ["rloo", "grpo"])
def test_masked_failures_are_counted_and_move_nothing(method: str, policy: Path, tmp_path: Path) -> None:
    def half(answer: Answer) -> Score:
        return constant(answer) if int(answer.id.rpartition("@")[2]) % 2 else failed(answer)

    told = settings(method, policy, on_failure="mask", max_failure_rate=0.6)
    record = train(told, tmp_path, scorer=Ruled(half))
    assert record["result"]["failure_rate"] == 0.5
    assert [r["failures"] for r in curve(tmp_path)] == [{"error": 8}] * 4
    assert not changed(policy, tmp_path / "policy")


@pytest.mark.parametrize("method", METHODS)
def test_a_reward_server_that_dies_stops_the_run_and_no_step_uses_a_made_up_reward(
    method: str, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = [0]

    def score(asked: Asked) -> Reply:
        served[0] += 1
        if served[0] > 4:
            return Reply(status=400, error="the model is gone")
        return results(lambda item: ok(item, share_of_e(item["response"])))(asked)

    with Site(palate_server(score)) as site:
        args = ["--method", method, "--policy", str(policy), "--data", "sample", "--view", "question"]
        args += ["--reward", f"http/{site.address}", "--steps", "9", "--batch", "16", "--out", str(tmp_path)]
        recipe = tmp_path / "r.toml"
        recipe.write_text("response = 8\nminibatch = 16\n")
        assert run(["ppo", "train", *args, "--config", str(recipe)]) == 3
        sent = [i for a in site.at("/score") for i in a.body["items"]][: 8 * 4]
    assert "rewards failed" in capsys.readouterr().err
    rows = curve(tmp_path)
    paid = [share_of_e(item["response"]) for item in sent]
    assert [r["scored"] for r in rows] == [16] * len(rows)
    for k, row in enumerate(rows):
        assert row["reward"] == pytest.approx(sum(paid[16 * k : 16 * k + 16]) / 16)
    assert len(rows) == 2
    assert not (tmp_path / "policy").exists()


def test_killed_in_the_middle_the_same_command_goes_on(policy: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        f'method = "grpo"\npolicy = "{policy}"\nreward = "builtin/length"\ndata = "sample"\nview = "question"\n'
        "steps = 30\nbatch = 16\nminibatch = 16\nresponse = 8\nlr = 1e-2\nsave_every = 3\n"
    )
    out = tmp_path / "run"
    command = [sys.executable, "-m", "palate", "ppo", "train", "--config", str(recipe), "--out", str(out)]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    deadline = time.monotonic() + 240
    while killed.poll() is None and not list(out.glob("checkpoints/checkpoint-*/whole")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert run([*command[3:]]) == 0
    assert [r["step"] for r in curve(out)] == list(range(1, 31))
    assert json.loads((out / "run.json").read_text())["resumed_at"] >= 3
    whole = tmp_path / "whole"
    assert run([*command[3:-1], str(whole)]) == 0
    assert curve(out) == curve(whole)
    assert not changed(whole / "policy", out / "policy")


def test_a_policy_whose_padding_ends_its_turns_is_padded_otherwise(policy: Path, tmp_path: Path) -> None:
    from models import altered

    same = altered(policy, tmp_path / "same", tokenizer_config={"pad_token": "</s>"})
    scorer = Ruled(letter)
    train(settings("ppo", same, steps=1, batch=4, minibatch=4), tmp_path / "out", scorer=scorer)
    assert len(scorer.given) == 4


def test_judges_cannot_pay(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="paid in numbers"):
        train(settings("grpo", policy, reward="judge/x?base_url=http://127.0.0.1:9/v1"), tmp_path)
