"""The forms of data that are understood, recognised by their fields.

Each form has a pydantic row and one function that turns a row into a `Record`. Unknown columns go to
`Item.extra`; rubric and narrative go to the `Key` and nowhere else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from palate.data.formats import pairs, personal
from palate.data.formats.base import Place, Record, Row
from palate.data.problems import explain

__all__ = ["FIELDS", "FORMATS", "Format", "Place", "Record", "read_record", "recognise"]


@dataclass(frozen=True, slots=True)
class Format:
    """One form: its name, its row, how a row becomes a record, and the fields that give it away."""

    name: str
    row: type[Row]
    build: Callable[[Any, Place], Record]
    fields: tuple[str, ...]

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return whether the fields that give it away are there."""
        return all(row.get(name) is not None for name in self.fields)


FORMATS: Mapping[str, Format] = {
    f.name: f
    for f in (
        Format("best-of-n", pairs.SamplesRow, pairs.samples, ("responses",)),
        Format("lamp-qa", pairs.PairRow, pairs.pair, ("question",)),
        Format("rewardbench", pairs.PromptRow, pairs.prompt_pair, ("prompt",)),
        Format("personal-rewardbench", personal.PersonalRow, personal.build, ("context",)),
    )
}

FIELDS = (
    "id",
    "user_id",
    "domain",
    "category",
    "question",
    "messages",
    "prompt",
    "profile",
    "persona",
    "twin",
    "chosen",
    "rejected",
    "responses",
    "rubric_aspects",
    "narrative",
    "date",
)


def recognise(row: Mapping[str, Any]) -> Format:
    """Return the form of a record: the first whose tell-tale fields are all there.

    A record with `messages` is the form with `question`; one that fits nothing is read as a
    RewardBench pair, whose errors then name what is missing.
    """
    for form in FORMATS.values():
        if form.fits(row):
            return form
    return FORMATS["lamp-qa" if "messages" in row or "profile" in row else "rewardbench"]


def read_record(form: Format, row: dict[str, Any], place: Place) -> tuple[Record | None, list[str]]:
    """Return the record in `row`, or None and what is wrong with it."""
    try:
        return form.build(form.row.model_validate(row), place), []
    except ValidationError as error:
        return None, explain(error, row)
    except PydanticCustomError as error:
        return None, [error.message()]
