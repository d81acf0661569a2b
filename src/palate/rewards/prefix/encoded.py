"""Prompts encoded once into a key-value cache, and batches of answers continued from it. Needs torch.

The model's own forward pass does the work, with its own attention kernel and its own head; only the cache is looked
after: a batch of answers sees the prompt's keys and values beside its own, and leaves nothing behind. The copies that
one layer needs are made in a buffer which the next layer uses again, so memory does not grow with the layers.
"""

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

from palate.rewards.prefix.plan import Row
from palate.rewards.prefix.two_parts import behind, possible

LAYERS = frozenset({"DynamicLayer", "DynamicSlidingWindowLayer"})


class NotShareable(Exception):
    """The model keeps no key-value cache that answers could share."""


class Prompts:
    """One or several prompts, encoded.

    A single prompt is encoded and continued without padding between its tokens and without a mask of ours, so that
    attention may take its fastest way. Several are padded at their start, so that each token stays as far from the
    next as it is alone, which sliding windows rely on.

    Args:
        model: a decoder of transformers, in eval mode.
        prompts: token ids, none empty.
        pad: an id for padding.
        two_parts: attend to prompt and answer apart where that is possible, rather than copy the prompt's states.

    Raises:
        NotShareable: no cache, or one of a kind that cannot be continued this way.
    """

    def __init__(self, model: Any, prompts: Sequence[Sequence[int]], pad: int, two_parts: bool = True) -> None:
        import torch
        from transformers import DynamicCache

        self._model, self._pad, self._torch = model, pad, torch
        self._lengths = [len(p) for p in prompts]
        self._width = max(self._lengths)
        self._buffers: dict[Any, Any] = {}
        self._numbers: Any = None
        self._cache = DynamicCache(config=model.config)
        self._name = _cache_argument(model)
        ids = self._tensor([[pad] * (self._width - len(p)) + list(p) for p in prompts])
        self._forward(ids, self._prompt_masks(), _no_logits(model))
        self.two_parts = two_parts and len(prompts) == 1 and possible(model, self._cache.layers)
        self._freeze()

    def continued(self, rows: Sequence[Row], **options: Any) -> Any:
        """Return the model's output for the tokens of `rows`, padded at their end to the longest.

        Args:
            rows: at least one, none empty.
            options: passed on to the model.
        """
        width = max(len(r.ids) for r in rows)
        ids = self._tensor([[*r.ids, *[self._pad] * (width - len(r.ids))] for r in rows])
        self._numbers = self._tensor([r.prompt for r in rows])
        if self.two_parts:
            with behind(self._model, [(layer.keys, layer.values) for layer in self._cache.layers]):
                return self._forward(ids, {}, options)
        try:
            return self._forward(ids, self._answer_masks(rows, width), options)
        finally:
            self._buffers.clear()

    def _forward(self, ids: Any, masks: dict[str, Any], options: dict[str, Any]) -> Any:
        with self._torch.inference_mode():
            return self._model(input_ids=ids, use_cache=True, **{self._name: self._cache}, **masks, **options)

    def _prompt_masks(self) -> dict[str, Any]:
        if len(self._lengths) == 1:
            return {}
        pads = [self._width - n for n in self._lengths]
        return {
            "attention_mask": self._tensor([[0] * p + [1] * n for p, n in zip(pads, self._lengths, strict=True)]),
            "position_ids": self._tensor([[0] * p + list(range(n)) for p, n in zip(pads, self._lengths, strict=True)]),
        }

    def _answer_masks(self, rows: Sequence[Row], width: int) -> dict[str, Any]:
        if len(self._lengths) == 1:
            return {}
        masks, positions = [], []
        for row in rows:
            prompt, tokens = self._lengths[row.prompt], len(row.ids)
            masks.append([0] * (self._width - prompt) + [1] * (prompt + tokens) + [0] * (width - tokens))
            positions.append(list(range(prompt, prompt + width)))
        return {"attention_mask": self._tensor(masks), "position_ids": self._tensor(positions)}

    def _tensor(self, rows: Sequence[Any]) -> Any:
        return self._torch.tensor(rows, device=self._model.device)

    def _freeze(self) -> None:
        """From now on the cache lends its keys and values and takes none."""
        layers = self._cache.layers
        if not layers or any(layer.keys is None for layer in layers):
            raise NotShareable("it keeps no keys and values of a text")
        if strange := sorted({type(layer).__name__ for layer in layers} - LAYERS):
            raise NotShareable(f"its cache has a {strange[0]}")
        for layer in layers:
            layer.update = partial(self._lent, layer)

    def _lent(self, layer: Any, keys: Any, values: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        if self.two_parts:
            return keys, values
        return self._joined(0, layer.keys, keys), self._joined(1, layer.values, values)

    def _joined(self, which: int, old: Any, new: Any) -> Any:
        """Return the prompt's states followed by the answers', in a buffer that the layers share."""
        size = old.shape[-2]
        shape = (new.shape[0], new.shape[1], size + new.shape[2], new.shape[3])
        found = self._buffers.get((which, shape))
        if found is None:
            found = self._buffers[which, shape] = self._torch.empty(shape, dtype=new.dtype, device=new.device)
        found[:, :, :size] = old if old.shape[0] == 1 else old[self._numbers]
        found[:, :, size:] = new
        return found


def arguments(model: Any) -> frozenset[str]:
    """Return the names of what a model's forward pass takes."""
    return frozenset(inspect.signature(inspect.unwrap(type(model).forward)).parameters)


def _cache_argument(model: Any) -> str:
    for name in ("cache", "past_key_values"):
        if name in arguments(model):
            return name
    raise NotShareable("it takes no key-value cache")


def _no_logits(model: Any) -> dict[str, Any]:
    """A causal model need not make a prompt's logits, which are as wide as its vocabulary."""
    return {"logits_to_keep": 1} if "logits_to_keep" in arguments(model) else {}
