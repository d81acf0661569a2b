"""Comparing texts by their words: runs that two of them share, and near-duplicates among many."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

SHINGLE = 3
NEAR = 0.5
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def words(text: str) -> list[str]:
    """Return the words of a text, lower-cased, without punctuation."""
    return _WORD.findall(text.lower().replace("’", "'"))


def is_spaced(text: str) -> bool:
    """Whether words stand apart, so that they can be counted: not in Chinese, Japanese, Thai, Lao, Khmer, Burmese."""
    letters = sum(c.isalpha() for c in text)
    return len(_UNSPACED.findall(text)) <= 0.3 * letters


def shared_run(text: str, other: str, length: int, allowed: str = "") -> str | None:
    """Return the first run of `length` words of `text` that stands in `other` too, but not in `allowed`; else None."""
    own, runs, free = words(text), runs_of(words(other), length), runs_of(words(allowed), length)
    for k in range(len(own) - length + 1):
        run = tuple(own[k : k + length])
        if run in runs and run not in free:
            return " ".join(run)
    return None


def runs_of(found: Sequence[str], length: int) -> set[tuple[str, ...]]:
    """Return all runs of `length` words."""
    return {tuple(found[k : k + length]) for k in range(len(found) - length + 1)}


def shingles(text: str) -> set[tuple[str, ...]]:
    """Return a text's runs of three words, or its words where there are fewer."""
    found = words(text)
    return runs_of(found, SHINGLE) or {(w,) for w in found}


def likeness(one: str, other: str) -> float:
    """Return how much two texts share: Jaccard index of their shingles, 0 to 1."""
    a, b = shingles(one), shingles(other)
    return len(a & b) / len(a | b) if a and b else 0.0


class Near:
    """Finds near-duplicates of a text among many others: Jaccard index of shingles of at least `NEAR`."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._owners: list[str] = []
        self._where: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)

    def add(self, owner: str, texts: Iterable[str]) -> None:
        """Take up the texts of `owner`."""
        for text in texts:
            found = shingles(text)
            for shingle in found:
                self._where[shingle].append(len(self._sizes))
            self._sizes.append(len(found))
            self._owners.append(owner)

    def find(self, text: str, owner: str) -> str | None:
        """Return who else has a text that is nearly `text`, or None."""
        own = shingles(text)
        counts = Counter(k for shingle in own for k in self._where.get(shingle, ()))
        for k, common in counts.most_common():
            if self._owners[k] != owner and common >= NEAR * (len(own) + self._sizes[k] - common):
                return self._owners[k]
        return None
