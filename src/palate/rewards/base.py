"""What every reward model offers: a scorer gives numbers, an asked model is sent questions."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from palate.records import Group, Score
from palate.rewards.described import Described
from palate.rewards.judge.asked import AskedModel
from palate.views import Budget


class Scorer(Described, Protocol):
    """A reward model that gives each answer of a group a number; higher is better.

    Making one is cheap; weights are loaded by `prepare`, or else by the first call of `score`.
    """

    def prepare(self) -> None:
        """Load what it needs, so that a model that cannot be used is told before a run begins.

        Raises:
            ModelError: it cannot be used.
        """
        ...

    @property
    def budget(self) -> Budget | None:
        """How much it can hold, or None if anything."""
        ...

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield one score for each answer of each group, in any order; failures have a status and no number."""
        ...


RewardModel = Scorer | AskedModel
