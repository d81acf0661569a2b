"""Rankings made before by `palate retrieve`, used again.

A folder holds `retrieval.json` (what made them) and `rankings.jsonl` (for each item the post ids, best first,
with their numbers).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from palate.errors import DataError
from palate.records import Post

RANKINGS = "rankings.jsonl"
RECORD = "retrieval.json"


class Stored:
    """Gives posts the numbers they had when they were ranked; posts beyond the stored k come after all others."""

    def __init__(
        self, folder: Path, record: Mapping[str, Any], scores: Mapping[str, Mapping[str, float]], digest: str
    ) -> None:
        self._folder = folder
        self._record = record
        self._scores = scores
        self._digest = digest

    @classmethod
    def open(cls, folder: str) -> "Stored":
        """Read a folder that `palate retrieve` wrote.

        Raises:
            DataError: not such a folder, or unfinished or damaged.
        """
        path = Path(folder).expanduser()
        if not (path / RECORD).is_file():
            raise DataError(f"retriever 'stored/{folder}': no {RECORD} there. Make it: palate retrieve --out {folder}")
        try:
            record = json.loads((path / RECORD).read_text(encoding="utf-8"))
            raw = (path / RANKINGS).read_bytes()
            scores = dict(_places(json.loads(line)) for line in raw.splitlines())
            known = {"retriever", "k", "data_digest"} <= record.keys()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as bad:
            raise DataError(f"retriever 'stored/{folder}': damaged ({bad}). Rank again: palate retrieve") from None
        if not known:
            raise DataError(f"retriever 'stored/{folder}': {RECORD} is not the record of rankings.")
        return cls(path, record, scores, hashlib.sha256(raw).hexdigest())

    @property
    def identity(self) -> Mapping[str, Any]:
        """The retriever that made the rankings, the depth they are stored to, and a hash of the rankings."""
        return {**self._record["retriever"], "stored_k": self._record["k"], "rankings": self._digest}

    def check(self, data_digest: str, k: int) -> None:
        """Make sure that the rankings fit the data and reach to `k`.

        Raises:
            DataError: they do not.
        """
        if self._record["data_digest"] != data_digest:
            raise DataError(f"stored rankings in {self._folder} were made on other data. Rank again: palate retrieve")
        if self._record["k"] < k:
            raise DataError(
                f"stored rankings in {self._folder} hold {self._record['k']} posts an item, the view shows {k}."
            )

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        """Return the stored places, turned so that higher is better; NaN for posts that had no finite number.

        Raises:
            DataError: another user's posts, which were never ranked for this item, or an item the folder lacks.
        """
        if not item_id:
            raise DataError(
                f"stored rankings in {self._folder} are of each item's own posts. "
                "For user=other use the retriever itself."
            )
        found = self._scores.get(item_id)
        if found is None:
            raise DataError(f"stored rankings in {self._folder}: none for '{item_id}'. Rank again: palate retrieve")
        return [found.get(p.id, 0.0) for p in posts]


def _places(row: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    ranks = range(len(row["posts"]), 0, -1)
    lost = [s is None for s in row["scores"]]
    places = [float("nan") if gone else float(rank) for rank, gone in zip(ranks, lost, strict=True)]
    return row["id"], dict(zip(row["posts"], places, strict=True))


def store_rankings(
    folder: Path, rankings: Iterable[Mapping[str, Any]], record: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Write rankings and, when all are there, what made them; return the latter.

    Args:
        folder: made if it is not there.
        rankings: rows `{"id", "posts", "scores", "cold_start"}`.
        record: gives `retriever`, `k`, `data_digest` and what else should be known, asked for at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)
    with (folder / RANKINGS).open("w", encoding="utf-8") as handle:
        for row in rankings:
            handle.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    found = record()
    (folder / RECORD).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return found
