"""Palate's own reward server: answers of several queries in one request, each query's together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from palate.errors import ModelError
from palate.records import Message, Score
from palate.rewards.http.dialect import Facts, Piece, turns
from palate.rewards.http.options import Options
from palate.rewards.http.questions import Questions
from palate.rewards.wire import CountReply, Health, WireError, read, read_results

SCORE, COUNT, HEALTH = "/score", "/count", "/health"
FIXED = ("label", "model", "room", "tokenizer", "window")


@dataclass(frozen=True, slots=True)
class Palate:
    """The dialect of `palate.rewards.wire`."""

    facts: Facts
    questions: Questions
    at_once: int = 8
    parallel: int = 4
    takes_tokens: bool = False
    checks_room: bool = True

    def body(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """Return a `ScoreRequest`."""
        return {
            "items": [{"id": p.answer_id, "messages": turns(p.messages), "response": p.text} for p in pieces],
        }

    def read(self, reply: Any, pieces: Sequence[Piece]) -> list[Score]:
        """Return the scores, each at the answer of its id."""
        found = read_results(reply, [p.answer_id for p in pieces])
        scores = []
        for piece in pieces:
            result = found[piece.answer_id]
            if isinstance(result, str):
                scores.append(Score(piece.answer_id, "error", None, result))
            else:
                scores.append(Score(piece.answer_id, result.status, result.score, result.error))
        return scores

    def count(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a prompt and the frame around an answer."""
        try:
            tokens = read(CountReply, self.questions.post(COUNT, {"prompts": [turns(messages)]})).tokens
        except WireError as bad:
            raise ModelError(f"model '{self.questions.name}': {COUNT}: {bad}") from None
        if tokens is None or len(tokens) != 1:
            raise ModelError(f"model '{self.questions.name}': {COUNT} gave {tokens} for one prompt.")
        return tokens[0]


def find_palate(options: Options, questions: Questions) -> Palate | None:
    """Return the dialect if this is a server of Palate's.

    Raises:
        ModelError: it is, but not of the agreed form, or an option is given that the server has fixed.
    """
    found = questions.get(HEALTH)
    if not isinstance(found, dict) or found.get("server") != "palate":
        return None
    try:
        health = read(Health, found)
    except WireError as bad:
        raise ModelError(f"model '{questions.name}': {HEALTH}: {bad}") from None
    given = [name for name in FIXED if getattr(options, name) is not None]
    if given:
        raise ModelError(f"model '{questions.name}': a Palate server has fixed its {given[0]}; leave out ?{given[0]}=.")
    facts = Facts(
        server="palate",
        version=health.version,
        endpoint=SCORE,
        weights=health.model,
        window=health.window,
        room=health.room,
        activation="the served model's own",
    )
    return Palate(facts, questions)
