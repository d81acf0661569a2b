"""What a planner is given and what it gives. Neither has a place for a key."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from palate.records import Post, Status
from palate.store import RowLog

FEWEST, MOST = 3, 6


@dataclass(frozen=True, slots=True)
class Task:
    """One plan to be made: the question, and the posts to read for it, best first."""

    id: str
    item_id: str
    domain: str
    question: str
    posts: tuple[Post, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a planner made of a task. Only an `ok` plan has aspects, and it has at least one."""

    id: str
    status: Status
    aspects: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert (self.status == "ok") == bool(self.aspects), "only an ok plan has aspects"


class Planner(Protocol):
    """Infers aspects. `identity` is what decides them; the server's address and versions are `environment`."""

    @property
    def name(self) -> str:
        """The planner string without what does not decide the plans."""
        ...

    @property
    def reads_posts(self) -> bool:
        """Whether it reads posts at all."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides its plans but question and posts."""
        ...

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions and server."""
        ...

    def prepare(self) -> None:
        """Make sure that it can work, so that one that cannot leaves no folder behind."""
        ...

    def plan(self, tasks: Iterable[Task], log: RowLog) -> Iterator[Plan]:
        """Yield one plan a task, in any order; exchanges with a model are kept in `log`, which is also the cache."""
        ...

    def unasked(self, task: Task, log: RowLog) -> int | None:
        """Return how many characters would still be sent for a task; None if nothing would."""
        ...
