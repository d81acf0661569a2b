"""`hf/…`: a sequence classifier whose one chosen output is the reward, read at the true last token."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from palate.errors import ModelError
from palate.records import Message
from palate.rewards.classifier.load import Head, Loaded, load
from palate.rewards.local import CHECK, LocalScorer, Options
from palate.rewards.prefix import Engine, Limits, Row, Text, sliding_window, tolerance_of, unused
from palate.spec import Spec


class Classifier(LocalScorer):
    """`hf/<hub id or folder>`: a sequence classifier.

    Pads are an id that occurs in no text of the batch, so that neither a pad equal to the end token nor a missing pad
    token can move the place where the head reads. If the model still gives other numbers in a batch than alone, which
    is tried once after loading, it is run one text at a time.
    """

    family = "hf"

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec, Options.from_spec(spec, ("head", "label")))
        self._head = Head.from_spec(spec)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the numbers, options as they were given."""
        return {**super().identity, "label": self._head.label}

    @property
    def notes(self) -> Sequence[str]:
        """An untrained head, or a pad token that is the end token."""
        pad, end = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        same = pad is not None and pad == end
        told = "the pad token is the end token; a batch that holds it is padded with an id that it does not hold"
        return (*self._loaded.notes, *((told,) if same else ()))

    @cached_property
    def _loaded(self) -> Loaded:
        return load(self._options, self._head)

    def _engine(self) -> Engine:
        model, o = self._loaded.model, self._options
        engine = Engine(
            model,
            self._whole,
            self._read,
            self._pad,
            Limits.of(o.batch_tokens, model.device.type),
            tolerance_of(model.dtype),
            sliding_window(model),
            None if o.share else "not wanted",
        )
        engine.check_batches([self.encoder.tokens((Message("user", text),), text) for text in CHECK])
        return engine

    def _whole(self, texts: Sequence[Text]) -> list[float]:
        """Return the numbers of a batch of whole texts."""
        import torch

        pad, width = self._pad([t.ids for t in texts]), max(map(len, texts))
        inputs = {"input_ids": [t.ids for t in texts], "attention_mask": [(1,) * len(t) for t in texts]}
        if any(t.segments for t in texts):
            inputs["token_type_ids"] = [t.segments or (0,) * len(t) for t in texts]
        fill, model = {"input_ids": pad}, self._loaded.model
        tensors = {
            name: torch.tensor([[*r, *[fill.get(name, 0)] * (width - len(r))] for r in rows], device=model.device)
            for name, rows in inputs.items()
        }
        with torch.inference_mode():
            return self._outputs(model(**tensors), len(texts))

    def _read(self, output: Any, rows: Sequence[Row]) -> list[float]:
        return self._outputs(output, len(rows))

    def _outputs(self, output: Any, texts: int) -> list[float]:
        """Return the chosen output for each text, cast to float32 first.

        Raises:
            ModelError: the output is not one row of the expected width a text.
        """
        model, logits = self._loaded.model, getattr(output, "logits", None)
        shape = tuple(logits.shape) if logits is not None else None
        if logits is None or shape != (texts, model.config.num_labels):
            raise ModelError(
                f"model '{model.name_or_path}': expected one row of {model.config.num_labels} outputs a text, "
                f"got {shape}. It is not a sequence classifier head (hidden states or an embedding?)."
            )
        return [float(v) for v in logits[:, self._loaded.label].float().cpu()]

    def _pad(self, texts: Sequence[Sequence[int]]) -> int:
        """Choose an id for padding and tell the model, whose head reads before the first pad."""
        pad = unused(texts, self.tokenizer.pad_token_id)
        config = self._loaded.model.config
        config.get_text_config().pad_token_id = pad
        config.pad_token_id = pad
        return pad
