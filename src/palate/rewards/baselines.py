"""Built-in scorers: a coin and two probes of surface features, and a word matcher that does read the user."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from palate.data import Dataset
from palate.errors import PalateError, SpecError, did_you_mean
from palate.records import Answer, Group, Query, Score
from palate.retrieval.bm25 import bm25_scores, content_words, tokenize
from palate.rewards.base import Scorer
from palate.rewards.style import StyleModel
from palate.spec import Spec

Rule = Callable[[Query, Answer], float]
NAMES = ("length", "lexical", "random", "style")


class Baseline:
    """A scorer made of one rule."""

    budget = None
    needs_context = False

    def __init__(self, name: str, rule: Rule, identity: Mapping[str, Any], *, probe: bool = True) -> None:
        self.name = name
        self.probe = probe
        self._rule = rule
        family, _, rest = name.partition("/")
        self.identity = {"family": family, "id": rest, "parameters": None, "options": {}, "probe": probe, **identity}

    @property
    def environment(self) -> Mapping[str, Any]:
        """The versions of what the rules are made of."""
        return {name: version(name) for name in ("palate", "numpy", "bm25s", "scikit-learn")}

    def prepare(self) -> None:
        """Nothing to load."""

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield the rule's numbers in order."""
        for group in groups:
            for answer in group.answers:
                yield Score(answer.id, "ok", self._rule(group.query, answer))


def make_baseline(spec: Spec, data: Dataset | None) -> Scorer:
    """Return `builtin/<name>`.

    - `random[?seed=]`: a number drawn from a hash of what is shown and the answer.
    - `length`: characters of the answer.
    - `lexical`: mean BM25 over the context's entries with the answer's words as query, per word of the answer; with no
      context section the question is the text compared with; an empty context scores 0.
    - `style`: a Bradley–Terry model of surface features, without any look at the user.

    Raises:
        SpecError: an unknown name or option.
    """
    name = spec.head.partition("/")[2]
    if name not in NAMES:
        raise SpecError(f"model '{spec}': unknown built-in '{name}'.{did_you_mean(name, NAMES)}")
    spec.only(("seed",) if name == "random" else (), "model")
    if name == "random":
        seed = spec.whole("seed", 0, "model")
        return Baseline(spec.head, lambda q, a: _random(seed, q, a), {"options": dict(spec.options)})
    if name == "style":
        if data is None or not data.has_pairs:
            raise PalateError(
                "builtin/style learns from the data's own pairs, so it needs data with chosen and rejected."
            )
        model = StyleModel(data)
        return Baseline(spec.head, lambda q, a: model.score(q.item_id, a.text), model.identity)
    if name == "lexical":
        return Baseline(spec.head, _lexical, {}, probe=False)
    return Baseline(spec.head, _length, {})


def _length(query: Query, answer: Answer) -> float:
    return float(len(answer.text))


def _random(seed: int, query: Query, answer: Answer) -> float:
    text = "\0".join((str(seed), query.item_id, *(m.content for m in query.messages), answer.text))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / float(1 << 56)


def _lexical(query: Query, answer: Answer) -> float:
    words = content_words(answer.text)
    texts = [query.turns[-1].content] if query.context is None else [b.text for b in query.context.blocks]
    if not words or not texts:
        return 0.0
    found = bm25_scores(words, [tokenize(t) for t in texts])
    return sum(found) / len(found) / len(words)
