"""What every local reward model does: texts within its window become numbers, groups at a time, failures a status."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from math import isfinite
from typing import Any

from palate.errors import ItemError
from palate.records import Answer, Group, Message, Query, Score
from palate.rewards.local.encode import Encoder
from palate.rewards.local.load import load_tokenizer
from palate.rewards.local.options import Options
from palate.rewards.prefix import Engine, Text, Why
from palate.spec import Spec
from palate.views import Budget

LOOKAHEAD = 32
CHECK = (
    "Yes.",
    "Take the early train, then walk along the river until you see the second bridge on your left.",
)
Numbers = Iterator[tuple[int, int, float | Why]]


@dataclass(slots=True)
class Asked:
    """A query with those of its answers that fit, and each of these with the query as tokens."""

    query: Query
    answers: list[Answer] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


class LocalScorer(ABC):
    """A reward model whose weights are loaded here, at the first score."""

    probe = False
    needs_context = False
    family: str

    def __init__(self, spec: Spec, options: Options) -> None:
        self.name = spec.head
        self._given = dict(spec.options)
        self._options = options
        self._ends: dict[str, list[int]] | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the numbers, options as they were given."""
        o = self._options
        return {
            "family": self.family,
            "id": o.weights.id,
            "revision": o.weights.revision,
            "weights": o.weights.digest,
            "settings": o.weights.settings,
            "parameters": o.weights.parameters,
            "template": o.template,
            "window": o.window,
            "room": o.room,
            "options": self._given,
            "probe": self.probe,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions, and after loading device, dtype, attention kernel, batching and the ends of what was scored."""
        found: dict[str, Any] = {name: version(name) for name in ("palate", "torch", "transformers")}
        if "engine" in self.__dict__:
            model = self.engine.model
            found |= {
                "device": str(model.device),
                "dtype": str(model.dtype).removeprefix("torch."),
                "attention_kernel": getattr(model.config, "_attn_implementation", None),
                "batching": self.engine.alone or f"up to {self.engine.limits.batch} tokens",
                "shared_prefix": self.engine.sharing,
                "notes": list(self.notes),
                "token_ends": self._ends,
            }
        return found

    @property
    def notes(self) -> Sequence[str]:
        """What a reader has to know of the loaded model."""
        return ()

    @property
    def budget(self) -> Budget:
        """Window and room in the model's own tokens."""
        o = self._options
        return Budget(o.window - o.room, o.room, self.encoder.count)

    def prepare(self) -> None:
        """Load tokenizer and weights."""
        _ = self.encoder, self.engine

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield scores, a few groups at a time, so that short texts of like length can share a batch."""
        self.prepare()
        stream = iter(groups)
        while part := list(islice(stream, LOOKAHEAD)):
            asked = [Asked(group.query) for group in part]
            for group, one in zip(part, asked, strict=True):
                for answer in group.answers:
                    found = self._encode(group.query.messages, answer)
                    if isinstance(found, Score):
                        yield found
                    else:
                        one.answers.append(answer)
                        one.texts.append(found)
            for k, place, value in self._numbers(asked):
                yield _scored(asked[k].answers[place], value)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer alone, which needs no weights."""
        return load_tokenizer(self._options)

    @cached_property
    def encoder(self) -> Encoder:
        """What makes tokens of conversations."""
        return Encoder(self.tokenizer, self._options.template, self._options.weights.id)

    @cached_property
    def engine(self) -> Engine:
        """The loaded model, ready to run."""
        return self._engine()

    @abstractmethod
    def _engine(self) -> Engine:
        """Load the model."""

    def _numbers(self, asked: Sequence[Asked]) -> Numbers:
        """Yield (group, place, number or reason) for the texts of each group."""
        return self.engine.values([one.texts for one in asked])

    def _text(self, messages: Sequence[Message], answer: str) -> Text:
        return self.encoder.tokens(messages, answer)

    def _encode(self, messages: Sequence[Message], answer: Answer) -> Text | Score:
        try:
            text = self._text(messages, answer.text)
        except ItemError as bad:
            return Score(answer.id, "error", None, str(bad))
        self._ends = self._ends or {"first": list(text.ids[:8]), "last": list(text.ids[-8:])}
        if not text.ids:
            return Score(answer.id, "error", None, "the text has not one token in this model's form of a conversation")
        taken = self.encoder.answer_tokens(answer.text)
        if taken > self._options.room:
            return Score(answer.id, "overlong", None, f"answer of {taken} tokens, room for {self._options.room}")
        if len(text) > self._options.window:
            return Score(answer.id, "overlong", None, f"{len(text)} tokens, window of {self._options.window}")
        return text


def _scored(answer: Answer, value: float | Why) -> Score:
    if isinstance(value, Why):
        return Score(answer.id, "error", None, value.text)
    if not isfinite(value):
        return Score(answer.id, "error", None, f"the model gave {value}, which is not a reward")
    return Score(answer.id, "ok", value)
