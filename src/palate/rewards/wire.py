"""The wire of Palate's own reward server: what goes over it, written once for the server and its clients.

- `POST /score`: `ScoreRequest` → `ScoreReply`, one result an item, ids and order kept.
- `POST /count`: `CountRequest` → `CountReply`, tokens of a prompt with the frame around an answer.
- `GET /health`: `Health`.

Strict both ways: an unknown field is refused by its name, and a failed item has a status and a reason, never a number.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from palate.records import Role, Status

MOST_ITEMS = 256
MOST_PROMPTS = 256
MOST_TURNS = 1_000
MOST_ENTRIES = 1_000
LONGEST_TEXT = 1_000_000
LONGEST_ID = 1_000
FIRST_FAULTS = 3
MOST_FAULTS = 1_000

Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Filled = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Tokens = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
M = TypeVar("M", bound=BaseModel)


class _Wire(BaseModel):
    """No type is converted, nothing unknown is taken, no number is infinite."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class Turn(_Wire):
    """One chat turn."""

    role: Role
    content: Text


class ScoreItem(_Wire):
    """One answer to be scored: on chat turns as they are, or on a question, which the server puts into a view.

    `history` are texts of posts, best first; `plan` are aspects. Both belong to a question, one at most.
    """

    id: Id
    messages: Annotated[list[Turn], Field(min_length=1, max_length=MOST_TURNS)] | None = None
    question: Filled | None = None
    history: Annotated[list[Text], Field(max_length=MOST_ENTRIES)] | None = None
    plan: Annotated[list[Text], Field(max_length=MOST_ENTRIES)] | None = None
    response: Text

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.messages is None) == (self.question is None):
            raise ValueError("exactly one of 'messages' and 'question' is needed")
        context = [name for name in ("history", "plan") if getattr(self, name) is not None]
        if context and self.question is None:
            raise ValueError(f"'{context[0]}' belongs to 'question', not to 'messages'")
        if len(context) > 1:
            raise ValueError("only one of 'history' and 'plan' can be given")
        if self.messages is not None and all(turn.role != "user" for turn in self.messages):
            raise ValueError("'messages' have no turn of the user")
        return self


class ScoreRequest(_Wire):
    """Answers to be scored; their ids are unique."""

    items: Annotated[list[ScoreItem], Field(min_length=1, max_length=MOST_ITEMS)]

    @model_validator(mode="after")
    def _ids(self) -> Self:
        seen: set[str] = set()
        for item in self.items:
            if item.id in seen:
                raise ValueError(f"the id {item.id!r} is there twice")
            seen.add(item.id)
        return self


class ScoreResult(_Wire):
    """What became of one answer: `score` is a finite number if and only if `status` is `ok`, else `error` says why.

    `dropped` counts the entries of its context that had to go so that an answer fits, `stripped` the end tokens of
    other models that were taken off the answer.
    """

    id: Id
    status: Status
    score: float | None
    error: Text | None = None
    dropped: Count = 0
    stripped: Count = 0

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.status == "ok") != (self.score is not None):
            raise ValueError("a score belongs to the status 'ok' and to no other")
        if (self.status == "ok") == bool(self.error):
            raise ValueError("an 'error' belongs to every status but 'ok'")
        return self


class ScoreReply(_Wire):
    """One result for each item of the request, in its order."""

    results: list[ScoreResult]


class CountRequest(_Wire):
    """Prompts whose tokens are to be counted."""

    prompts: Annotated[
        list[Annotated[list[Turn], Field(min_length=1, max_length=MOST_TURNS)]],
        Field(min_length=1, max_length=MOST_PROMPTS),
    ]


class CountReply(_Wire):
    """Tokens of each prompt with the frame around an answer; null if the model has no window."""

    tokens: list[Count] | None


class Health(_Wire):
    """What is served: the model's identity without paths, its window, and the room for an answer, in tokens.

    `window` and `room` are both null for a model that holds anything.
    """

    status: Literal["ok"]
    server: Literal["palate"]
    version: str
    model: dict[str, Any]
    window: Tokens | None
    room: Tokens | None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.window is None) != (self.room is None):
            raise ValueError("'window' and 'room' go together")
        if self.window is not None and self.room is not None and self.room >= self.window:
            raise ValueError("'room' leaves no space for a prompt in 'window'")
        return self


class WireError(ValueError):
    """What came over the wire is not what was agreed; the message names the first fields, `fields` has them all."""

    def __init__(self, message: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or {}


def read(kind: type[M], found: Any) -> M:
    """Return `found` (decoded JSON) as `kind`.

    Raises:
        WireError: it is not of this form; the first faults are named with their fields.
    """
    try:
        return kind.model_validate(found)
    except ValidationError as bad:
        raise WireError(_faults(bad), _fields(bad)) from None


def read_results(found: Any, ids: Sequence[str]) -> Mapping[str, ScoreResult | str]:
    """Return the result of each id, in any order; of an item whose own result cannot be read, what is wrong with it.

    Raises:
        WireError: no list of results, or results of other items than were asked for.
    """
    rows = found.get("results") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise WireError(f"expected an object with 'results', found {_head(found)}")
    named = [row.get("id") if isinstance(row, dict) else None for row in rows]
    if sorted(map(str, named)) != sorted(ids):
        raise WireError(f"asked for the ids {_head(list(ids))}, found {_head(named)}")
    return {row["id"]: _result(row) for row in rows}


def _result(row: Any) -> ScoreResult | str:
    try:
        return read(ScoreResult, row)
    except WireError as bad:
        return str(bad)


def _faults(bad: ValidationError) -> str:
    found = []
    for error in bad.errors(include_url=False, include_context=False)[:FIRST_FAULTS]:
        place = ".".join(map(str, error["loc"]))
        text = _fault(error["type"], error["msg"])
        hidden = error["type"] in ("extra_forbidden", "missing", "value_error")
        shown = "" if hidden else f", found {_head(error['input'])}"
        found.append((f"{place}: " if place else "") + text + shown)
    more = bad.error_count() - len(found)
    return "; ".join(found) + (f" and {more} more" if more > 0 else "")


def _fields(bad: ValidationError) -> dict[str, str]:
    """Return what is wrong with each field, without what was found there."""
    found = bad.errors(include_url=False, include_context=False, include_input=False)[:MOST_FAULTS]
    return {".".join(map(str, e["loc"])): _fault(e["type"], e["msg"]) for e in found}


def _fault(kind: str, text: str) -> str:
    return "unknown field" if kind == "extra_forbidden" else text.removeprefix("Value error, ")


def _head(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:80] + "…"
