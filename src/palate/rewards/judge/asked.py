"""What evaluation needs of a model that is asked: its questions about a pair, and what the replies come to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from palate.llm.client import Ask, Client
from palate.llm.served import SERVER_OPTIONS
from palate.records import Call, Group, Score, Verdict
from palate.rewards.described import Described
from palate.spec import Spec

COMMON = ("base_url", "connections", "key_env", "max_tokens", "parser", "read_seconds", "repeats", "temperature")
GRADING = ("parser", "tie")


@dataclass(frozen=True, slots=True)
class Settled:
    """A verdict and what the row records of how it came about."""

    verdict: Verdict
    judge: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class AskedModel(Described, Protocol):
    """A reward model behind a server."""

    @property
    def grade(self) -> Mapping[str, Any]:
        """How replies are read and decided; another one needs no other reply."""
        ...

    @property
    def client(self) -> Client:
        """What sends the asks."""
        ...

    def asks(self, group: Group) -> Sequence[Ask]:
        """Return all questions about one pair under one query."""
        ...

    def settle(self, groups: Sequence[Group], calls: Mapping[str, Call]) -> Settled:
        """Return what the replies (by key of their asks) about a pair come to, one group a draw. Pure."""
        ...

    def readable(self, call: Call) -> bool:
        """Whether a reply holds what was asked for."""
        ...


@runtime_checkable
class Rating(AskedModel, Protocol):
    """A reward model behind a server that gives each answer a number of its own, however many there are."""

    def scores(self, group: Group, calls: Mapping[str, Call]) -> Sequence[Score]:
        """Return what the replies (by key of their asks) give each answer, once a repeat. Pure."""
        ...


def served_options(spec: Spec) -> dict[str, str]:
    """Return the options that decide replies: not where the server is, nor how replies are graded."""
    return {k: v for k, v in spec.options.items() if k not in (*SERVER_OPTIONS, *GRADING)}
