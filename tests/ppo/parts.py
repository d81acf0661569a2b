"""What tests of training share: reward models made of a rule, a policy to start from, and settings that learn fast."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from palate.ppo import Training
from palate.records import Answer, Group, Score

# Rates at which a tiny random policy learns in a few steps; PPO makes several updates a step, the others one.
RATES = {"ppo": 3e-3, "rloo": 1e-2, "grpo": 1e-2}
Rule = Callable[[Answer], Score]


class Ruled:
    """A scorer made of a rule; it remembers the groups it was asked about and what it said."""

    name = "test/rule"
    probe = False
    needs_context = False
    budget = None

    def __init__(self, rule: Rule, name: str = "rule") -> None:
        self.identity = {"family": "test", "id": name, "options": {}}
        self.environment: dict[str, Any] = {}
        self.groups: list[Group] = []
        self.given: list[Score] = []
        self._rule = rule

    def prepare(self) -> None:
        """Nothing to load."""

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield scores last first: the order is for the caller to restore."""
        asked = list(groups)
        self.groups += asked
        found = [self._rule(answer) for group in asked for answer in group.answers]
        self.given += found
        yield from reversed(found)


def share_of_e(text: str) -> float:
    """The share of the letter e in a text."""
    return text.count("e") / max(len(text), 1)


def letter(answer: Answer) -> Score:
    """Pay for the letter e."""
    return Score(answer.id, "ok", share_of_e(answer.text))


def constant(answer: Answer) -> Score:
    """Pay all alike."""
    return Score(answer.id, "ok", 0.5)


def failed(answer: Answer, note: str = "out of order") -> Score:
    """Give no number."""
    return Score(answer.id, "error", None, note)


def settings(method: str, policy: object, **changes: Any) -> Training:
    """Settings with which a tiny random policy learns in seconds."""
    given: dict[str, Any] = {
        "method": method,
        "policy": str(policy),
        "reward": "builtin/length",
        "data": "sample",
        "view": "question",
        "steps": 4,
        "batch": 16,
        "minibatch": 16,
        "response": 8,
        "lr": RATES[method],
        "kl": 0.0,
        "save_every": 100,
    }
    return Training.of(given | changes)
