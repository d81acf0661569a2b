"""Ranking many items once."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from palate.records import Item
from palate.retrieval.base import Retriever, rank
from palate.retrieval.stored import store_rankings


def store_all(
    folder: Path, items: Iterable[Item], retriever: Retriever, k: int, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Rank every item's own posts and write the rankings; return what was recorded.

    Args:
        folder: for the rankings.
        items: whose posts are ranked for their question.
        retriever: gives the numbers.
        k: how many posts to keep an item.
        about: what else to record, `data_digest` at least.
    """
    counts = {"items": 0, "cold_start": 0, "lost": 0}

    def rows() -> Iterator[Mapping[str, Any]]:
        for item in items:
            found = rank(item.question, item.posts, retriever, k, item_id=item.id)
            counts["items"] += 1
            counts["cold_start"] += not item.posts
            counts["lost"] += found.lost
            yield {
                "id": item.id,
                "posts": [p.id for p in found.posts],
                "scores": list(found.scores),
                "cold_start": not item.posts,
            }

    return store_rankings(folder, rows(), lambda: {"retriever": dict(retriever.identity), "k": k, **about, **counts})
