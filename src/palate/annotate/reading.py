"""Annotation rows and tables of labels, read strictly: what is wrong is told by line, nothing is guessed or dropped."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from palate.data.formats.base import Id, Row, fault
from palate.data.label_studio import GENERAL, SIDES
from palate.data.lines import BadLine, parse_object, read_lines
from palate.data.problems import Problems, explain
from palate.errors import DataError

Side = Literal["chosen", "rejected"]
Preference = Literal["chosen", "rejected", "none"]
FIT = "fit"
CRITERIA = (*GENERAL, FIT)
SCALE = (1, 2, 3, 4, 5)
PREFERENCES = ("chosen", "none", "rejected")
ADVICE = "Rows come from `palate annotate export` or `palate annotate import`."
Rating = Annotated[int, Field(ge=SCALE[0], le=SCALE[-1])]


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one person said of one item in one step.

    `ratings` is criterion → side → 1 to 5, `seats` the sides in the order shown. What was not given is absent.
    """

    item: str
    annotator: str
    step: int
    seats: tuple[str, ...]
    ratings: Mapping[str, Mapping[str, int]]
    preference: Preference | None
    comment: str | None
    attention: bool
    passed: bool | None


class _Sides(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    chosen: Rating | None = None
    rejected: Rating | None = None


class _Row(Row):
    item_id: Id
    annotator: Id
    step: Literal[1, 2]
    seats: list[Side]
    factuality: _Sides | None = None
    relevance: _Sides | None = None
    helpfulness: _Sides | None = None
    fit: _Sides | None = None
    preference: Preference | None = None
    comment: str | None = None
    attention: bool = False
    passed: bool | None = None
    started: str | None = None
    finished: str | None = None

    @model_validator(mode="after")
    def _of_its_step(self) -> "_Row":
        if sorted(self.seats) != sorted(SIDES):
            raise fault("seats must name chosen and rejected, each once")
        foreign = ("fit",) if self.step == 1 else (*GENERAL, "preference")
        if given := [name for name in foreign if getattr(self, name) is not None]:
            raise fault(f"step {self.step} has no {', '.join(given)}")
        return self


def read_annotations(paths: Sequence[Path]) -> list[Annotation]:
    """Return the annotations of all files; the same row in two of them counts once.

    Raises:
        DataError: a file that is not there or holds nothing, and every line that cannot be read, up to 20 at once.
    """
    found: dict[tuple[str, str, int], tuple[Annotation, str]] = {}
    problems = Problems()
    for path in paths:
        for where, row in objects(path, problems):
            try:
                one = _annotation(_Row.model_validate(row))
            except ValidationError as bad:
                problems.extend(where, explain(bad, row))
                continue
            earlier, place = found.setdefault((one.item, one.annotator, one.step), (one, where))
            if earlier != one:
                told = f"'{one.annotator}' on '{one.item}', step {one.step}"
                problems.add(where, f"{told}: said otherwise in {place}. Keep one of the two.")
    if problems.total:
        raise problems.error(", ".join(p.name for p in paths), ADVICE)
    if not found:
        raise DataError(f"{', '.join(map(str, paths))}: no annotations in it. {ADVICE}")
    return [one for one, _ in found.values()]


def _annotation(row: _Row) -> Annotation:
    ratings: dict[str, dict[str, int]] = {}
    for name in CRITERIA:
        sides: _Sides | None = getattr(row, name)
        given = {} if sides is None else {s: v for s in SIDES if (v := getattr(sides, s)) is not None}
        if given:
            ratings[name] = given
    return Annotation(
        item=row.item_id,
        annotator=row.annotator,
        step=row.step,
        seats=tuple(row.seats),
        ratings=ratings,
        preference=row.preference,
        comment=row.comment,
        attention=row.attention,
        passed=row.passed,
    )


def objects(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a JSONL file and where each stands; lines that are none become problems."""
    if path.is_dir():
        raise DataError(f"{path}: a folder; a file is needed. The rows of a study: palate annotate export {path}")
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    with path.open("rb") as handle:
        for line in read_lines(handle):
            if not line.raw.strip():
                continue
            where = f"{path.name}, line {line.number}"
            try:
                yield where, parse_object(line.raw)
            except BadLine as bad:
                problems.add(where, str(bad))
