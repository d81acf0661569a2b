"""Runs of words in many texts at once: words become 64-bit numbers, and a run of n words one number.

A whole history is a few array operations, whatever its length. Numbers only point to places; whoever reports a run
compares the words themselves, so two words that share a number cannot raise an alarm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from palate.retrieval.bm25 import tokenize

Numbers = NDArray[np.uint64]
Places = NDArray[np.intp]
_ODD = 0x9E3779B97F4A7C15
_BITS = 16
_LAST = np.uint64((1 << _BITS) - 1)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of several texts in a row: their numbers, and which text each belongs to."""

    texts: tuple[tuple[str, ...], ...]
    numbers: Numbers
    owner: Places
    starts: Places

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Words":
        """Return the lower-cased words of `texts`."""
        split = tuple(tuple(tokenize(t)) for t in texts)
        lengths = np.array([len(t) for t in split], dtype=np.intp)
        total = int(lengths.sum())
        numbers = np.fromiter(map(hash, chain.from_iterable(split)), dtype=np.int64, count=total).view(np.uint64)
        starts = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(lengths)])
        return cls(split, numbers, np.repeat(np.arange(len(split)), lengths), starts)

    def runs(self, n: int) -> tuple[Numbers, Places]:
        """Return the numbers of all runs of `n` words within one text, and where each begins."""
        count = len(self.numbers) - n + 1
        if count <= 0:
            return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp)
        found = np.zeros(count, dtype=np.uint64)
        for k in range(n):
            found += self.numbers[k : k + count] * np.uint64(pow(_ODD, k + 1, 1 << 64))
        whole = np.flatnonzero(self.owner[:count] == self.owner[n - 1 :])
        return found[whole], whole

    def run_at(self, place: int, n: int) -> tuple[int, tuple[str, ...]]:
        """Return which text the run at `place` is in, and its words."""
        text = int(self.owner[place])
        start = place - int(self.starts[text])
        return text, self.texts[text][start : start + n]


def among(values: Numbers, wanted: Numbers) -> Places:
    """Return the places of `values` that are in `wanted`, which is sorted."""
    if not len(wanted) or not len(values):
        return np.empty(0, dtype=np.intp)
    # A table of the last bits leaves few to be searched for: a search costs far more than a look into it.
    table = np.zeros(1 << _BITS, dtype=bool)
    table[wanted & _LAST] = True
    maybe = np.flatnonzero(table[values & _LAST])
    at = np.minimum(np.searchsorted(wanted, values[maybe]), len(wanted) - 1)
    found: Places = maybe[wanted[at] == values[maybe]]
    return found


def runs_of(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    """Return the runs of `n` words of a text."""
    return {tuple(words[k : k + n]) for k in range(len(words) - n + 1)}


def shared_runs(wanted: Words, texts: Words, n: int) -> list[tuple[int, int, int]]:
    """Return where runs of `n` words of `wanted` stand in `texts`, in order.

    Returns:
        (text, place in it, text of `wanted` it is from) for each run; place counts words.
    """
    numbers, begins = wanted.runs(n)
    values, places = texts.runs(n)
    hits = among(values, np.sort(numbers))
    if not len(hits):
        return []
    source: dict[tuple[str, ...], int] = {}
    for place in begins:
        text, run = wanted.run_at(int(place), n)
        source.setdefault(run, text)
    found = []
    for place in places[hits]:
        text, run = texts.run_at(int(place), n)
        if run in source:
            found.append((text, int(place) - int(texts.starts[text]), source[run]))
    return found
