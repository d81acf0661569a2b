"""PPO by verl, on GPUs and clusters: its command with our settings, our reward function and our data; and its start.

verl is not imported: it lives in an environment of its own, and the command is all that goes there.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from palate.errors import PalateError, SpecError, Stopped, did_you_mean
from palate.ppo.prepare import PROMPT_TOKENS, read_about

TESTED = "0.9.1"
MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
REWARD_FILE = Path(__file__).with_name("verl_reward.py")
SCRIPT = "verl.sh"
HEALTH_SECONDS = 10.0
PLAIN = re.compile(r"[A-Za-z_/][\w./:@-]*", re.ASCII)
SLASHES = re.compile(r"(\\+)(?='|$)")
WORDS = ("true", "false", "null", "nan", "inf")

Whole = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True)
class VerlTraining:
    """What verl is told; the defaults are the paper's.

    Attributes:
        train: prompts to train on, from `prepare`.
        val: prompts to validate on, from `prepare`, made under the same view.
        reward_url: our reward server.
        out: folder for checkpoints and verl's logs.
        policy: folder or hub id.
        critic: folder or hub id.
        batch: answers a step.
        mini_batch: answers of one gradient step.
        micro_batch: answers on a GPU at once; memory only.
        policy_lr: learning rate of the policy.
        critic_lr: learning rate of the critic.
        max_prompt_tokens: longest prompt.
        max_response_tokens: longest answer.
        epochs: passes over the questions.
        gpus: GPUs of a machine.
        nodes: machines.
        on_failure: `stop` at the first failed reward, or `mask`: the answer is left out of the step.
        max_failure_rate: with `mask`, the share of failures that ends the run.
        reward_timeout: seconds for one answer's reward, all tries together.
        save_every: steps between checkpoints.
        test_every: steps between validations.
        seed: of the order of prompts and of sampling.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    train: Path
    val: Path
    reward_url: str
    out: Path = Path("verl")
    policy: str = MODEL
    critic: str = MODEL
    batch: Whole = 128
    mini_batch: Whole = 16
    micro_batch: Whole = 4
    policy_lr: Positive = 5e-7
    critic_lr: Positive = 5e-6
    max_prompt_tokens: Whole = PROMPT_TOKENS
    max_response_tokens: Whole = 512
    epochs: Whole = 1
    gpus: Whole = 1
    nodes: Whole = 1
    on_failure: Literal["stop", "mask"] = "stop"
    max_failure_rate: Annotated[float, Field(gt=0, le=1)] = 0.1
    reward_timeout: Positive = 120.0
    save_every: Whole = 50
    test_every: Whole = 50
    seed: Annotated[int, Field(ge=0)] = 0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "VerlTraining":
        """Return checked settings; what is None counts as not given.

        Raises:
            SpecError: an unknown setting, a value that is not possible, or two that do not go together.
        """
        try:
            found = _ADAPTER.validate_python({k: v for k, v in given.items() if v is not None})
        except ValidationError as bad:
            raise SpecError(_fault(bad)) from None
        found._check()
        return found

    def _check(self) -> None:
        if self.batch % self.mini_batch:
            raise SpecError(f"ppo verl: batch = {self.batch} is no multiple of mini-batch = {self.mini_batch}.")
        if self.mini_batch % (self.gpus * self.nodes):
            devices = self.gpus * self.nodes
            raise SpecError(f"ppo verl: mini-batch = {self.mini_batch} cannot be shared by {devices} GPUs.")
        parts = urlsplit(self.reward_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SpecError("ppo verl: --reward-url has to be an address such as http://127.0.0.1:8000.")
        if parts.username or parts.password or parts.query:
            raise SpecError(
                "ppo verl: --reward-url must hold no secret, since verl logs its settings; put it into PALATE_HTTP_KEY."
            )


SETTINGS = tuple(f.name.replace("_", "-") for f in fields(VerlTraining))
_ADAPTER: TypeAdapter[VerlTraining] = TypeAdapter(VerlTraining)


def _fault(bad: ValidationError) -> str:
    first = bad.errors(include_url=False, include_context=False)[0]
    name = ".".join(str(part) for part in first["loc"]).replace("_", "-")
    if first["type"] == "missing":
        return f"ppo verl: --{name} is needed."
    if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"ppo verl: no setting '{name}'.{did_you_mean(name, SETTINGS)}"
    return f"ppo verl: {name} = {first['input']!r}: {first['msg'].lower()}."


def overrides(training: VerlTraining, more: Sequence[str] = ()) -> list[str]:
    """Return verl's overrides: names as in its `ppo_trainer` configuration, ours first, `more` last.

    Raises:
        SpecError: one of `more` is not `name=value`.
    """
    for one in more:
        if "=" not in one:
            raise SpecError(f"ppo verl: '{one}' is not one of verl's settings, name=value.")
    named = {**_of_data(training), **_of_models(training), **_of_rewards(training), **_of_trainer(training)}
    return [f"{name}={_value(value)}" for name, value in named.items()] + list(more)


def _of_data(training: VerlTraining) -> dict[str, Any]:
    return {
        "data.train_files": training.train.absolute(),
        "data.val_files": training.val.absolute(),
        "data.train_batch_size": training.batch,
        "data.max_prompt_length": training.max_prompt_tokens,
        "data.max_response_length": training.max_response_tokens,
        # What is too long is left out and counted by verl, never cut.
        "data.filter_overlong_prompts": True,
        "data.truncation": "error",
        "data.seed": training.seed,
    }


def _of_models(training: VerlTraining) -> dict[str, Any]:
    return {
        "actor_rollout_ref.model.path": training.policy,
        "actor_rollout_ref.actor.optim.lr": training.policy_lr,
        "actor_rollout_ref.actor.ppo_mini_batch_size": training.mini_batch,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": training.micro_batch,
        "actor_rollout_ref.actor.use_kl_loss": False,
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.n": 1,
        "actor_rollout_ref.rollout.seed": training.seed,
        "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": training.micro_batch,
        "critic.model.path": training.critic,
        "critic.optim.lr": training.critic_lr,
        "critic.ppo_micro_batch_size_per_gpu": training.micro_batch,
        "algorithm.adv_estimator": "gae",
        "algorithm.use_kl_in_reward": False,
    }


def _of_rewards(training: VerlTraining) -> dict[str, Any]:
    given = "+reward.custom_reward_function.reward_kwargs"
    return {
        "reward.custom_reward_function.path": REWARD_FILE,
        "reward.custom_reward_function.name": "compute_score",
        # This manager lets an exception through; `rate_limited` would turn it into a reward of 0.0.
        "reward.reward_manager.name": "naive",
        # One process sees all failures, so their share is that of the run; its threads do the waiting.
        "reward.num_workers": 1,
        "reward.reward_model.enable": False,
        f"{given}.url": training.reward_url,
        f"{given}.on_failure": training.on_failure,
        f"{given}.timeout": training.reward_timeout,
        f"{given}.max_failure_rate": training.max_failure_rate,
    }


def _of_trainer(training: VerlTraining) -> dict[str, Any]:
    out = training.out.absolute()
    return {
        # The trainer that leaves an answer out when its reward raises.
        "trainer.use_v1": True,
        "trainer.v1.trainer_mode": "sync",
        "trainer.total_epochs": training.epochs,
        "trainer.n_gpus_per_node": training.gpus,
        "trainer.nnodes": training.nodes,
        "trainer.logger": ["console"],
        "trainer.project_name": "palate",
        "trainer.experiment_name": out.name,
        "trainer.default_local_dir": out / "checkpoints",
        "trainer.resume_mode": "auto",
        "trainer.save_freq": training.save_every,
        "trainer.test_freq": training.test_every,
        "hydra.run.dir": out / "hydra",
    }


def _value(value: Any) -> str:
    """Return a value in the grammar of hydra, which verl reads its overrides by."""
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_value, value)) + "]"
    text = str(value)
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    # Hydra reads backslashes as escapes only where they stand before a quote, which the end of the text is too.
    return "'" + SLASHES.sub(r"\1\1", text).replace("'", "\\'") + "'"


def command(training: VerlTraining, python: str, more: Sequence[str] = ()) -> list[str]:
    """Return verl's command, run by the interpreter `python` of its environment."""
    return [python, "-m", "verl.trainer.main_ppo", *overrides(training, more)]


def script(found: Sequence[str]) -> str:
    """Return a command as a shell script, one override a line."""
    head, rest = " ".join(map(shlex.quote, found[:3])), [shlex.quote(one) for one in found[3:]]
    return "#!/bin/sh\nexec " + " \\\n  ".join([head, *rest]) + "\n"


def check_data(training: VerlTraining) -> None:
    """Make sure that both files show users in one way, and fit.

    Raises:
        DataError: a file that `palate ppo prepare` did not write.
        SpecError: two views, k, retrievers or templates, or prompts with more room than verl is given.
    """
    one, other = read_about(training.train), read_about(training.val)
    for name in ("view", "k", "retriever", "prompts", "policy"):
        if one[name] != other[name]:
            raise SpecError(
                f"ppo verl: {name} differs: {training.train} has {_shown(one[name])}, {training.val} has "
                f"{_shown(other[name])}. Prepare both in the same way."
            )
    for path, about in ((training.train, one), (training.val, other)):
        room = about["max_prompt_tokens"]
        if room is not None and room > training.max_prompt_tokens:
            raise SpecError(
                f"ppo verl: {path} was fitted to {room} tokens, more than max-prompt-tokens = "
                f"{training.max_prompt_tokens}; verl would leave the longer prompts out."
            )


def check_server(url: str) -> None:
    """Make sure that a Palate reward server answers.

    Raises:
        PalateError: it does not.
    """
    asked = urllib.request.Request(url.rstrip("/") + "/health")
    if os.environ.get("PALATE_HTTP_KEY"):
        asked.add_header("Authorization", "Bearer " + os.environ["PALATE_HTTP_KEY"])
    try:
        with urllib.request.urlopen(asked, timeout=HEALTH_SECONDS) as reply:
            found = json.loads(reply.read())
    except (OSError, ValueError) as bad:
        raise PalateError(f"ppo verl: no reward server at {url} ({bad}). Start one: palate serve.") from None
    if not isinstance(found, dict) or found.get("server") != "palate":
        raise PalateError(f"ppo verl: what answers at {url} is not palate serve.")


def check_verl(python: str) -> str:
    """Return the version of verl in the environment of `python`.

    Raises:
        PalateError: there is none.
    """
    ask = "import importlib.metadata as m; print(m.version('verl'))"
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    except OSError as bad:
        raise PalateError(f"ppo verl: {python}: {bad.strerror}.") from None
    if done.returncode:
        raise PalateError(
            f"ppo verl: {python} has no verl. Make an environment of its own for it, pip install verl=={TESTED}, and "
            "name its interpreter: --python, or VERL_PYTHON."
        )
    return done.stdout.strip()


def start(training: VerlTraining, python: str, more: Sequence[str], told: Callable[[str], None]) -> None:
    """Write the command to `out` and run it until it ends; a signal to stop goes on to verl.

    Raises:
        PalateError: data, server or verl are not as they have to be.
        Stopped: verl ended with an error; it goes on from its last checkpoint when started again.
    """
    check_data(training)
    check_server(training.reward_url)
    version = check_verl(python)
    if version != TESTED:
        told(f"tested with verl {TESTED}; this is {version}.")
    found = command(training, python, more)
    training.out.mkdir(parents=True, exist_ok=True)
    (training.out / SCRIPT).write_text(script(found), encoding="utf-8")
    child = subprocess.Popen(found)
    before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    try:
        code = child.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    if code:
        raise Stopped(
            f"verl ended with code {code}. The same command goes on from its last checkpoint in {training.out}."
        )


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
