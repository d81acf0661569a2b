"""verl's own configuration, data set and reward managers, in an environment of its own, with what is ours.

Needs VERL_PYTHON, an interpreter with verl 0.9.1 (docs/verl.md tells how to make one).
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from models import CHAT, make_tokenizer
from palate.ppo.prepare import prepare
from palate.ppo.verl import REWARD_FILE, VerlTraining, overrides
from palate.rewards.wire import ScoreRequest
from ppo.stub import Reply, reward_of, reward_server

PYTHON = os.environ.get("VERL_PYTHON", "")
INSIDE = Path(__file__).with_name("inside_verl.py")

pytestmark = [pytest.mark.verl, pytest.mark.skipif(not PYTHON, reason="VERL_PYTHON names no interpreter with verl")]

ANSWERS = ["A stew.", "Bring a coat and nine geese.", "BROKEN", "The ferry leaves at noon."]


def failing(number: int, asked: ScoreRequest) -> Reply | None:
    return Reply(500) if any(i.response == "BROKEN" for i in asked.items) else None


def inside(tmp_path: Path, on_failure: str) -> dict[str, Any]:
    folder, train = tmp_path / "it's a policy", tmp_path / "a, b=c" / "train.parquet"
    make_tokenizer(CHAT).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}))
    for path in (train, train.with_name("val.parquet")):
        prepare("sample", "history", path, limit=len(ANSWERS), tokenizer=str(folder), max_prompt_tokens=3000)
    with reward_server(failing) as server:
        training = VerlTraining.of(
            {
                **{"train": train, "val": train.with_name("val.parquet"), "reward_url": server.url},
                **{"policy": str(folder), "critic": str(folder), "out": tmp_path / "out", "on_failure": on_failure},
            }
        )
        told = {"overrides": overrides(training), "train": str(train), "tokenizer": str(folder), "answers": ANSWERS}
        (tmp_path / "told.json").write_text(json.dumps(told))
        env = {**os.environ, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
        done = subprocess.run(
            [PYTHON, INSIDE, tmp_path / "told.json"],
            capture_output=True,
            text=True,
            check=False,
            env=env,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"asked": {i.response: i.history for i in server.items}, "train": str(train), "url": server.url}


def test_verl_takes_our_command_data_and_function_under_mask(tmp_path: Path) -> None:
    found = inside(tmp_path, "mask")
    assert found["config"] == {
        "data.train_files": found["train"],
        "data.train_batch_size": 128,
        "data.max_prompt_length": 8192,
        "data.max_response_length": 512,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 16,
        "actor_rollout_ref.actor.optim.lr": 5e-7,
        "actor_rollout_ref.actor.use_kl_loss": False,
        "critic.optim.lr": 5e-6,
        "critic.ppo_mini_batch_size": 16,
        "algorithm.use_kl_in_reward": False,
        "trainer.total_epochs": 1,
        "trainer.use_v1": True,
        "trainer.default_local_dir": str(tmp_path / "out" / "checkpoints"),
        "reward.custom_reward_function.path": str(REWARD_FILE),
        "reward.custom_reward_function.reward_kwargs.url": found["url"],
        "reward.custom_reward_function.reward_kwargs.on_failure": "mask",
        "reward.reward_manager.name": "naive",
    }
    assert (found["critic"], found["reference"]) == (True, False), "PPO with a critic, no KL term"
    assert found["rows"] == len(ANSWERS)
    expected = [reward_of(a) if a != "BROKEN" else "RewardFailed" for a in ANSWERS]
    assert found["rewards"] == expected, "a failed reward leaves verl's manager as an exception, others as they are"
    assert found["older"] == expected
    assert found["batch"] == expected
    assert found["extra"] == [["failed_share", "score"]] * 3, "no acc, in which verl counts failures as 0"
    for answer, prompt in zip(ANSWERS, found["prompts"], strict=True):
        assert len(found["asked"][answer]) == 10
        assert all(post in prompt for post in found["asked"][answer]), "the policy reads what its rewards are for"


def test_under_stop_verl_gets_no_reward_after_the_first_failure(tmp_path: Path) -> None:
    found = inside(tmp_path, "stop")
    assert found["rewards"][2] == "RewardFailed"
    good = [reward_of(answer) for answer in ANSWERS[:2]]
    assert found["older"] == found["batch"] == [*good, "RewardFailed", "RewardFailed"], "the fourth is not asked about"
