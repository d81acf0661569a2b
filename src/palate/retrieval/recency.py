"""Newest posts first; where no post has a date, the last in the file is the newest."""

from collections.abc import Mapping, Sequence
from typing import Any

from palate.records import Post


class Recency:
    """Ranks by date, whatever the question. Posts without a date count as older than all others."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name only."""
        return {"id": "recency"}

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        """Return the place of each post's date among the dates, or of the post in the file."""
        if any(p.date for p in posts):
            order = {date: k for k, date in enumerate(sorted({p.date or "" for p in posts}))}
            return [float(order[p.date or ""]) for p in posts]
        return [float(k) for k in range(len(posts))]
