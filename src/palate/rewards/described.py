"""What is known of any reward model, whatever it does."""

from collections.abc import Mapping
from typing import Any, Protocol


class Described(Protocol):
    """A reward model as runs record it."""

    @property
    def name(self) -> str:
        """The model string before `?`, which names its runs."""
        ...

    @property
    def probe(self) -> bool:
        """Whether it is a baseline that shows what a surface feature alone achieves, not a reward model."""
        ...

    @property
    def needs_context(self) -> bool:
        """Whether its numbers are about what a context adds, so that the view `question` has none."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """What makes its verdicts what they are: id, revision, weights or prompt, room …; part of the run's digest."""
        ...

    @property
    def environment(self) -> Mapping[str, Any]:
        """What should not change its verdicts but might: versions, device, dtype, server; recorded beside."""
        ...
