"""What every reward model offers: a scorer gives numbers, an asked model is sent questions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from palate.records import Group, Score
from palate.rewards.judge.asked import AskedModel
from palate.views import Budget


class Scorer(Protocol):
    """A reward model that gives each answer of a group a number; higher is better.

    Making one is cheap; weights are loaded by the first call of `score`.
    """

    @property
    def name(self) -> str:
        """The model string before `?`, which names its runs."""
        ...

    @property
    def probe(self) -> bool:
        """Whether it is a baseline that shows what a surface feature alone achieves, not a reward model."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """What makes its numbers what they are: id, revision, weights, room …; part of the run's digest."""
        ...

    @property
    def environment(self) -> Mapping[str, Any]:
        """What should not change its numbers but might: versions, device, dtype, kernel; recorded beside."""
        ...

    @property
    def budget(self) -> Budget | None:
        """How much it can hold, or None if anything."""
        ...

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield one score for each answer of each group, in any order; failures have a status and no number."""
        ...


RewardModel = Scorer | AskedModel
