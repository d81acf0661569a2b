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
    (seed, item, user), so that the choice is random, repeatable, and independent of file order. The same hash
    decides who of the equally near is among them.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by_domain: dict[str, list[Entry]] = {}
        for entry in entries:
            self._by_domain.setdefault(entry.domain, []).append(entry)
        self._sizes = {domain: _sizes(found) for domain, found in self._by_domain.items()}

    def find(self, entry: Entry, twin: Entry | None, seed: int) -> list[str]:
        """Return the ids of the items to borrow from, in order of draws."""
        candidates = self._by_domain.get(entry.domain, [])
        if not candidates:
            return []
        barred = {entry.unit, (twin or entry).unit}
        distance = np.abs(self._sizes[entry.domain] - _sizes([entry])).sum(axis=1)
        near: list[tuple[float, bytes, str, str]] = []
        users: set[str] = set()
        limit = np.inf
        for k in np.argsort(distance):
            if distance[k] > limit:
                break
            other = candidates[int(k)]
            if (user := other.unit) in barred:
                continue
            near.append((float(distance[k]), _order(seed, entry.id, user), other.id, user))
            users.add(user)
            if len(users) == NEAREST:
                limit = distance[k]
        chosen: dict[str, tuple[bytes, str]] = {}
        for _, order, item_id, user in sorted(near):
            chosen.setdefault(user, (order, item_id))
        return [item_id for _, item_id in sorted(list(chosen.values())[:NEAREST])]


def _sizes(entries: list[Entry]) -> NDArray[np.float64]:
    return np.asarray(np.log1p(np.array([[e.posts, e.chars] for e in entries], dtype=float)))


def _order(seed: int, item_id: str, user: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{item_id}\0{user}".encode()).digest()
