"""Scoring groups with a classifier: batches under a token budget, and numbers that no batch, order or pad can move."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from math import isfinite
from typing import Any

from palate.errors import ItemError, ModelError
from palate.records import Answer, Group, Score
from palate.rewards.classifier.encode import Encoder, Tokens
from palate.rewards.classifier.load import Loaded, load
from palate.rewards.classifier.options import Options
from palate.spec import Spec
from palate.views import Budget

LOOKAHEAD = 32
TOLERANCE = {"float32": 1e-4}
COARSE = 5e-2
_CHECK = (
    "Yes.",
    "Take the early train, then walk along the river until you see the second bridge on your left.",
)


@dataclass(frozen=True, slots=True)
class _Encoded:
    """One answer on its query, as tokens."""

    answer: Answer
    tokens: Tokens

    def __len__(self) -> int:
        return len(self.tokens.ids)


class Classifier:
    """`hf/<hub id or folder>`: a sequence classifier whose one chosen output is the reward.

    The score is read at the true last token: pads are an id that occurs in no text of the batch, so that neither a pad
    equal to the end token nor a missing pad token can move it. If the model still gives other numbers in a batch than
    alone, which is tried once after loading, it is run one text at a time.
    """

    probe = False

    def __init__(self, spec: Spec) -> None:
        self.name = spec.head
        self._given = dict(spec.options)
        self._options = Options.from_spec(spec)
        self._ends: dict[str, list[int]] | None = None
        self._alone: str | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the numbers, options as they were given."""
        o = self._options
        return {
            "family": "hf",
            "id": o.weights.id,
            "revision": o.weights.revision,
            "weights": o.weights.digest,
            "settings": o.weights.settings,
            "parameters": o.weights.parameters,
            "template": o.template,
            "label": o.label,
            "window": o.window,
            "room": o.room,
            "options": self._given,
            "probe": self.probe,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions, and after loading device, dtype, attention kernel, batching and the ends of what was scored."""
        found: dict[str, Any] = {name: version(name) for name in ("palate", "torch", "transformers")}
        if "_loaded" in self.__dict__:
            loaded = self._loaded
            found |= {
                "device": loaded.device,
                "dtype": loaded.dtype,
                "attention_kernel": loaded.kernel,
                "batching": self._alone or f"up to {self._options.batch_tokens} tokens",
                "notes": list(loaded.notes),
                "token_ends": self._ends,
            }
        return found

    @property
    def budget(self) -> Budget:
        """Window and room in the model's own tokens."""
        o = self._options
        return Budget(o.window - o.room, o.room, self._encoder.count)

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield scores, a few groups at a time so that texts of like length share a batch."""
        stream = iter(groups)
        while part := list(islice(stream, LOOKAHEAD)):
            ready: list[_Encoded] = []
            for group in part:
                for answer in group.answers:
                    found = self._encode(group, answer)
                    if isinstance(found, Score):
                        yield found
                    else:
                        ready.append(found)
            ready.sort(key=len)
            for batch in self._batches(ready):
                yield from self._score_batch(batch)

    @cached_property
    def _loaded(self) -> Loaded:
        loaded = load(self._options)
        self._ready(loaded)
        return loaded

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self._loaded.tokenizer, self._options.template, self._options.weights.id)

    def _ready(self, loaded: Loaded) -> None:
        """Try once whether a batch gives the numbers of single texts; if not, batches are off and that is noted."""
        encode = loaded.tokenizer
        texts = [Tokens(list(encode(text, add_special_tokens=False)["input_ids"])) for text in _CHECK]
        together = _forward(loaded, texts)
        alone = [_forward(loaded, [one])[0] for one in texts]
        gap = max(abs(a - b) for a, b in zip(together, alone, strict=True))
        if gap > TOLERANCE.get(loaded.dtype, COARSE):
            self._alone = f"one text at a time: a batch moved a score by {gap:.2g}"

    def _encode(self, group: Group, answer: Answer) -> _Encoded | Score:
        try:
            return self._within(answer, self._encoder.tokens(group.query.messages, answer.text))
        except ItemError as bad:
            return Score(answer.id, "error", None, str(bad))

    def _within(self, answer: Answer, tokens: Tokens) -> _Encoded | Score:
        ids = tokens.ids
        self._ends = self._ends or {"first": ids[:8], "last": ids[-8:]}
        taken = self._encoder.answer_tokens(answer.text)
        if taken > self._options.room:
            return Score(answer.id, "overlong", None, f"answer of {taken} tokens, room for {self._options.room}")
        if len(ids) > self._options.window:
            return Score(answer.id, "overlong", None, f"{len(ids)} tokens, window of {self._options.window}")
        return _Encoded(answer, tokens)

    def _batches(self, ready: Sequence[_Encoded]) -> Iterator[list[_Encoded]]:
        batch: list[_Encoded] = []
        for one in ready:
            full = (len(batch) + 1) * len(one) > self._options.batch_tokens
            if batch and (full or self._alone):
                yield batch
                batch = []
            batch.append(one)
        if batch:
            yield batch

    def _score_batch(self, batch: list[_Encoded]) -> Iterator[Score]:
        import torch

        try:
            values = _forward(self._loaded, [e.tokens for e in batch])
        except torch.cuda.OutOfMemoryError as full:
            if len(batch) == 1:
                yield Score(batch[0].answer.id, "error", None, f"out of memory: {len(batch[0])} tokens ({full})")
                return
            middle = len(batch) // 2
            yield from self._score_batch(batch[:middle])
            yield from self._score_batch(batch[middle:])
            return
        for one, value in zip(batch, values, strict=True):
            if isfinite(value):
                yield Score(one.answer.id, "ok", value)
            else:
                yield Score(one.answer.id, "error", None, f"the model gave {value}, which is not a reward")


def _forward(loaded: Loaded, texts: Sequence[Tokens]) -> list[float]:
    """Return the chosen output for each text, cast to float32 first.

    Raises:
        ModelError: the output is not one row of the expected width a text.
    """
    import torch

    model, width = loaded.model, max(len(t.ids) for t in texts)
    pad = _pad_id(loaded, texts)
    model.config.get_text_config().pad_token_id = pad
    model.config.pad_token_id = pad
    inputs = {"input_ids": [t.ids for t in texts], "attention_mask": [[1] * len(t.ids) for t in texts]}
    if any(t.segments for t in texts):
        inputs["token_type_ids"] = [t.segments or [0] * len(t.ids) for t in texts]
    fill = {"input_ids": pad}
    tensors = {
        name: torch.tensor([r + [fill.get(name, 0)] * (width - len(r)) for r in rows], device=loaded.device)
        for name, rows in inputs.items()
    }
    with torch.inference_mode():
        output = model(**tensors)
    logits = getattr(output, "logits", None)
    shape = tuple(logits.shape) if logits is not None else None
    if logits is None or shape != (len(texts), model.config.num_labels):
        raise ModelError(
            f"model '{model.name_or_path}': expected one row of {model.config.num_labels} outputs a text, got {shape}. "
            "It is not a sequence classifier head (hidden states or an embedding?)."
        )
    return [float(v) for v in logits[:, loaded.label].float().cpu()]


def _pad_id(loaded: Loaded, texts: Sequence[Tokens]) -> int:
    """Return a pad id that occurs in no text: the tokenizer's own if it can be used, else the smallest free id."""
    used = set[int]().union(*(t.ids for t in texts))
    own = loaded.tokenizer.pad_token_id
    if own is not None and own not in used:
        return int(own)
    return next(k for k in range(len(used) + 1) if k not in used)
