"""Attention in two parts: all answers' tokens over the shared prompt at once, and over their own; then put together.

A batch of answers behind one prompt need not copy the prompt's keys and values for each answer. What their tokens draw
from the prompt is one attention without a mask, with the answers (and the heads that share keys) laid end to end; what
they draw from the answer is a causal attention of the answer's length. Each part's log-sum-exp says how much it weighs
(Juravsky et al. 2024, arXiv 2402.05099). On CPUs, where torch gives the log-sum-exp of its flash attention.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

NAME = "palate_two_parts"
_prompt: ContextVar[Sequence[tuple[Any, Any]] | None] = ContextVar("prompt", default=None)


def possible(model: Any, layers: Sequence[Any]) -> bool:
    """Return whether a model on this device can be run this way: scaled dot products, no sliding window, a CPU."""
    import torch

    if getattr(model.config, "_attn_implementation", None) != "sdpa" or model.device.type != "cpu":
        return False
    if any(type(layer).__name__ != "DynamicLayer" for layer in layers):
        return False
    return hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu")


@contextmanager
def behind(model: Any, prompt: Sequence[tuple[Any, Any]]) -> Iterator[None]:
    """Within this, the model's attention sees `prompt`, (keys, values) a layer, before the keys that it is given."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if NAME not in ALL_ATTENTION_FUNCTIONS:
        ALL_ATTENTION_FUNCTIONS.register(NAME, _attention)
        ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, _no_mask)
    token, before = _prompt.set(prompt), model.config._attn_implementation
    model.config._attn_implementation = NAME
    try:
        yield
    finally:
        model.config._attn_implementation = before
        _prompt.reset(token)


def _no_mask(*_: Any, **__: Any) -> None:
    """Pads stand behind the tokens that count, so that causality alone hides them."""


def _attention(
    module: Any, query: Any, key: Any, value: Any, mask: Any, dropout: float = 0.0, scaling: Any = None, **rest: Any
) -> tuple[Any, None]:
    """Return (answers, tokens, heads, width), as attention functions of transformers do."""
    import torch

    prompt = _prompt.get()
    if prompt is None or mask is not None or rest.get("softcap") or rest.get("sliding_window"):
        raise NotImplementedError("attention in two parts has no such option")
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    keys, values = prompt[module.layer_idx]
    answers, heads, tokens, width = query.shape
    kept = keys.shape[1]
    shared = heads // kept
    split = query.view(answers, kept, shared, tokens, width)
    flat = split.permute(1, 0, 2, 3, 4).reshape(1, kept, -1, width)
    far, far_weight = attend(flat, keys, values, 0.0, False, scale=scaling)
    far = far.view(kept, answers, shared, tokens, width).transpose(0, 1).reshape(query.shape)
    far_weight = far_weight.view(kept, answers, shared, tokens).transpose(0, 1).reshape(answers, heads, tokens)
    own = [x[:, :, None].expand(-1, -1, shared, -1, -1).reshape(query.shape) for x in (key, value)]
    near, near_weight = attend(query, *own, 0.0, True, scale=scaling)
    weight = torch.sigmoid(far_weight - near_weight).unsqueeze(-1).to(near.dtype)
    return torch.lerp(near, far, weight).transpose(1, 2).contiguous(), None
