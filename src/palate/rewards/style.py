"""The style probe: how far does the surface of an answer get, without any information about the user?

A Bradley–Terry model, log odds(chosen) = w · (f(chosen) - f(rejected)), on counts that need no understanding. Every
answer is scored by a model that saw no pair of its user. Twins' users share a fold: otherwise each twin would be
judged by a model trained on the other's opposite label, and the probe would not be blind but contrary.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palate.data import Dataset

FOLDS = 5
C = 1.0
Array = NDArray[np.float64]
_WORD = re.compile(r"\w+")
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "sentences": re.compile(r"[.!?]+(?=\s|$)"),
    "paragraphs": re.compile(r"\n\s*\n"),
    "list_items": re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE),
    "headings": re.compile(r"^\s*#+\s", re.MULTILINE),
    "bold": re.compile(r"\*\*[^*]+\*\*"),
    "code": re.compile(r"`"),
    "links": re.compile(r"https?://"),
    "digits": re.compile(r"\d"),
    "questions": re.compile(r"\?"),
    "exclamations": re.compile(r"!"),
    "commas": re.compile(r","),
    "brackets": re.compile(r"[()]"),
    "quotes": re.compile(r"[\"“”]"),
    "capitals": re.compile(r"[A-Z]"),
    "first_person": re.compile(r"\b(?:I|me|my|we|our)\b"),
    "second_person": re.compile(r"\b(?:you|your)\b", re.IGNORECASE),
    "hedges": re.compile(r"\b(?:may|might|could|perhaps|maybe|probably|usually|often)\b", re.IGNORECASE),
}
FEATURES = ("characters", "words", "word_length", "distinct_words", *_PATTERNS)


def features(text: str) -> Array:
    """Return the surface features of `text` in the order of `FEATURES`: log(1 + count), lengths and shares plain."""
    words = _WORD.findall(text)
    count = max(1, len(words))
    plain = [
        np.log1p(len(text)),
        np.log1p(len(words)),
        sum(map(len, words)) / count,
        len({w.lower() for w in words}) / count,
    ]
    return np.array([*plain, *(np.log1p(len(p.findall(text))) for p in _PATTERNS.values())], dtype=float)


class StyleModel:
    """Cross-fitted Bradley–Terry weights; fitted on the whole data set when first asked."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the numbers depend on besides the data."""
        return {"features": list(FEATURES), "folds": FOLDS, "C": C, "fitted_on": self._data.digest}

    def score(self, item_id: str, text: str) -> float:
        """Return w · f(text) by the weights that did not see the item's user."""
        return float(self._weights[self._folds[item_id]] @ features(text))

    @cached_property
    def _folds(self) -> dict[str, int]:
        return {item: fold_of(root) for item, root in components(self._data).items()}

    @cached_property
    def _weights(self) -> list[Array]:
        rows, folds = [], []
        for item_id in self._data.ids:
            chosen, rejected = self._data.answers(item_id)
            rows.append(features(chosen.text) - features(rejected.text))
            folds.append(self._folds[item_id])
        return cross_fit(np.array(rows), np.array(folds))


def cross_fit(gaps: Array, folds: NDArray[np.int_]) -> list[Array]:
    """Return for each fold the weights fitted on the pairs of all others.

    Args:
        gaps: feature differences chosen minus rejected, one row a pair.
        folds: the fold of each pair, see `fold_of`.
    """
    return [fit_bradley_terry(gaps[folds != fold]) for fold in range(FOLDS)]


def fit_bradley_terry(gaps: Array) -> Array:
    """Return weights, in units of the raw features, that make chosen minus rejected positive.

    Args:
        gaps: feature differences chosen minus rejected, one row a pair.
    """
    from sklearn.linear_model import LogisticRegression

    if len(gaps) == 0:
        return np.zeros(len(FEATURES))
    spread = np.sqrt(np.mean(gaps**2, axis=0))
    scale: Array = np.where(spread > 0, spread, 1.0)
    x = gaps / scale
    both, labels = np.vstack([x, -x]), np.repeat([1, 0], len(x))
    model = LogisticRegression(C=C, fit_intercept=False, max_iter=1000).fit(both, labels)
    weights: Array = np.asarray(model.coef_[0], dtype=float) / scale
    return weights


def components(data: Dataset) -> dict[str, str]:
    """Return for each item a name shared by all items that are linked by a user or a twin."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for entry in data.entries.values():
        linked = [f"item {entry.id}"]
        linked += [f"user {entry.user_id}"] if entry.user_id is not None else []
        linked += [f"item {entry.twin}"] if entry.twin is not None else []
        roots = sorted(root(name) for name in linked)
        for other in roots[1:]:
            parent[other] = roots[0]
    return {item: root(f"item {item}") for item in data.entries}


def fold_of(name: str) -> int:
    """Return the fold of a component, see `components`."""
    return hashlib.sha256(name.encode()).digest()[0] % FOLDS
