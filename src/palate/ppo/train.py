"""`train`: a folder in which a policy is trained, and goes on being trained when the same call comes again."""

import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palate.errors import MissingExtra, PalateError, RunError, SpecError
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.ppo.curve import BOARD, PICTURE, Curve, board_rows, draw, gain
from palate.ppo.policy import Policy, open_policy
from palate.ppo.prompts import Prompts, Source, make_prompts, open_source
from palate.ppo.reward import Rewards
from palate.ppo.schedule import schedule, steps_of
from palate.ppo.settings import Training
from palate.rewards import AskedModel, Scorer, Setting, open_model
from palate.spec import model_name, short_model
from palate.store import RunFolder
from palate.store.folder import digest_of

if TYPE_CHECKING:
    from palate.ppo.watch import Seen

POLICY, ADAPTER = "policy", "adapter"
# Not in the digest: how long to go on, and what is told apart by identities rather than by strings.
FREE = ("steps", "epochs", "save_every", "max_failure_rate", "on_failure", "data", "view", "retriever")
KL_UNITS = {
    "ppo": "nats an answer, log π − log π₀ summed over its tokens",
    "rloo": "nats a token, mean of log π − log π₀",
    "grpo": "nats a token, mean of π₀/π − 1 − log π₀/π",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A training that is checked and opened; no weights of the policy are loaded yet."""

    settings: Training
    source: Source
    policy: Policy
    scorer: Scorer
    prompts: Prompts
    steps: int

    @property
    def config(self) -> dict[str, Any]:
        """What decides the curve, but for the number of steps."""
        kept = {k: v for k, v in self.settings.as_dict().items() if k not in FREE}
        kept |= {"policy": self.policy.identity, "reward": dict(self.scorer.identity)}
        return {**kept, "source": self.source.identity}


def train(
    settings: Training,
    out: Path,
    *,
    scorer: Scorer | None = None,
    seen: "Seen | None" = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """Train a policy by a reward model and return the run's record.

    `out` gets `run.json`, `curve.jsonl`, `curve.svg`, `board.json`, `checkpoints/` and at last `policy/`, an ordinary
    model folder (with LoRA merged, the adapter apart in `adapter/`). What is finished is not done again; a run that
    was stopped goes on from its last whole checkpoint, and repeats the steps after it exactly.

    Args:
        settings: how.
        out: the folder; more steps than before extend the run.
        scorer: a reward model to use instead of opening `settings.reward`.
        seen: gets (step, of how many, row of the curve).
        told: gets (item ids, what happened) for retries of a server.

    Raises:
        MissingExtra: without the extra `ppo`.
        Stopped: rewards failed; the run can go on.
        RunError: the folder holds another training.
    """
    for package in ("trl", "peft"):
        if find_spec(package) is None:
            raise MissingExtra("training a policy", "ppo")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise PalateError("ppo train runs in one process; for several GPUs there is palate ppo verl.")
    with RunFolder(out) as folder:
        job = _open(settings, out, scorer, told)
        record = _record(folder, job)
        if record["status"] != "done" or record["steps"] < job.steps:
            record |= {"status": "running", "steps": job.steps}
            folder.write_record(record)
            record |= _run(job, out, seen)
            folder.write_record(record)
        return record


def open_reward(text: str, view: str, setting: Setting) -> Scorer:
    """Return a reward model that gives numbers.

    Raises:
        SpecError: it compares or is asked instead.
    """
    model = open_model(text, setting=setting)
    if isinstance(model, AskedModel):
        raise SpecError(
            f"reward '{text}': a policy is paid in numbers; take hf/, likelihood/, dpo/, http/ or builtin/."
        )
    if model.needs_context and view == "question":
        raise SpecError(
            f"reward '{text}': it measures what a context adds, so under 'question' there is nothing to pay."
        )
    return model


def _open(settings: Training, out: Path, scorer: Scorer | None, told: Told | None) -> Job:
    policy = open_policy(settings.policy, settings.response)
    source = open_source(settings.data, settings.view, settings.retriever, settings.limit, out)
    setting = Setting(source.data, None, Spending(), told)
    scorer = scorer or open_reward(settings.reward, source.view.name, setting)
    scorer.prepare()
    prompts = make_prompts(source, lambda query: policy.prompt(query.messages), policy.budget, scorer.budget)
    steps = settings.steps or steps_of(len(prompts), settings.questions, settings.epochs)
    return Job(settings, source, policy, scorer, prompts, steps)


def _record(folder: RunFolder, job: Job) -> dict[str, Any]:
    """Return the record to go on with, the old one if there is one of the same training."""
    config = json.loads(json.dumps(job.config))
    old = folder.record()
    if old is None:
        return {
            "status": "new",
            "digest": digest_of(config)[:16],
            "config": config,
            "steps": 0,
            "prompts": {"n": len(job.prompts), "left_out": job.prompts.left_out, "posts_dropped": job.prompts.dropped},
            "kl_unit": KL_UNITS[job.settings.method],
            "started": time.time(),
        }
    if old.get("digest") != digest_of(config)[:16]:
        before = old.get("config", {})
        names = sorted(k for k in config.keys() | before.keys() if config.get(k) != before.get(k))
        raise RunError(
            f"{folder.path}: holds another training; these differ: {', '.join(names)}. Choose another --out."
        )
    return old


def _run(job: Job, out: Path, seen: "Seen | None") -> dict[str, Any]:
    """Train, save, draw; return what the record learns of it."""
    from palate.ppo.watch import last_checkpoint

    settings = job.settings
    checkpoint = last_checkpoint(out)
    plan = schedule(list(job.prompts.of), job.steps, settings.questions, settings.seed)
    queries = {p.item_id: p.scored for p in job.prompts}
    rewards = Rewards(job.scorer, queries, settings.on_failure == "mask", settings.max_failure_rate)
    curve = Curve(out)
    began = time.time()
    with curve.log, quiet():
        model = _trained(job, out, plan, rewards, curve, checkpoint, seen)
        _save(model, job.policy, out)
    rows = curve.rows(job.steps)
    return {
        "status": "done",
        "resumed_at": checkpoint[1] if checkpoint else None,
        "seconds": round(time.time() - began, 1),
        "result": _result(job, rows, out),
        "environment": {
            **{name: version(name) for name in ("palate", "torch", "transformers", "trl", "peft")},
            "device": str(model.device),
            "dtype": str(model.dtype).removeprefix("torch."),
            "reward": dict(job.scorer.environment),
        },
    }


@contextmanager
def quiet() -> Iterator[None]:
    """Keep back what TRL and transformers print and warn of; errors pass. Standard output is for results."""
    from transformers.utils import logging as told

    level, bars = told.get_verbosity(), told.is_progress_bar_enabled()
    trl = logging.getLogger("trl")
    trl_level = trl.level
    told.set_verbosity_error()
    told.disable_progress_bar()
    trl.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            yield
    finally:
        trl.setLevel(trl_level)
        told.set_verbosity(level)
        if bars:
            told.enable_progress_bar()


def _trained(
    job: Job,
    out: Path,
    plan: Sequence[Sequence[str]],
    rewards: Rewards,
    curve: Curve,
    checkpoint: tuple[Path, int] | None,
    seen: "Seen | None",
) -> Any:
    from transformers import set_seed

    settings, policy = job.settings, job.policy
    set_seed(settings.seed)
    model = policy.load()
    common, peft = _arguments(settings, out, len(plan), model), _lora(settings)
    shared = (settings, policy, model, job.prompts.of, plan, rewards)
    if settings.method == "ppo":
        from palate.ppo.actor import PpoWatch, train_actor

        return train_actor(*shared, PpoWatch(curve, rewards, len(plan), seen), common, peft, checkpoint)
    from palate.ppo.grouped import train_grouped
    from palate.ppo.watch import Watch

    watch = Watch(curve, rewards, len(plan), seen)
    return train_grouped(*shared, watch, common, peft, checkpoint[0] if checkpoint else None)


def _arguments(settings: Training, out: Path, steps: int, model: Any) -> dict[str, Any]:
    from palate.ppo.watch import CHECKPOINTS

    return {
        "output_dir": str(out / CHECKPOINTS),
        "max_steps": steps,
        "learning_rate": settings.lr,
        "lr_scheduler_type": "constant",
        "seed": settings.seed,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": settings.save_every,
        "save_total_limit": 2,
        "report_to": "none",
        "disable_tqdm": True,
        "bf16": False,
        "fp16": False,
        "gradient_checkpointing": False,
        "use_cpu": model.device.type == "cpu",
        "remove_unused_columns": False,
    }


def _lora(settings: Training) -> Any:
    if not settings.lora:
        return None
    from peft import LoraConfig

    return LoraConfig(r=settings.lora, lora_alpha=settings.lora, target_modules="all-linear", task_type="CAUSAL_LM")


def _save(model: Any, policy: Policy, out: Path) -> None:
    """Write the trained policy as an ordinary folder, and an adapter apart."""
    tokenizer = open_policy_tokenizer(policy)
    if hasattr(model, "merge_and_unload"):
        model.save_pretrained(out / ADAPTER)
        model = model.merge_and_unload()
    model.save_pretrained(out / POLICY)
    tokenizer.save_pretrained(out / POLICY)


def open_policy_tokenizer(policy: Policy) -> Any:
    """Return the policy's tokenizer as it came; training has set another padding token."""
    from palate.rewards.local.load import load_tokenizer

    return load_tokenizer(policy.options)


def _result(job: Job, rows: Sequence[Mapping[str, Any]], out: Path) -> dict[str, Any]:
    """Draw the curve, write the board, and return the figures."""
    settings = job.settings
    system = short_model(model_name(job.scorer.identity))
    source = {
        "data": job.source.data.name,
        "view": str(job.source.view),
        "policy": job.policy.name,
        "method": settings.method,
        "seed": settings.seed,
    }
    (out / PICTURE).write_text(draw(rows, f"curve-{settings.method}"), encoding="utf-8")
    board = [{**row, "source": source | row["source"]} for row in board_rows(rows, system, {})]
    RunFolder(out).write(BOARD, {"format": 1, "rows": board})
    failed = sum(n for row in rows for n in row["failures"].values())
    answers = sum(row["n"] for row in rows)
    return {**gain(rows), "answers": answers, "failed": failed, "failure_rate": failed / answers if answers else None}
