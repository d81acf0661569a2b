"""What the servers have in common: what is known of one, what is asked of it, and how one number is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

from palate.errors import ModelError
from palate.records import Message, Score

TESTED = "vLLM 0.32 (run), 0.12 and later (by its sources); SGLang 0.5 (by its documentation)"
START = "vLLM: --runner pooling --convert classify; SGLang: --is-embedding, on a checkpoint with a reward head"
MOST_OUTPUTS = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """One answer on its query; `ids` are the tokens of both, if they are made here."""

    item_id: str
    answer_id: str
    messages: Sequence[Message]
    text: str
    ids: Sequence[int] | None = None

    @property
    def turns(self) -> list[dict[str, str]]:
        """The conversation with the answer as the assistant's last turn."""
        return turns([*self.messages, Message("assistant", self.text)])


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself.

    `model` is the name to ask for, `weights` what it tells of what it loaded, `window` and `room` are in tokens,
    `activation` is what was done to the raw output.
    """

    server: str
    version: str | None
    endpoint: str
    model: str | None = None
    weights: Mapping[str, Any] = field(default_factory=dict)
    window: int | None = None
    room: int | None = None
    activation: str | None = None
    notes: tuple[str, ...] = ()


class Dialect(Protocol):
    """How to talk to one server."""

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        ...

    @property
    def at_once(self) -> int:
        """How many answers go into one request; those of one query stay together."""
        ...

    @property
    def parallel(self) -> int:
        """How many requests it is sent at once unless told otherwise."""
        ...

    @property
    def takes_tokens(self) -> bool:
        """Whether it is sent token ids that are made here."""
        ...

    @property
    def checks_room(self) -> bool:
        """Whether it tells by itself that an answer is longer than its room."""
        ...

    def body(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """Return the request for some answers."""
        ...

    def read(self, reply: Any, pieces: Sequence[Piece]) -> list[Score]:
        """Return the scores of a reply, each at its answer.

        Raises:
            ModelError: the server gives something else than one number an answer.
            ValueError: the reply is not of the agreed form.
        """
        ...


def turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return chat turns as they go over the wire."""
    return [{"role": m.role, "content": m.content} for m in messages]


def in_order(rows: Any, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """Return the rows of a reply that names the place of each by `index`, in the order of the pieces.

    Raises:
        ValueError: not one row for each piece.
    """
    found = rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else []
    places = [row.get("index") for row in found]
    if sorted(map(str, places)) != sorted(map(str, range(len(pieces)))):
        raise ValueError(f"expected one row for each of {len(pieces)} answers, found the indexes {places}")
    by_place = {row["index"]: row for row in found}
    return [by_place[k] for k in range(len(pieces))]


def value_of(row: Mapping[str, Any], field: str) -> Any:
    """Return what a row holds for one answer.

    Raises:
        ValueError: the row has no such field.
    """
    if field not in row:
        raise ValueError(f"no '{field}' in the server's row, but {', '.join(map(str, row)) or 'nothing'}")
    return row[field]


def score_of(name: str, answer_id: str, value: Any, label: int | None) -> Score:
    """Return the score in what a server gave for one answer: a number, a list of one, or the output `label` of several.

    Raises:
        ModelError: several numbers without a choice among them, or what is no output of a reward head.
    """
    number = _output(name, value, label)
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
        return Score(answer_id, "error", None, f"the server gave {number!r}, which is not a reward")
    return Score(answer_id, "ok", float(number))


def _output(name: str, value: Any, label: int | None) -> Any:
    outputs = value if isinstance(value, list) else [value]
    if not outputs:
        raise ValueError("the server gave an empty list for an answer")
    if any(isinstance(v, list) for v in outputs):
        inner = max(len(v) for v in outputs if isinstance(v, list))
        raise ModelError(_not_a_reward(name, f"{len(outputs)} × {inner}"))
    if len(outputs) > MOST_OUTPUTS:
        raise ModelError(_not_a_reward(name, str(len(outputs))))
    if label is None and len(outputs) > 1:
        listed = ", ".join(f"{k} ({v})" for k, v in enumerate(outputs))
        raise ModelError(
            f"model '{name}': the server gives {len(outputs)} numbers for an answer (shape {len(outputs)}), not one.\n"
            f"If they are the outputs of a classifier, choose the reward by number, ?label={len(outputs) - 1}. "
            f"For an example they were: {listed}.\nIf they are hidden states or an embedding, the server runs the "
            f"wrong task. {START}."
        )
    if label is not None and label >= len(outputs):
        raise ModelError(f"model '{name}': no output {label}; the server gives {len(outputs)}, numbered from 0.")
    return outputs[label or 0]


def _not_a_reward(name: str, shape: str) -> str:
    return (
        f"model '{name}': the server gives numbers of shape {shape} for an answer: hidden states or an embedding, "
        f"not a reward. It runs the wrong task. {START}."
    )
