"""Run by the interpreter of verl's environment: its configuration, data set and reward managers with what is ours.

Arguments: a JSON file with `overrides`, `train`, `tokenizer`, `answers`. Prints one JSON object as its last line.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_loop import migrate_legacy_reward_impl
from verl.trainer.ppo.reward import get_custom_reward_fn, load_reward_manager
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils import hf_tokenizer
from verl.utils.config import validate_config
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.reward_manager.batch import BatchRewardManager
from verl.workers.reward_manager.naive import NaiveRewardManager

TOLD = (
    "data.train_files",
    "data.train_batch_size",
    "data.max_prompt_length",
    "data.max_response_length",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.actor.optim.lr",
    "actor_rollout_ref.actor.use_kl_loss",
    "critic.optim.lr",
    "critic.ppo_mini_batch_size",
    "algorithm.use_kl_in_reward",
    "trainer.total_epochs",
    "trainer.use_v1",
    "trainer.default_local_dir",
    "reward.custom_reward_function.path",
    "reward.custom_reward_function.reward_kwargs.url",
    "reward.custom_reward_function.reward_kwargs.on_failure",
    "reward.reward_manager.name",
)


def composed(overrides: list[str]) -> Any:
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=overrides)
    validate_config(config, need_reference_policy(config), need_critic(config))
    return migrate_legacy_reward_impl(config)


def one(tokenizer: Any, row: dict[str, Any], answer: str) -> DataProto:
    """Return an answer to a row as the rollout hands it to the reward workers."""
    prompt = tokenizer.apply_chat_template(
        list(row["raw_prompt"]), add_generation_prompt=True, tokenize=True, return_dict=False, return_tensors="pt"
    )
    response = tokenizer(answer, add_special_tokens=False, return_tensors="pt")["input_ids"]
    ids = torch.cat([prompt, response], dim=1)
    tensors = {"prompts": prompt, "responses": response, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
    kept = {k: np.array([row[k]], dtype=object) for k in ("data_source", "reward_model", "extra_info")}
    return DataProto.from_dict(tensors=tensors, non_tensors=kept)


def tried(manager: Any, data: DataProto) -> Any:
    """Return the rewards of one of verl's older managers, or the name of what it raises."""
    try:
        found = manager(data, return_dict=True)
    except Exception as bad:  # noqa: BLE001
        return type(bad).__name__
    return found["reward_tensor"].sum().item()


def main() -> None:
    told = json.loads(Path(sys.argv[1]).read_text())
    config = composed(told["overrides"])
    tokenizer = hf_tokenizer(told["tokenizer"])
    rows = RLHFDataset(told["train"], tokenizer, config.data)
    data = [one(tokenizer, rows[k], answer) for k, answer in enumerate(told["answers"])]
    manager = load_reward_manager(config, tokenizer)

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*map(manager.run_single, data), return_exceptions=True)

    found = manager.loop.run_until_complete(all_at_once())
    function = get_custom_reward_fn(config)
    batched = OmegaConf.merge(config, {"reward": {"custom_reward_function": {"name": "compute_scores"}}})
    older = NaiveRewardManager(tokenizer, 0, function)
    batch = BatchRewardManager(tokenizer, 0, get_custom_reward_fn(batched))
    result = {
        "config": {name: OmegaConf.select(config, name) for name in TOLD},
        "critic": need_critic(config),
        "reference": need_reference_policy(config),
        "rows": len(rows),
        "prompts": [tokenizer.decode(d.batch["prompts"][0]) for d in data],
        "rewards": [type(f).__name__ if isinstance(f, BaseException) else f["reward_score"] for f in found],
        "extra": [sorted(f["reward_extra_info"]) for f in found if isinstance(f, dict)],
        "older": [tried(older, d) for d in data],
        "batch": [tried(batch, d) for d in data],
    }
    print(json.dumps(result, default=str))


main()
