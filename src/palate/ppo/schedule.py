"""Which questions come in which step: known from the seed alone, so that a run that goes on sees the same ones."""

import hashlib
import math
import random
from collections.abc import Sequence


def schedule(ids: Sequence[str], steps: int, questions: int, seed: int) -> list[list[str]]:
    """Return the items of each step: all in a new order each pass, before any comes again.

    Args:
        ids: all items.
        steps: how many steps.
        questions: items a step; more than there are repeat.
        seed: of the orders.
    """
    found: list[str] = []
    rounds = 0
    while len(found) < steps * questions:
        order = list(ids)
        random.Random(hashlib.sha256(f"{seed}:{rounds}".encode()).digest()).shuffle(order)
        found += order
        rounds += 1
    return [found[k * questions : (k + 1) * questions] for k in range(steps)]


def steps_of(items: int, questions: int, epochs: float) -> int:
    """Return how many steps `epochs` passes over `items` take."""
    return max(1, math.ceil(epochs * items / questions))
