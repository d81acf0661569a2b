"""Dense retrieval as the paper does it: Contriever, masked mean pooling, dot product, the question as query."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palate.errors import MissingExtra, ModelError
from palate.records import Post
from palate.retrieval.base import POOLING, search_text
from palate.spec import Spec
from palate.weights import Weights, find_weights, loading, positions_of

CONTRIEVER = "facebook/contriever-msmarco"
WINDOW = 512
_KEPT = 20_000
_TOKENS = {"cpu": 1_200, "cuda": 16_000}
"""Tokens encoded at once, padding counted: on CPUs more would fall out of the cache, GPUs want more to do."""
Vector = NDArray[np.float32]


class Dense:
    """Ranks posts by the dot product of mean-pooled token vectors, padding masked, not normalised.

    Vectors of texts seen before are kept (up to 20,000), since a user's posts return with every question.
    Texts longer than the encoder's window are cut at its end, as the encoder was trained.

    Args:
        model: a folder or hub id.
        revision: of a hub model.
        batch: texts encoded at once at most; fewer where they are long, and always texts of much the same length.
    """

    def __init__(self, model: str = CONTRIEVER, revision: str | None = None, batch: int = 32) -> None:
        self.model = model
        self.revision = revision
        self.batch = batch
        self._vectors: dict[str, Vector] = {}

    @classmethod
    def from_spec(cls, spec: Spec, model: str) -> "Dense":
        """Read `dense[/model][@revision][?batch=…]`."""
        spec.only(("batch",), "retriever")
        return cls(model or CONTRIEVER, spec.revision, spec.whole("batch", 32, "retriever", least=1))

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that is needed to repeat the ranking."""
        return {
            "id": self._weights.id,
            "revision": self._weights.revision,
            "weights": self._weights.digest,
            "settings": self._weights.settings,
            "pooling": POOLING,
            "similarity": "dot product",
            "text": "prompt + text",
        }

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        """Return the dot products of question and posts; NaN where a vector is not finite."""
        query, *vectors = self.encode([question, *(search_text(p) for p in posts)])
        return [float(v @ query) for v in vectors]

    def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, float32, in order."""
        new = list(dict.fromkeys(t for t in texts if t not in self._vectors))
        if len(self._vectors) + len(new) > _KEPT:
            self._vectors.clear()
            new = list(dict.fromkeys(texts))
        if new:
            self._vectors.update(zip(new, self._encoder(new, self.batch), strict=True))
        return [self._vectors[t] for t in texts]

    @cached_property
    def _weights(self) -> Weights:
        return find_weights(self.model, self.revision, pickles=True)

    @cached_property
    def _encoder(self) -> "MeanPooled":
        return MeanPooled(self._weights)


class MeanPooled:
    """A transformer whose unmasked token vectors are averaged (Izacard et al. 2022, as released).

    Safetensors are read if there are any, else pickled weights by torch's weights-only loader, which runs no code:
    encoders of some age are published in that form only.

    Raises:
        ModelError: it cannot be loaded, or the checkpoint lacks weights that the vectors depend on.
        MissingExtra: without the extra `hf`.
    """

    def __init__(self, weights: Weights) -> None:
        try:
            import torch
            from transformers import AutoModel, AutoTokenizer
        except ImportError:
            raise MissingExtra("dense retrieval", "hf") from None
        self._torch = torch
        with loading(lambda text: f"dense retriever '{weights.id}': cannot be loaded: {text}"):
            self._tokenizer = AutoTokenizer.from_pretrained(weights.folder, trust_remote_code=False)
            self._model, info = AutoModel.from_pretrained(
                weights.folder, trust_remote_code=False, output_loading_info=True
            )
        missing = sorted(name for name in info["missing_keys"] if not name.startswith("pooler."))
        if missing:
            raise ModelError(
                f"dense retriever '{weights.id}': the checkpoint has no {missing[0]} ({len(missing)} such in all), "
                "so its vectors would be random."
            )
        self._model = self._model.float().eval().to("cuda" if torch.cuda.is_available() else "cpu")
        positions = positions_of(self._model.config.to_dict()) or WINDOW
        self._window = min(int(self._tokenizer.model_max_length), positions)

    def __call__(self, texts: Sequence[str], batch: int) -> list[Vector]:
        """Return the vectors of `texts`, encoded at most `batch` at once, texts of like length together."""
        encoded = self._tokenizer(list(texts), truncation=True, max_length=self._window)
        sizes = [len(ids) for ids in encoded["input_ids"]]
        found: dict[int, Vector] = {}
        for part in batches_of(sizes, batch, _TOKENS[self._model.device.type]):
            inputs = {name: [column[k] for k in part] for name, column in encoded.items()}
            found.update(zip(part, self._pooled(inputs), strict=True))
        return [found[k] for k in range(len(sizes))]

    def _pooled(self, inputs: dict[str, list[list[int]]]) -> Vector:
        torch = self._torch
        batch = self._tokenizer.pad(inputs, return_tensors="pt").to(self._model.device)
        with torch.inference_mode():
            hidden = self._model(**batch).last_hidden_state.float()
        mask = batch["attention_mask"].unsqueeze(-1)
        summed = hidden.masked_fill(mask == 0, 0.0).sum(dim=1)
        pooled: Vector = (summed / mask.sum(dim=1)).cpu().numpy()
        return pooled


def batches_of(sizes: Sequence[int], most: int, tokens: int) -> list[list[int]]:
    """Return the places of `sizes`, shortest first, in batches of at most `most` and, padded, of `tokens` tokens.

    A text longer than `tokens` is a batch by itself.
    """
    found: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=lambda k: sizes[k]):
        full = not found or len(found[-1]) == most or (len(found[-1]) + 1) * sizes[place] > tokens
        if full:
            found.append([])
        found[-1].append(place)
    return found
