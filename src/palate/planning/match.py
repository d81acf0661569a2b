"""When do two titles name the same aspect? Two similarities, each with a threshold set on pairs labelled by hand.

`labelled_pairs.jsonl` holds 102 pairs of titles. 50 mean the same; 16 are opposites or otherwise near, and 36 are other
wishes, most of them about the same situation. The threshold is the one with the best balanced accuracy on them, halfway
between neighbouring values. What came of it:

| similarity | threshold | balanced accuracy | pairs left out in turn | same found | near taken | others taken |
|---|---|---|---|---|---|---|
| lexical: F1 of shared stems | 0.143 | 0.595 | 0.595 | 22 of 50 | 13 of 16 | 0 of 36 |
| embedding: cosine, all-MiniLM-L6-v2 | 0.262 | 0.769 | 0.659 | 49 of 50 | 15 of 16 | 8 of 36 |

Other encoders get a threshold of their own in the same way. Neither similarity can tell a wish from its opposite, and
the lexical one misses most paraphrases: a coverage means something beside those of the controls, and little alone.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from palate.planning.words import stem
from palate.retrieval.dense import Dense
from palate.spec import Spec


def _text(name: str) -> str:
    return (files("palate.planning") / name).read_text(encoding="utf-8")


FUNCTION_WORDS = frozenset(_text("function_words.txt").split())
_WORD = re.compile(r"[^\W_]+")
Matrix = NDArray[np.float64]
Similarity = Callable[[Sequence[str], Sequence[str]], Matrix]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two titles and whether they name the same aspect."""

    a: str
    b: str
    same: bool


@dataclass(frozen=True, slots=True)
class Matcher:
    """Titles match if their similarity is at least `threshold`; `balanced_accuracy` is on the labelled pairs."""

    name: str
    similarity: Similarity
    threshold: float
    balanced_accuracy: float

    def matches(self, planned: Sequence[str], true: Sequence[str]) -> NDArray[np.bool_]:
        """Return which planned aspects match which true ones, planned × true."""
        return self.similarity(planned, true) >= self.threshold


@cache
def labelled_pairs() -> tuple[Pair, ...]:
    """Return the pairs labelled by hand."""
    return tuple(Pair(**json.loads(line)) for line in _text("labelled_pairs.jsonl").splitlines())


def lexical(first: Sequence[str], second: Sequence[str]) -> Matrix:
    """Return the F1 of shared stems of content words: 2 |A ∩ B| / (|A| + |B|), 0 where a title has none."""
    a, b = ([_stems(t) for t in texts] for texts in (first, second))
    return np.array([[2 * len(x & y) / max(1, len(x) + len(y)) for y in b] for x in a]).reshape(len(a), len(b))


class Embedded:
    """The cosine of mean-pooled vectors of an encoder.

    Args:
        encoder: a folder or hub id, `@revision` after it.
    """

    def __init__(self, encoder: str) -> None:
        spec = Spec.parse(encoder, "encoder").only((), "encoder")
        self._dense = Dense(spec.head, spec.revision)

    def __call__(self, first: Sequence[str], second: Sequence[str]) -> Matrix:
        """Return the cosines; NaN, which matches nothing, where a vector is not finite."""
        a, b = (np.array([_unit(v) for v in self._dense.encode(texts)]) for texts in (first, second))
        return np.asarray(a @ b.T, dtype=float)


def make_matcher(name: str, similarity: Similarity) -> Matcher:
    """Return a matcher whose threshold is set on the labelled pairs."""
    pairs = labelled_pairs()
    values = [float(similarity([p.a], [p.b])[0, 0]) for p in pairs]
    return Matcher(name, similarity, *best_threshold(values, [p.same for p in pairs]))


def best_threshold(values: Sequence[float], same: Sequence[bool]) -> tuple[float, float]:
    """Return the lowest threshold of the best balanced accuracy, halfway between two values, and that accuracy."""
    scores, truth = np.asarray(values), np.asarray(same)
    levels = np.unique(scores)
    best = (float(levels[0]), 0.5)
    for threshold in (levels[:-1] + levels[1:]) / 2:
        said = scores >= threshold
        accuracy = (said[truth].mean() + (~said)[~truth].mean()) / 2
        if accuracy > best[1]:
            best = float(threshold), float(accuracy)
    return best


def _stems(text: str) -> set[str]:
    return {stem(w) for w in _WORD.findall(text.lower()) if w not in FUNCTION_WORDS}


def _unit(vector: NDArray[np.float32]) -> Matrix:
    wide = vector.astype(float)
    return np.asarray(wide / np.linalg.norm(wide))
