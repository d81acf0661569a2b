"""Answers that wait to be scored, those of one query together."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from palate.records import Answer, Group, Message, Query, Score

Key = tuple[tuple[Message, ...], tuple[Message, ...]]


@dataclass(eq=False, slots=True)
class Job:
    """One answer. `name` is unique in the server; `over` means that nobody waits for its score any more."""

    name: str
    query: Query
    text: str
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Score]"
    over: bool = False

    @property
    def key(self) -> Key:
        """What jobs of one group have in common."""
        return self.query.messages, self.query.turns

    def settle(self, score: Score) -> None:
        """Hand over the score; the first one counts. Called from any thread."""
        if self.over:
            return
        self.over = True
        try:
            self.loop.call_soon_threadsafe(self._set, score)
        except RuntimeError:
            # The server has stopped while a hung call came back: nobody is there to be told.
            return

    def _set(self, score: Score) -> None:
        if not self.future.done():
            self.future.set_result(score)


def group_of(jobs: Sequence[Job]) -> Group:
    """Return jobs of one key as a group."""
    return Group(jobs[0].query, tuple(Answer(j.name, "", j.text, "response") for j in jobs))


class Waiting:
    """The queue between requests and scoring: first come first served, but those of one query go together."""

    def __init__(self, gather: float) -> None:
        self._gather = gather
        self._groups: OrderedDict[Key, list[Job]] = OrderedDict()
        self._changed = threading.Condition()

    def put(self, jobs: Sequence[Job]) -> None:
        """Add jobs."""
        with self._changed:
            for job in jobs:
                self._groups.setdefault(job.key, []).append(job)
            self._changed.notify_all()

    def take(self, most: int) -> list[list[Job]]:
        """Wait for jobs and return them by query: as many groups as come to `most` answers, and none cut in two."""
        with self._changed:
            while not self._groups:
                self._changed.wait()
            until = time.monotonic() + self._gather
            while (left := until - time.monotonic()) > 0 and self._count() < most:
                self._changed.wait(left)
            return self._pop(most)

    def _pop(self, most: int) -> list[list[Job]]:
        found: list[list[Job]] = []
        count = 0
        while self._groups and count < most:
            _, jobs = self._groups.popitem(last=False)
            if live := [j for j in jobs if not j.over]:
                found.append(live)
                count += len(live)
        return found

    def _count(self) -> int:
        return sum(map(len, self._groups.values()))
