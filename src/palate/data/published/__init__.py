"""Figures that others published, to be shown beside one's own runs as *not ours*.

`grade` says how far a figure can be trusted to be the published one: `paper` was read in the abstract, the official
code or the data's own description; `second hand` in notes about the paper; `inferred` follows from other figures.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

GRADES = ("paper", "second hand", "inferred")
ABOUT = ("data", "accuracy", "agreement")


@dataclass(frozen=True, slots=True)
class Published:
    """One published figure.

    `value` is a count, or a share or statistic on its own scale (accuracy in 0..1). `n` is of how many pairs or models,
    None where that is not known. `about` is one of `ABOUT`, `grade` one of `GRADES`.
    """

    about: str
    what: str
    value: float
    n: int | None
    source: str
    grade: str


@cache
def figures() -> tuple[Published, ...]:
    """Return all published figures, in the order of the file."""
    text = (files(__name__) / "figures.csv").read_text(encoding="utf-8")
    return tuple(_read(row) for row in csv.DictReader(text.splitlines()))


def published_rows(about: str) -> list[Published]:
    """Return the figures on one of `ABOUT`, in the order of the file."""
    return [figure for figure in figures() if figure.about == about]


def _read(row: dict[str, str]) -> Published:
    n = int(row["n"]) if row["n"] else None
    return Published(row["about"], row["what"], float(row["value"]), n, row["source"], row["grade"])
