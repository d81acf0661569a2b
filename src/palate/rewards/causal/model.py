"""A causal language model that tells how likely an answer is: the sum, or mean, of its tokens' log-probabilities.

The answer is all that follows the opened assistant turn in the model's own template: its tokens and those that close
the turn, so that "this and nothing more" is what is scored.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from palate.errors import ModelError
from palate.records import Message
from palate.rewards.local import CHECK, Encoder, LocalScorer, Options
from palate.rewards.local.load import load_tokenizer, load_weights, missing_tensors
from palate.rewards.prefix import Engine, Limits, Row, Text, sliding_window, tolerance_of, unused
from palate.rewards.prefix.encoded import arguments
from palate.spec import Spec

TEMPLATES = ("chat", "plain")
LENGTHS = ("sum", "mean")


class CausalModel:
    """One causal model; `mean` divides by the number of the answer's tokens."""

    def __init__(self, options: Options, mean: bool) -> None:
        self.options = options
        self._mean = mean
        self._model: Any = None

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer alone, which needs no weights."""
        return load_tokenizer(self.options)

    @cached_property
    def encoder(self) -> Encoder:
        """What makes tokens of conversations."""
        return Encoder(self.tokenizer, self.options.template, self.options.weights.id)

    @cached_property
    def engine(self) -> Engine:
        """The loaded model, ready to run."""
        model, info = load_weights(self.options, "AutoModelForCausalLM", "causal language model")
        if missing := missing_tensors(info):
            raise ModelError(
                f"model '{self.options.weights.id}': the checkpoint has no {missing}, so its likelihoods would be "
                "random numbers. It is probably not a causal language model."
            )
        vocabulary = model.config.get_text_config().vocab_size
        engine = Engine(
            model,
            self._whole,
            self._read,
            lambda texts: unused(texts, self.tokenizer.pad_token_id),
            Limits.of(self.options.batch_tokens, model.device.type, vocabulary),
            tolerance_of(model.dtype),
            sliding_window(model),
            None if self.options.share else "not wanted",
        )
        self._model = model
        engine.check_batches([self.text((Message("user", text),), text) for text in CHECK])
        return engine

    def text(self, messages: Sequence[Message], answer: str) -> Text:
        """Return the tokens of a conversation that ends in `answer`, and where the answer begins."""
        ids = self.encoder.tokens(messages, answer).ids
        opened = self.encoder.prompt(messages)
        begin = next((k for k, (a, b) in enumerate(zip(ids, opened, strict=False)) if a != b), len(opened))
        return Text(ids, None, max(1, min(begin, len(ids) - 1)))

    def _whole(self, texts: Sequence[Text]) -> list[float]:
        """Return the numbers of a batch of whole texts."""
        import torch

        model, width = self._model, max(map(len, texts))
        pad = unused([t.ids for t in texts], self.tokenizer.pad_token_id)
        ids = torch.tensor([[*t.ids, *[pad] * (width - len(t))] for t in texts], device=model.device)
        mask = torch.tensor([[1] * len(t) + [0] * (width - len(t)) for t in texts], device=model.device)
        kept = width - min(t.answer for t in texts) + 1
        some = {"logits_to_keep": kept} if "logits_to_keep" in arguments(model) else {}
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask, **some).logits
        cut = width - logits.shape[1]
        return [self._sum(logits[k], t.ids, t.answer, cut) for k, t in enumerate(texts)]

    def _read(self, output: Any, rows: Sequence[Row]) -> list[float]:
        return [self._sum(output.logits[k], row.ids, row.answer, 0) for k, row in enumerate(rows)]

    def _sum(self, logits: Any, ids: Sequence[int], answer: int, cut: int) -> float:
        """Return the log-probability of `ids[answer:]`; `logits` are those of the places from `cut` on, (n, vocab)."""
        import torch

        wanted = torch.tensor(ids[answer:], device=logits.device)
        rows = logits[answer - 1 - cut : len(ids) - 1 - cut].float()
        found = rows.gather(-1, wanted[:, None])[:, 0] - rows.logsumexp(-1)
        return float(found.double().mean() if self._mean else found.double().sum())


class CausalScorer(LocalScorer):
    """A reward model made of one causal model, or of two that read the same tokens."""

    def __init__(self, spec: Spec, further: tuple[str, ...] = ()) -> None:
        super().__init__(spec, Options.from_spec(spec, ("length", *further), TEMPLATES))
        self._length = spec.choice("length", LENGTHS, "sum", "model")
        self._model = CausalModel(self._options, self._length == "mean")

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the numbers, options as they were given."""
        return {**super().identity, "length": self._length}

    @cached_property
    def tokenizer(self) -> Any:
        """The model's."""
        return self._model.tokenizer

    @cached_property
    def encoder(self) -> Encoder:
        """The model's."""
        return self._model.encoder

    def _engine(self) -> Engine:
        return self._model.engine

    def _text(self, messages: Sequence[Message], answer: str) -> Text:
        return self._model.text(messages, answer)
