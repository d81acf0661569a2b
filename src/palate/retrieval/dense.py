"""Dense retrieval as the paper does it: Contriever, masked mean pooling, dot product, the question as query."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from palate.errors import MissingExtra, ModelError
from palate.records import Post
from palate.retrieval.base import search_text
from palate.spec import Spec

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

CONTRIEVER = "facebook/contriever-msmarco"
_KEPT = 20_000


class Dense:
    """Ranks posts by the dot product of mean-pooled token vectors, padding masked, not normalised.

    Vectors of texts seen before are kept (up to 20,000), since a user's posts return with every question.
    """

    def __init__(self, model: str = CONTRIEVER, revision: str | None = None, batch: int = 32) -> None:
        self.model = model
        self.revision = revision
        self.batch = batch
        self._encoder: SentenceTransformer | None = None
        self._vectors: dict[str, np.ndarray] = {}

    @classmethod
    def from_spec(cls, spec: Spec, model: str) -> "Dense":
        """Read `dense[/model][@revision][?batch=…]`."""
        spec.only(("batch",), "retriever")
        batch = spec.whole("batch", 32, "retriever", least=1)
        found = cls(model or CONTRIEVER, spec.revision, batch or 32)
        found.revision = found.revision or _resolve(found.model)
        return found

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that is needed to repeat the ranking."""
        return {
            "id": Path(self.model).name if Path(self.model).is_dir() else self.model,
            "revision": self.revision,
            "pooling": "mean over unmasked tokens",
            "similarity": "dot product",
            "text": "prompt + text",
        }

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        """Return the dot products of question and posts; NaN where a vector is not finite."""
        texts = [question, *(search_text(p) for p in posts)]
        vectors = self.encode(texts)
        return [float(v @ vectors[0]) for v in vectors[1:]]

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return one vector a text, float32, in order."""
        new = list(dict.fromkeys(t for t in texts if t not in self._vectors))
        if new:
            if len(self._vectors) + len(new) > _KEPT:
                self._vectors.clear()
                new = list(dict.fromkeys(texts))
            found = self._load().encode(new, batch_size=self.batch, show_progress_bar=False, convert_to_numpy=True)
            self._vectors.update(zip(new, found, strict=True))
        return [self._vectors[t] for t in texts]

    def _load(self) -> "SentenceTransformer":
        if self._encoder is None:
            self._encoder = _encoder(self.model, self.revision)
        return self._encoder


def _resolve(model: str) -> str | None:
    """Return the commit of a hub model, or a hash of the weights of a local one."""
    from palate.retrieval.weights import fingerprint

    return fingerprint(model, None)


def _encoder(model: str, revision: str | None) -> "SentenceTransformer":
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Pooling, Transformer
    except ImportError:
        raise MissingExtra("dense retrieval", "hf") from None
    safe = {"revision": None if Path(model).is_dir() else revision, "trust_remote_code": False}
    try:
        body = Transformer(model, model_args={**safe, "use_safetensors": True}, config_args=safe, tokenizer_args=safe)
    except (OSError, ValueError) as bad:
        raise ModelError(f"dense retriever '{model}': cannot be loaded: {bad}") from bad
    pooling = Pooling(body.get_word_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(modules=[body, pooling])
