"""A policy's answers to questions, sampled here and kept: what is there is not sampled again."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from palate.ppo.policy import Policy
from palate.ppo.prompts import Prompt
from palate.store import RowLog

SAMPLES = "samples.jsonl"
Seen = Callable[[int, int, int], None]


def sample(
    policy: Policy,
    prompts: Sequence[Prompt],
    folder: Path,
    *,
    temperature: float,
    batch: int,
    seed: int,
    seen: Seen | None = None,
) -> Mapping[str, Mapping[str, Any]]:
    """Return one answer to each prompt, as rows by id; they are kept in `folder`.

    Batches are always the same parts of `prompts`, and each has its own seed, so that an interrupted sampling gives
    the same answers in the end.

    Args:
        policy: who answers.
        prompts: in order.
        folder: gets `samples.jsonl`.
        temperature: 0 takes the likeliest token each time.
        batch: prompts at once.
        seed: of the batches' seeds.
        seen: gets (done, of how many, done before), at once and after each batch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = RowLog(folder / SAMPLES)
    parts = [prompts[k : k + batch] for k in range(0, len(prompts), batch)]
    todo = [part for part in parts if any(name_of(p) not in log.rows for p in part)]
    done = before = len(prompts) - sum(map(len, todo))
    if seen:
        seen(done, len(prompts), before)
    if not todo:
        return log.rows
    model = _ready(policy, temperature)
    with log:
        for part in todo:
            for row in _answers(policy, model, part, seed):
                log.append(row)
            done += len(part)
            if seen:
                seen(done, len(prompts), before)
    return log.rows


def name_of(prompt: Prompt) -> str:
    """Return the id of the one sample of a prompt."""
    return f"{prompt.item_id}@0"


def _ready(policy: Policy, temperature: float) -> Any:
    """Return the model, set to sample from its plain distribution whatever its own defaults are."""
    from transformers import GenerationConfig

    model = policy.load()
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature else {}
    model.generation_config = GenerationConfig(
        max_new_tokens=policy.options.room,
        eos_token_id=policy.end,
        pad_token_id=policy.end if policy.tokenizer.pad_token_id is None else policy.tokenizer.pad_token_id,
        **(sampling or {"do_sample": False}),
    )
    return model


def _answers(policy: Policy, model: Any, part: Sequence[Prompt], seed: int) -> Iterator[dict[str, Any]]:
    import torch

    width = max(len(p.ids) for p in part)
    pad = model.generation_config.pad_token_id
    ids = torch.tensor([[pad] * (width - len(p.ids)) + list(p.ids) for p in part], device=model.device)
    mask = torch.tensor([[0] * (width - len(p.ids)) + [1] * len(p.ids) for p in part], device=model.device)
    drawn = int.from_bytes(hashlib.sha256(f"{seed}:{part[0].item_id}".encode()).digest()[:4], "big")
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []), torch.inference_mode():
        torch.manual_seed(drawn)
        found = model.generate(input_ids=ids, attention_mask=mask)[:, width:].tolist()
    for prompt, answer in zip(part, found, strict=True):
        ended = policy.end in answer
        kept = answer[: answer.index(policy.end)] if ended else answer
        yield {
            "id": name_of(prompt),
            "item_id": prompt.item_id,
            "k": 0,
            "status": "ok" if ended else "truncated",
            "text": policy.text(kept),
            "finish_reason": "stop" if ended else "length",
            "policy": policy.name,
            "view": prompt.asked.view,
            "tokens": len(kept),
        }
