"""`rank` and its one rule for ties; the retrievers by name.

A retriever gives each post a number; ranking is the same for all: higher first; equal numbers newer first, then file
order. Ids never decide. Posts whose number is not finite come last and are counted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from palate.errors import SpecError, did_you_mean
from palate.records import Post
from palate.spec import Spec

K = 10
POOLING = "mean over unmasked tokens"
NAMES = ("bm25", "recency", "dense", "stored")


class Retriever(Protocol):
    """Gives posts their numbers. `identity` is what a run records so that the ranking can be repeated."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model id, revision, pooling, similarity and text field, as far as they apply."""
        ...

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        """Return one number a post; higher is nearer to the question."""
        ...


@dataclass(frozen=True, slots=True)
class Ask:
    """One ranking to be made: `name` is the asker's own, the rest is what `Retriever.scores` takes."""

    name: Any
    item_id: str
    question: str
    posts: Sequence[Post]


@runtime_checkable
class ManyRetriever(Protocol):
    """A retriever that works on many items at once, and faster so."""

    def many(self, asks: Iterable[Ask]) -> Iterator[tuple[Any, Sequence[float]]]:
        """Yield the name of each ask and its posts' numbers, in any order."""
        ...


@dataclass(frozen=True, slots=True)
class Ranked:
    """A user's posts in order, best first, cut at k. `lost` posts had no finite number and were put last."""

    posts: tuple[Post, ...]
    scores: tuple[float | None, ...]
    lost: int = 0


def rank(question: str, posts: Sequence[Post], retriever: Retriever, k: int = K, *, item_id: str = "") -> Ranked:
    """Return the k best posts for `question`; all of them, once, if there are fewer.

    Args:
        question: what to search with.
        posts: the history, in file order.
        retriever: gives the numbers.
        k: how many to keep, at least 1.
        item_id: the item whose own posts these are, which stored rankings look up; empty for another user's.
    """
    if not posts:
        return Ranked((), ())
    return in_order(posts, retriever.scores(item_id, question, posts), k)


def in_order(posts: Sequence[Post], scores: Sequence[float], k: int) -> Ranked:
    """Return the k posts with the highest numbers.

    Args:
        posts: in file order.
        scores: a number for each.
        k: how many to keep.
    """
    values = np.asarray(scores, dtype=float)
    finite = np.isfinite(values)
    values = np.where(finite, values, -np.inf)
    newest = sorted(range(len(posts)), key=lambda i: posts[i].date or "", reverse=True)
    order = sorted(newest, key=lambda i: -values[i])[:k]
    return Ranked(
        tuple(posts[i] for i in order),
        tuple(float(values[i]) if finite[i] else None for i in order),
        int(np.sum(~finite)),
    )


def search_text(post: Post) -> str:
    """Return the text of a post that retrieval reads: its text, after what was asked if it is a choice."""
    return f"{post.prompt}\n{post.text}" if post.prompt else post.text


def make_retriever(text: str) -> Retriever:
    """Return the retriever that a string names: `bm25`, `recency`, `dense[/model]`, `stored/<folder>`.

    Raises:
        SpecError: an unknown name or option.
        MissingExtra: `dense` without the extra `hf`.
    """
    spec = Spec.parse(text, "retriever")
    name, _, rest = spec.head.partition("/")
    if name not in NAMES:
        raise SpecError(f"retriever '{text}': unknown.{did_you_mean(name, NAMES)}")
    if spec.revision and name != "dense":
        raise SpecError(f"retriever '{text}': '{name}' takes no revision. Write an @ of a path as %40.")
    if name == "dense":
        from palate.retrieval.dense import Dense

        return Dense.from_spec(spec, rest)
    spec.only((), "retriever")
    if name == "stored":
        from palate.retrieval.stored import Stored

        return Stored.open(rest)
    if rest:
        raise SpecError(f"retriever '{text}': '{name}' takes no model.")
    if name == "bm25":
        from palate.retrieval.bm25 import Bm25

        return Bm25()
    from palate.retrieval.recency import Recency

    return Recency()
