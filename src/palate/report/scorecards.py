"""Planner scorecards that lie among the run folders: why a plan view wins or loses."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

SCORECARD, PLAN = "scorecard.json", "plan.json"
ALL = "all"


class _Line(BaseModel):
    """The figures of one kind of plans in one domain."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)
    plans: str
    matcher: str
    domain: str
    n: int
    scored: int
    coverage: float | None
    coverage_ci95: tuple[float, float] | None = None
    beside: float | None
    beside_ci95: tuple[float, float] | None = None


class _Scorecard(BaseModel):
    """A scorecard as `palate plan --score` writes it."""

    model_config = ConfigDict(extra="ignore")
    lines: list[_Line]


def find_scorecards(paths: Sequence[Path], unread: list[str]) -> list[dict[str, Any]]:
    """Return the scorecards below `paths`: planner, data and the lines over all domains.

    Args:
        paths: folders to look in.
        unread: takes what is wrong with scorecards that cannot be read.
    """
    found = {f.resolve(): f for path in paths if path.is_dir() for f in path.rglob(SCORECARD)}
    cards = []
    for file in sorted(found.values()):
        try:
            lines = _Scorecard.model_validate_json(file.read_bytes(), strict=False).lines
            made = json.loads((file.parent / PLAN).read_text(encoding="utf-8"))
            planner, data = str(made["planner"]["name"]), str(made["data"])
        except (OSError, ValueError, ValidationError, KeyError, TypeError) as bad:
            unread.append(f"{file}: not a readable scorecard ({type(bad).__name__}).")
            continue
        cards.append({"planner": planner, "data": data, "lines": [line for line in lines if line.domain == ALL]})
    return cards
