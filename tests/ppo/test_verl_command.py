"""verl's command: the published numbers, one view for both files, and what is refused before anything starts."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palate.cli.app import run
from palate.errors import PalateError, SpecError, Stopped
from palate.ppo.prepare import prepare
from palate.ppo.verl import SETTINGS, VerlTraining, command, overrides, script, start
from palate.recipes import read_recipe
from places import ROOT
from ppo.stub import reward_server

RECIPE = ROOT / "recipes" / "ppo-paper.toml"
PUBLISHED = {
    "data.train_batch_size=128",
    "data.max_prompt_length=8192",
    "data.max_response_length=512",
    "actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct",
    "critic.model.path=Qwen/Qwen2.5-0.5B-Instruct",
    "actor_rollout_ref.actor.ppo_mini_batch_size=16",
    "actor_rollout_ref.actor.optim.lr=5e-07",
    "critic.optim.lr=5e-06",
    "actor_rollout_ref.actor.use_kl_loss=False",
    "algorithm.use_kl_in_reward=False",
    "trainer.total_epochs=1",
}


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    pytest.importorskip("pyarrow")
    for name in ("train", "val"):
        prepare("sample", "history", tmp_path / f"{name}.parquet", limit=2)
    files = {name: tmp_path / f"{name}.parquet" for name in ("train", "val")}
    return {**files, "reward_url": "http://127.0.0.1:9", "out": tmp_path / "out"}


def fake_verl(tmp_path: Path, body: str) -> str:
    """An interpreter whose verl is one of ours: it has a version, and a trainer that does `body`."""
    trainer = tmp_path / "site" / "verl" / "trainer"
    trainer.mkdir(parents=True)
    (trainer / "main_ppo.py").write_text(f"import sys, time\n{body}\n")
    for folder in (trainer, trainer.parent):
        (folder / "__init__.py").touch()
    about = tmp_path / "site" / "verl-0.9.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: verl\nVersion: 0.9.1\n")
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_the_recipe_and_the_defaults_are_the_published_settings(given: dict[str, Any]) -> None:
    recipe = {k.replace("-", "_"): v for k, v in read_recipe(RECIPE, SETTINGS).items()}
    for training in (VerlTraining.of(given), VerlTraining.of(recipe | given)):
        assert set(overrides(training)) >= PUBLISHED


def test_options_win_over_the_recipe(given: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('policy = "own/policy"\ngpus = 2\nmini-batch = 8\n')
    args = ["ppo", "verl", "--config", str(recipe), "--policy", "other/policy", "--dry-run"]
    args += [f"--{k.replace('_', '-')}={v}" for k, v in given.items()]
    assert run([*args, "--", "trainer.total_training_steps=3"]) == 0
    words = shlex.split(capsys.readouterr().out.replace("\\\n", ""), comments=True)
    assert words[2:4] == ["-m", "verl.trainer.main_ppo"]
    assert "actor_rollout_ref.model.path=other/policy" in words
    assert "trainer.n_gpus_per_node=2" in words
    assert "actor_rollout_ref.actor.ppo_mini_batch_size=8" in words
    assert words[-1] == "trainer.total_training_steps=3"
    assert not (tmp_path / "out").exists(), "nothing is written"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"reward_url": None}, "--reward-url is needed"),
        ({"reward_url": "localhost:8000"}, "has to be an address"),
        ({"reward_url": "http://me:pw@host"}, "must hold no secret"),
        ({"batch": 100}, "no multiple of mini-batch = 16"),
        ({"gpus": 3}, "cannot be shared by 3 GPUs"),
        ({"policy_lr": -1.0}, "policy-lr = -1.0"),
        ({"on_failure": "pay"}, "on-failure = 'pay'"),
        ({"batchsize": 1}, "no setting 'batchsize'. Did you mean 'batch'"),
    ],
)
def test_settings_that_are_refused(changes: dict[str, Any], told: str, given: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="ppo verl") as bad:
        VerlTraining.of(given | changes)
    assert told in str(bad.value)
    assert "pw" not in str(bad.value)


def test_an_unknown_key_of_a_recipe_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.toml").write_text("mini-bach = 8\n")
    assert run(["ppo", "verl", "--config", str(tmp_path / "r.toml")]) == 2
    assert "Did you mean 'mini-batch'" in capsys.readouterr().err


def test_an_override_without_a_value_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"'trainer\.logger' is not one of verl's settings"):
        overrides(VerlTraining.of(given), ["trainer.logger"])


def test_the_script_is_the_command_whatever_the_paths(given: dict[str, Any], tmp_path: Path) -> None:
    training = replace(VerlTraining.of(given), out=tmp_path / "it's, a=b $HOME")
    found = command(training, "my python")
    echo = script(found).replace("exec ", "exec printf '%s\\n' ")
    done = subprocess.run(["sh", "-c", echo], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == found


def test_two_views_are_refused(given: dict[str, Any], tmp_path: Path) -> None:
    prepare("sample", "history?k=5", tmp_path / "val.parquet", limit=2)
    with pytest.raises(SpecError, match=r'view differs: .*"history", .*"history\?k=5"'):
        start(VerlTraining.of(given), sys.executable, (), print)


@pytest.mark.hf
def test_prompts_that_were_given_more_room_are_refused(given: dict[str, Any], tmp_path: Path) -> None:
    from models import CHAT, make_tokenizer

    make_tokenizer(CHAT).save_pretrained(tmp_path / "tok")
    for name in ("train", "val"):
        path = tmp_path / f"{name}.parquet"
        prepare("sample", "history", path, limit=2, tokenizer=str(tmp_path / "tok"), max_prompt_tokens=9000)
    with pytest.raises(SpecError, match="fitted to 9000 tokens, more than max-prompt-tokens = 8192"):
        start(VerlTraining.of(given), sys.executable, (), print)


def test_no_server_and_no_verl_are_told_before_anything_starts(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(PalateError, match="no reward server at"):
        start(VerlTraining.of(given), sys.executable, (), print)
    with reward_server() as server:
        training = VerlTraining.of(given | {"reward_url": server.url})
        with pytest.raises(PalateError, match=r"has no verl.*pip install verl==0\.9\.1"):
            start(training, sys.executable, (), print)
        with pytest.raises(PalateError, match="no-python"):
            start(training, str(tmp_path / "no-python"), (), print)
    assert not (tmp_path / "out").exists()


def test_verl_is_started_with_the_command_and_its_failure_can_be_resumed(given: dict[str, Any], tmp_path: Path) -> None:
    python = fake_verl(tmp_path, "print(*sys.argv[1:], sep='\\n', file=open('argv', 'w')); sys.exit('bad' in sys.argv)")
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        with reward_server() as server:
            training = VerlTraining.of(given | {"reward_url": server.url})
            start(training, python, ["a=b"], pytest.fail)
            assert (tmp_path / "argv").read_text().splitlines() == overrides(training, ["a=b"])
            assert (tmp_path / "out" / "verl.sh").read_text() == script(command(training, python, ["a=b"]))
            (tmp_path / "site" / "verl" / "trainer" / "main_ppo.py").write_text("raise SystemExit(7)")
            with pytest.raises(Stopped, match="ended with code 7"):
                start(training, python, (), pytest.fail)
    finally:
        os.chdir(before)


def test_a_signal_to_stop_goes_on_to_verl(given: dict[str, Any], tmp_path: Path) -> None:
    python = fake_verl(
        tmp_path, f"open({str(tmp_path / 'up')!r}, 'w').write('1')\nfor _ in range(600):\n    time.sleep(0.1)"
    )
    with reward_server() as server:
        args = [f"--{k.replace('_', '-')}={v}" for k, v in (given | {"reward_url": server.url}).items()]
        child = subprocess.Popen([sys.executable, "-m", "palate", "ppo", "verl", *args, "--python", python])
        wait_for(lambda: (tmp_path / "up").exists())
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == Stopped.exit_code


def wait_for(ready: Callable[[], bool]) -> None:
    for _ in range(1200):
        if ready():
            return
        time.sleep(0.05)
    pytest.fail("it did not come up")
