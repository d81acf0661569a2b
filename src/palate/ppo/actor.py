"""PPO: TRL's trainer, fed in a known order, paid by any scorer, and able to go on from a checkpoint. Needs TRL.

TRL's PPO asks an `nn.Module` for rewards: it runs the module's backbone on the tokens of question and answer, passes
the last hidden states to its `score`, and reads one number at each answer's last token. `Paid` is such a module whose
"hidden states" are the scorer's rewards, the same at every token. The questions of a batch come from `Feed`, which
tells `Paid` whose they are; the tokens are compared, so that a reward cannot land on another item's answer.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from trl.experimental.ppo import PPOConfig, PPOTrainer

from palate.errors import ModelError
from palate.ppo.grouped import hush
from palate.ppo.policy import Policy, unused_pad
from palate.ppo.prompts import Prompt
from palate.ppo.reward import Completion, Rewards
from palate.ppo.settings import PPO_EPOCHS, Training
from palate.ppo.watch import Watch

STATE = "actor.pt"


class Feed:
    """The batches of questions, left-padded to (questions, longest), from step `start` on.

    Args:
        steps: the prompts of each step, one for each answer.
        pad: the token to pad with.
        paid: told whose batch comes.
        start: steps that are done.
    """

    def __init__(self, steps: Sequence[Sequence[Prompt]], pad: int, paid: "Paid", start: int) -> None:
        self._steps, self._pad, self._paid, self._start = steps, pad, paid, start
        self.random: Mapping[str, Any] | None = None

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        if self.random:
            set_random(self.random)
        for prompts in self._steps[self._start :]:
            width = max(len(p.ids) for p in prompts)
            self._paid.expect(prompts, width)
            yield {"input_ids": torch.tensor([[self._pad] * (width - len(p.ids)) + list(p.ids) for p in prompts])}


class Paid(nn.Module):
    """A module in the form TRL asks rewards of; the numbers are the scorer's."""

    base_model_prefix = "backbone"

    def __init__(self, policy: Policy, rewards: Rewards) -> None:
        super().__init__()
        self.backbone = self._pay
        self.score = nn.Identity()
        self._policy, self._rewards = policy, rewards
        self._due: Sequence[Prompt] = ()
        self._width = 0

    def expect(self, prompts: Sequence[Prompt], width: int) -> None:
        """Take note of the batch that comes next and of how many tokens its questions are padded to."""
        self._due, self._width = prompts, width

    def _pay(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> SimpleNamespace:
        """Return rewards of shape (answers, tokens, 1) in the place of hidden states."""
        if len(input_ids) != len(self._due):
            raise ModelError(f"{len(input_ids)} answers came for {len(self._due)} questions: the order is lost.")
        rows = zip(self._due, input_ids.tolist(), attention_mask.tolist(), strict=True)
        values = self._rewards([self._completion(prompt, ids, kept) for prompt, ids, kept in rows])
        assert None not in values, "with PPO a failed reward has stopped the run"
        paid = torch.tensor(values, dtype=torch.float32, device=input_ids.device)
        return SimpleNamespace(hidden_states=[paid[:, None, None].expand(*input_ids.shape, 1)])

    def _completion(self, prompt: Prompt, ids: Sequence[int], kept: Sequence[int]) -> Completion:
        asked = tuple(i for i, k in zip(ids[: self._width], kept, strict=False) if k)
        if asked != prompt.ids:
            raise ModelError(f"an answer came to another question than that of '{prompt.item_id}': the order is lost.")
        answer = [i for i, k in zip(ids[self._width :], kept[self._width :], strict=True) if k]
        return Completion(prompt.item_id, self._policy.text(answer), len(answer), self._policy.end not in answer)


class Actor(PPOTrainer):
    """TRL's PPO that keeps all it needs to go on: its own checkpoints hold the policy alone."""

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write no card; the run's record says what it was."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        whole = self.accelerator.unwrap_model(self.model)
        kept = {
            "value": whole.value_model.state_dict(),
            "policy": {name: p.detach() for name, p in whole.policy.named_parameters() if p.requires_grad},
            "optimizer": self.optimizer.state_dict(),
            "random": random_state(),
        }
        torch.save(kept, Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}" / STATE)

    def go_on(self, checkpoint: Path, done: int, feed: Feed) -> None:
        """Load a checkpoint of `done` steps, and count from there."""
        kept = torch.load(checkpoint / STATE, weights_only=True, map_location=self.accelerator.device)
        whole = self.accelerator.unwrap_model(self.model)
        whole.value_model.load_state_dict(kept["value"])
        parameters = dict(whole.policy.named_parameters())
        with torch.no_grad():
            for name, value in kept["policy"].items():
                parameters[name].copy_(value)
        self.optimizer.load_state_dict(kept["optimizer"])
        feed.random = kept["random"]
        self.args.num_total_batches -= done


class Counting:
    """Sets the trainer's counters, which TRL's PPO puts to 0 when training begins."""

    def __init__(self, done: int, steps: int, batch: int) -> None:
        self.done, self.steps, self.batch = done, steps, batch

    def set(self, state: Any) -> None:
        """Count from the steps that are done."""
        state.global_step, state.max_steps = self.done, self.steps
        state.episode = self.done * self.batch


class PpoWatch(Watch):
    """Hears of PPO's steps, and sets its counters at the beginning."""

    counting: Counting | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Count on from a checkpoint."""
        if self.counting:
            self.counting.set(state)


def train_actor(
    settings: Training,
    policy: Policy,
    model: Any,
    prompts: Mapping[str, Prompt],
    plan: Sequence[Sequence[str]],
    rewards: Rewards,
    watch: PpoWatch,
    common: Mapping[str, Any],
    peft: Any,
    checkpoint: tuple[Path, int] | None,
) -> Any:
    """Train with PPO and return the trained policy. The arguments are those of `train_grouped`.

    The critic is a copy of the policy with a head that begins at zero; all of its weights are trained, with LoRA too.
    """
    pad = unused_pad(policy, (p.ids for p in prompts.values()))
    policy.tokenizer.pad_token_id = pad
    paid = Paid(policy, rewards)
    done = checkpoint[1] if checkpoint else 0
    steps = [[prompts[name] for name in step for _ in range(settings.answers)] for step in plan]
    feed = Feed(steps, pad, paid, done)
    trainer = Actor(
        args=_config(settings, len(plan), common),
        processing_class=policy.tokenizer,
        model=model,
        ref_model=None,
        reward_model=paid,
        train_dataset=steps[0],
        value_model=critic(policy, model),
        data_collator=list,
        eval_dataset=[],
        callbacks=[watch],
        peft_config=peft,
    )
    trainer.dataloader = feed
    hush(trainer)
    watch.counting = Counting(done, len(plan), settings.batch)
    if checkpoint:
        trainer.go_on(checkpoint[0], done, feed)
    # TRL's PPO collects garbage twice a step; what exists by now lives to the end and need not be looked through.
    gc.freeze()
    try:
        trainer.train()
    finally:
        gc.unfreeze()
    return trainer.accelerator.unwrap_model(trainer.model).policy


def _config(settings: Training, steps: int, common: Mapping[str, Any]) -> Any:
    # A whole batch at once with mini-batches inside: with accumulation TRL would update once an epoch, whatever
    # the number of mini-batches.
    return PPOConfig(
        **common,
        per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=1,
        num_mini_batches=settings.batch // settings.at_once,
        num_ppo_epochs=settings.ppo_epochs or PPO_EPOCHS,
        local_rollout_forward_batch_size=settings.batch,
        total_episodes=steps * settings.batch,
        response_length=settings.response,
        temperature=settings.temperature,
        kl_coef=settings.kl,
        stop_token="eos",
        num_sample_generations=0,
    )


def critic(policy: Policy, model: Any) -> Any:
    """Return a value model with the policy's weights and a head of zeros."""
    from transformers import AutoModelForSequenceClassification

    from palate.rewards.local.load import explained

    with explained(policy.options, "critic"):
        made = AutoModelForSequenceClassification.from_pretrained(
            policy.options.weights.folder, num_labels=1, dtype=model.dtype
        ).to(model.device)
    if not isinstance(getattr(made, "score", None), nn.Linear):
        raise ModelError(f"policy '{policy.name}': its architecture gives no critic that TRL's PPO can use.")
    nn.init.zeros_(made.score.weight)
    return made


def random_state() -> dict[str, Any]:
    """Return the states of the random numbers that PPO draws: torch's and numpy's."""
    state: Any = np.random.get_state(legacy=True)
    name, keys, place, has_gauss, cached = state
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [name, torch.from_numpy(keys.astype(np.int64)), place, has_gauss, cached],
    }


def set_random(state: Mapping[str, Any]) -> None:
    """Put random numbers back to a state."""
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"]:
        torch.cuda.set_rng_state_all([s.cpu() for s in state["cuda"]])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.cpu().numpy().astype(np.uint32), *rest))
