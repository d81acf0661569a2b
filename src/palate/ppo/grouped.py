"""RLOO and GRPO: TRL's trainers, given the policy's own tokens and rewards of whole groups. Needs TRL."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from palate.ppo.policy import Policy
from palate.ppo.prompts import Prompt
from palate.ppo.reward import Completion, Rewards
from palate.ppo.settings import Training
from palate.ppo.watch import Watch


def train_grouped(
    settings: Training,
    policy: Policy,
    model: Any,
    prompts: Mapping[str, Prompt],
    plan: Sequence[Sequence[str]],
    rewards: Rewards,
    watch: Watch,
    common: Mapping[str, Any],
    peft: Any,
    checkpoint: Path | None,
) -> Any:
    """Train with RLOO or GRPO and return the trained model.

    Args:
        settings: how.
        policy: tokenizer and form of the policy.
        model: its weights.
        prompts: by item.
        plan: the items of each step.
        rewards: scores a step's answers.
        watch: hears of each step.
        common: training arguments that all methods share.
        peft: the configuration of LoRA, or None.
        checkpoint: where to go on from.
    """
    base, config = _classes(settings.method)
    args = config(
        **common,
        per_device_train_batch_size=settings.at_once,
        gradient_accumulation_steps=settings.batch // settings.at_once,
        steps_per_generation=settings.batch // settings.at_once,
        num_generations=settings.answers,
        max_completion_length=settings.response,
        temperature=settings.temperature,
        beta=settings.kl,
        disable_dropout=True,
        shuffle_dataset=False,
        model_init_kwargs={"dtype": str(model.dtype).removeprefix("torch.")},
    )

    def reward(prompts: Sequence[str], completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float | None]:
        found = [_completion(policy, item_id, ids) for item_id, ids in zip(prompts, completion_ids, strict=True)]
        return rewards(found)

    class Trainer(base):  # type: ignore[misc, valid-type]
        def _tokenize_prompts(self, names: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
            return [list(prompts[name].ids) for name in names], None, {}

    tokenizer = policy.tokenizer
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    # One pass over all steps' questions in their order: where to go on is then a place in this list.
    rows = Dataset.from_dict({"prompt": [name for step in plan for name in step]})
    trainer = Trainer(model, reward, args, rows, processing_class=tokenizer, callbacks=[watch], peft_config=peft)
    hush(trainer)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return trainer.accelerator.unwrap_model(trainer.model)


def _classes(method: str) -> tuple[Any, Any]:
    import trl

    return (trl.RLOOTrainer, trl.RLOOConfig) if method == "rloo" else (trl.GRPOTrainer, trl.GRPOConfig)


def _completion(policy: Policy, item_id: str, ids: Sequence[int]) -> Completion:
    ended = policy.end in ids
    return Completion(item_id, policy.text(ids), len(ids), not ended)


def hush(trainer: Any) -> None:
    """Take away what prints: progress is told by the caller."""
    from transformers.trainer_callback import PrinterCallback, ProgressCallback

    for kind in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(kind)
