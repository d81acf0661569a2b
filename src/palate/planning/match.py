"""When do two titles name the same aspect? Two similarities, each with a threshold set on pairs labelled by hand.

`labelled_pairs.jsonl` holds 102 pairs of titles, 50 of which mean the same; the others share a topic or words but not
the wish, opposites among them. The threshold is the one with the best balanced accuracy on them, halfway between
neighbouring values:

THRESHOLDS

Both figures are of the pairs that set the threshold, so they flatter a little. Neither similarity can tell a wish from
its opposite reliably ("alone" and "together" stand in like sentences): read coverage as an upper bound, and compare it
with the controls.
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

FUNCTION_WORDS = frozenset(
    "a an and are as at be been by for from has have her his in into is it its my of on or our than that the their them "
    "this to was with your".split()
)
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
    """Two titles match if their similarity is at least `threshold`; `balanced_accuracy` is that on the labelled pairs."""

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
    text = (files("palate.planning") / "labelled_pairs.jsonl").read_text(encoding="utf-8")
    return tuple(Pair(**json.loads(line)) for line in text.splitlines())


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
