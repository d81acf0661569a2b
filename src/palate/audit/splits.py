"""Do users or texts of these data stand in other data too, such as the split that models are trained on?"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from palate.audit.base import WORST, Check, Figure, Worst, excerpt, undefined
from palate.data import Dataset
from palate.records import Answer, Item
from palate.retrieval.bm25 import tokenize

KINDS = ("user", "question", "answer", "post")
SHORTEST = 4
WHY = "A model may have been trained on what stands in other splits; then a good score can be memory."
NOT_ASKED = "no other data given (--against)"


@dataclass(frozen=True, slots=True)
class Marks:
    """What an item can share with other data: its user, and prints of its texts; posts by place."""

    user: str | None
    question: bytes | None
    answers: frozenset[bytes]
    posts: tuple[bytes | None, ...]


@dataclass(slots=True)
class Elsewhere:
    """What stands in other data: users and prints of texts."""

    names: list[str] = field(default_factory=list)
    users: set[str] = field(default_factory=set)
    questions: set[bytes] = field(default_factory=set)
    answers: set[bytes] = field(default_factory=set)
    posts: set[bytes] = field(default_factory=set)

    def add(self, data: Dataset) -> None:
        """Take in a data set, item by item."""
        self.names.append(data.name)
        for item in data:
            found = marks(item, data.answers(item.id))
            self.users |= {found.user} if found.user is not None else set()
            self.questions |= {found.question} if found.question else set()
            self.answers |= found.answers
            self.posts |= {p for p in found.posts if p}

    def shared(self, item: Item, answers: Sequence[Answer]) -> tuple[tuple[str, str], ...]:
        """Return what an item shares with the other data: kind and excerpt."""
        if not self.names:
            return ()
        own = marks(item, answers)
        found = [("user", own.user)] if own.user is not None and own.user in self.users else []
        found += [("question", item.question)] if own.question in self.questions else []
        found += [("answer", a.text) for a in answers if _print(a.text) in self.answers]
        found += [("post", p.text) for p, mark in zip(item.posts, own.posts, strict=True) if mark in self.posts]
        return tuple((kind, excerpt(text)) for kind, text in found)


def marks(item: Item, answers: Iterable[Answer]) -> Marks:
    """Return what an item can share with other data."""
    prints = frozenset(p for p in (_print(a.text) for a in answers) if p)
    return Marks(item.user_id, _print(item.question), prints, tuple(_print(p.text) for p in item.posts))


def splits(shared: Sequence[tuple[str, tuple[tuple[str, str], ...]]], elsewhere: Elsewhere) -> list[Check]:
    """Return the check of users and texts that stand in other data too.

    Args:
        shared: (item, what it shares) for each item.
        elsewhere: the other data.
    """
    bad = [(i, kind, text) for i, found in shared for kind, text in found]
    title = "Users or texts in other data"
    whole = undefined("items", NOT_ASKED)
    parts: tuple[Figure, ...] = ()
    if elsewhere.names:
        whole = Figure("items", len(shared), len({i for i, _, _ in bad}))
        parts = tuple(Figure(k, len(shared), len({i for i, kind, _ in bad if kind == k}), judged=False) for k in KINDS)
    first: dict[str, Worst] = {}
    for item_id, kind, text in bad:
        first.setdefault(item_id, Worst(item_id, excerpt(f"{kind}: {text}")))
    return [Check("splits", "splits", title, "count", whole, WHY, None, 0, parts, tuple(first.values())[:WORST])]


def _print(text: str) -> bytes | None:
    """Return the print of a text's words; None if there are too few of them to be told from chance."""
    words = tokenize(text)
    if len(words) < SHORTEST:
        return None
    return hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest()
