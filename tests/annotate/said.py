"""Annotation rows that tests change to their need."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
EVEN = {"chosen": 4, "rejected": 4}


def first(item: str, annotator: str, preference: str | None = "chosen", **changes: Any) -> Row:
    """Return a row of step one; a value of None removes a field."""
    row: Row = {"item_id": item, "annotator": annotator, "step": 1, "seats": ["chosen", "rejected"]}
    row |= {"factuality": EVEN, "relevance": EVEN, "helpfulness": EVEN, "preference": preference}
    row |= {"comment": None, "attention": False, "passed": None, "started": "2026-01-01T10:00:00"}
    return {k: v for k, v in (row | changes).items() if v is not None or k in ("comment", "passed")}


def second(item: str, annotator: str, chosen: int, rejected: int) -> Row:
    """Return a row of step two."""
    row: Row = {"item_id": item, "annotator": annotator, "step": 2, "seats": ["rejected", "chosen"]}
    return row | {"fit": {"chosen": chosen, "rejected": rejected}, "comment": None, "attention": False, "passed": None}


def save(path: Path, rows: Iterable[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
