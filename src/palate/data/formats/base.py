"""What the forms of data share: strict rows, ids, chat turns, and the record they become."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from palate.records import Answer, AnswerRole, Item, Key, Message, Role

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "gpt": "assistant",
    "system": "system",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: its fallback id and the domain it has when it names none."""

    id: str
    domain: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file: what may be shown, its answers, what must stay hidden, and its split."""

    item: Item
    answers: tuple[Answer, ...]
    key: Key | None = None
    split: str | None = None


class Row(BaseModel):
    """A strict row: types are never converted, unknown columns are kept apart."""

    model_config = ConfigDict(extra="allow", strict=True)

    def unknown(self) -> dict[str, Any]:
        """Return the unknown columns that hold something; a table has every column in every row."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}


def fault(text: str) -> PydanticCustomError:
    """Return an error whose words reach the user unchanged."""
    return PydanticCustomError("palate", "{error}", {"error": text})


def _as_id(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise fault("expected a string or a whole number")
    if not value.strip():
        raise fault("must not be blank")
    return value


def _not_blank(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise fault("must not be blank")
    return value


Id = Annotated[str, BeforeValidator(_as_id)]
Text = Annotated[str, BeforeValidator(_not_blank)]


class Turn(Row):
    """A chat turn as it stands in files."""

    role: str
    content: Text

    def message(self, field: str) -> Message:
        """Return it as a record; `field` is told if the role is not known."""
        role = _ROLES.get(self.role.lower())
        if role is None:
            raise fault(f"{field}: unknown role {self.role!r}; known: user, assistant, system")
        return Message(role, self.content)


def turns(rows: list[Turn], field: str) -> tuple[Message, ...]:
    """Return chat turns that end with the user's.

    Raises:
        PydanticCustomError: no turns, an unknown role, or an end that is not the user's.
    """
    if not rows:
        raise fault(f"{field} must not be empty")
    messages = tuple(row.message(field) for row in rows)
    if messages[-1].role != "user":
        raise fault(f"{field} must end with the user's turn")
    return messages


def reply(value: str | list[Turn], messages: tuple[Message, ...], field: str) -> str:
    """Return the text of an answer given as text, or as a conversation that may repeat `messages`."""
    if isinstance(value, str):
        return value
    found = tuple(turn.message(field) for turn in value)
    if not found or found[-1].role != "assistant":
        raise fault(f"{field} must end with the assistant's turn")
    if found[:-1] not in ((), messages):
        raise fault(f"{field}: the turns before the answer differ from the prompt's")
    return found[-1].content


def pair_of(item_id: str, chosen: str, rejected: str) -> tuple[Answer, ...]:
    """Return the two answers, refusing pairs that nobody could decide."""
    for name, text in (("chosen", chosen), ("rejected", rejected)):
        if not text.strip():
            raise fault(f"{name} is blank, so the pair cannot be decided")
    if chosen.strip() == rejected.strip():
        raise fault("chosen and rejected are the same text, so the pair cannot be decided")
    return (answer(item_id, "chosen", chosen), answer(item_id, "rejected", rejected))


def answer(item_id: str, name: str, text: str, role: AnswerRole | None = None) -> Answer:
    """Return an answer whose id is the item's id and its name."""
    return Answer(f"{item_id}#{name}", item_id, text, role or ("chosen" if name == "chosen" else "rejected"))
