"""What is asked in each step, and the one strict reading of what a form sends."""

from collections.abc import Mapping
from typing import Literal

from palate.errors import PalateError

Step = Literal[1, 2]
Side = Literal["chosen", "rejected"]

SEATS = ("a", "b")
SCALE = ("1", "2", "3", "4", "5")
PREFERENCES = ("a", "none", "b")
CRITERIA: Mapping[int, tuple[str, ...]] = {1: ("factuality", "relevance", "helpfulness"), 2: ("fit",)}
LONGEST_COMMENT = 2000

RATINGS: Mapping[int, tuple[str, ...]] = {
    step: tuple(f"{name}_{seat}" for seat in SEATS for name in names) for step, names in CRITERIA.items()
}
REQUIRED: Mapping[int, tuple[str, ...]] = {1: (*RATINGS[1], "preference"), 2: RATINGS[2]}
FIELDS: Mapping[int, tuple[str, ...]] = {1: (*REQUIRED[1], "comment"), 2: REQUIRED[2]}


class BadField(PalateError):
    """A form value that cannot be taken; `field` names whose."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def label(field: str) -> str:
    """Return a field in words: `factuality of answer A`."""
    name, _, seat = field.rpartition("_")
    return f"{name} of answer {seat.upper()}" if name else field


def read_field(step: int, field: str, text: str) -> str | None:
    """Return the value of a field as it is kept; None for an empty comment.

    Raises:
        BadField: no field of that step, or not a value it can have.
    """
    if field not in FIELDS[step]:
        raise BadField(field[:40], f"step {step} has no field '{field[:40]}'.")
    if field == "comment":
        return _comment(text)
    allowed = PREFERENCES if field == "preference" else SCALE
    if text not in allowed:
        wanted = "a, b or none" if field == "preference" else "a whole number from 1 to 5"
        raise BadField(field, f"{label(field)}: expected {wanted}, found '{text[:40]}'.")
    return text


def read_fields(step: int, form: Mapping[str, str]) -> dict[str, str | None]:
    """Return all values of a form, or raise for the first that cannot be taken, so that nothing is half kept."""
    return {field: read_field(step, field, text) for field, text in form.items()}


def missing(step: int, values: Mapping[str, str]) -> list[str]:
    """Return the fields that a finished step needs and `values` lacks, in the order of the page."""
    return [field for field in REQUIRED[step] if field not in values]


def _comment(text: str) -> str | None:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    if len(text) > LONGEST_COMMENT:
        raise BadField("comment", f"comment: at most {LONGEST_COMMENT} characters, found {len(text)}.")
    return text if text.strip() else None
