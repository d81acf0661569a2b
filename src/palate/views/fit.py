"""`fit`: the answer is never cut. When a prompt is too long, the context gives way, from the bottom of the ranking."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from palate.records import Context, Message, Query
from palate.views.look import render


@dataclass(frozen=True, slots=True)
class Budget:
    """What a model can hold, in its own tokens.

    `prompt` for the query and `answer` for an answer are fixed for a run, so that all answers of an item see the
    same context, whatever their own length. `count` gives the tokens of a list of chat turns.
    """

    prompt: int
    answer: int
    count: Callable[[Sequence[Message]], int]


def fit(query: Query, room: int, count: Callable[[Sequence[Message]], int]) -> Query | None:
    """Return `query` with as many of its context entries as `room` tokens hold, best first; None if even none fit.

    Args:
        query: from `look`.
        room: tokens for the prompt.
        count: tokens of a list of chat turns; must grow with the number of entries.
    """
    if count(query.messages) <= room:
        return query
    if query.context is None:
        return None
    low, high = 0, len(query.context.blocks) - 1
    best: Query | None = None
    while low <= high:
        kept = (low + high) // 2
        candidate = _keep(query, query.context, kept)
        if count(candidate.messages) <= room:
            best, low = candidate, kept + 1
        else:
            high = kept - 1
    return best


def _keep(query: Query, context: Context, kept: int) -> Query:
    shorter = replace(context, blocks=context.blocks[:kept])
    dropped = query.dropped + len(context.blocks) - kept
    return replace(query, context=shorter, messages=render(query.turns, shorter), dropped=dropped)
