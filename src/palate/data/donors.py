"""Who lends a context to `user=other`.

Another user of the same domain, near in number and length of posts so that the swap changes the user and little
else, and never the twin, whose taste is the opposite by construction.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from palate.data.index import Entry

NEAREST = 10


class Donors:
    """The possible donors of each domain, one or more items a user.

    The `NEAREST` users by |Δ log(1 + posts)| + |Δ log(1 + characters)| are put in the order of a hash of
    (seed, item, donor), so that the choice is random, repeatable, and independent of file order.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by_domain: dict[str, list[Entry]] = {}
        for entry in entries:
            self._by_domain.setdefault(entry.domain, []).append(entry)
        self._sizes = {domain: _sizes(found) for domain, found in self._by_domain.items()}

    def find(self, entry: Entry, seed: int) -> list[str]:
        """Return the ids of the items to borrow from, in order of draws."""
        candidates = self._by_domain.get(entry.domain, [])
        if not candidates:
            return []
        distance = np.abs(self._sizes[entry.domain] - _sizes([entry])).sum(axis=1)
        chosen: dict[str, str] = {}
        for k in np.argsort(distance, kind="stable"):
            other = candidates[int(k)]
            user = other.user_id or f"item {other.id}"
            if other.id in (entry.id, entry.twin) or user in chosen or self._same_or_twin(entry, other):
                continue
            chosen[user] = other.id
            if len(chosen) == NEAREST:
                break
        return sorted(chosen.values(), key=lambda name: _order(seed, entry.id, name))

    def _same_or_twin(self, entry: Entry, other: Entry) -> bool:
        if entry.user_id is None:
            return False
        return other.user_id == entry.user_id or other.user_id == self._twin_user(entry)

    def _twin_user(self, entry: Entry) -> str | None:
        if entry.twin is None:
            return None
        return next((e.user_id for e in self._by_domain.get(entry.domain, []) if e.id == entry.twin), None)


def _sizes(entries: list[Entry]) -> NDArray[np.float64]:
    return np.asarray(np.log1p(np.array([[e.posts, e.chars] for e in entries], dtype=float)))


def _order(seed: int, item_id: str, donor_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{item_id}\0{donor_id}".encode()).digest()
