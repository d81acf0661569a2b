"""The desk: takes answers in if there is room, has them scored within their time, and gives one result for each."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from palate.records import Query, Score
from palate.rewards.wire import ScoreResult
from palate.serve.bodies import Refusal
from palate.serve.ends import leftovers, strip_ends
from palate.serve.jobs import Job, Waiting
from palate.serve.meters import Meters
from palate.serve.scoring import Scoring
from palate.serve.served import Served
from palate.serve.settings import Settings

T = TypeVar("T")
LOOK = 0.05
RETRY_AFTER = {"Retry-After": "1"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer as it was sent: its id, its query with all context, and its text."""

    id: str
    query: Query
    text: str


class Desk:
    """Between requests, which are asynchronous, and the threads that use the model."""

    def __init__(self, served: Served, settings: Settings, meters: Meters) -> None:
        self.served, self.settings, self.meters = served, settings, meters
        self.pending = 0
        self.open_requests = 0
        self.draining = False
        self._names = map(str, count())
        self._waiting = Waiting(settings.gather)
        self._scoring = Scoring(served, self._waiting, meters, settings.seconds)
        self._counting = Lane()
        meters.watch(lambda: self.pending, lambda: self._scoring.hung, lambda: self.trouble is None)

    @property
    def trouble(self) -> str | None:
        """Why this server should not be sent requests now, or None."""
        return "draining: it is about to stop" if self.draining else self._scoring.trouble

    async def watch(self) -> None:
        """Look after the scoring thread for ever."""
        self._scoring.start()
        while True:
            await asyncio.sleep(LOOK)
            self._scoring.look()

    async def score(self, entries: Sequence[Entry]) -> list[ScoreResult]:
        """Return a result for each entry, in order.

        Raises:
            Refusal: no room (503), or more than there could ever be room for (413).
        """
        limit, size = self.settings.queue, len(entries)
        if size > limit:
            raise Refusal(413, f"{size} items are more than the queue holds ({limit})")
        if self.pending + size > limit:
            raise Refusal(503, f"busy: {self.pending} of {limit} places are taken", headers=RETRY_AFTER)
        self.pending += size
        began = time.monotonic()
        try:
            return await self._results(entries, began + self.settings.seconds)
        finally:
            self.pending -= size
            self.meters.took(time.monotonic() - began)

    async def count(self, prompts: Sequence[Any]) -> list[int] | None:
        """Return the tokens of prompts, or None for a model without a window.

        Raises:
            Refusal: the model cannot take one of them (422), or counting took too long (503).
        """
        budget = self.served.budget
        if budget is None:
            return None
        try:
            async with asyncio.timeout(self.settings.seconds):
                return await self._counting.run(lambda: [budget.count(p) for p in prompts])
        except TimeoutError:
            raise Refusal(503, "counting timed out", headers=RETRY_AFTER) from None

    async def _results(self, entries: Sequence[Entry], until: float) -> list[ScoreResult]:
        stripped = [strip_ends(e.text) for e in entries]
        queries = await self._fitted([e.query for e in entries], until)
        loop = asyncio.get_running_loop()
        jobs = {
            k: Job(next(self._names), query, text, loop, loop.create_future())
            for k, (query, (text, _)) in enumerate(zip(queries, stripped, strict=True))
            if isinstance(query, Query)
        }
        self._waiting.put(list(jobs.values()))
        if jobs:
            await asyncio.wait([j.future for j in jobs.values()], timeout=max(0.0, until - time.monotonic()))
        found = []
        for k, (entry, query, (text, ends)) in enumerate(zip(entries, queries, stripped, strict=True)):
            late = isinstance(query, Query) and not jobs[k].future.done()
            score = query if isinstance(query, Score) else self._late() if late else jobs[k].future.result()
            if k in jobs:
                jobs[k].over = True
            dropped = query.dropped if isinstance(query, Query) else 0
            self.meters.item(score.status, late=late, dropped=dropped, stripped=ends, left=leftovers(text))
            found.append(_result(entry.id, score, dropped, ends))
        return found

    async def _fitted(self, queries: Sequence[Query], until: float) -> Sequence[Query | Score]:
        """Return each query fitted to the model, or why that cannot be; equal ones are fitted once."""
        kinds = {(q.messages, q.turns): q for q in queries}

        def fit_all() -> dict[Any, Query | Score]:
            return {key: self.served.fitted(q) for key, q in kinds.items()}

        simple = self.served.budget is None or all(q.context is None for q in kinds.values())
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                found = fit_all() if simple else await self._counting.run(fit_all)
        except TimeoutError:
            return [self._late()] * len(queries)
        except Exception as bad:  # noqa: BLE001 - a tokenizer may raise anything; it becomes the items' error
            why = f"{type(bad).__name__}: {str(bad).partition(chr(10))[0][:300]}"
            return [Score("", "error", None, why)] * len(queries)
        return [found[q.messages, q.turns] for q in queries]

    def _late(self) -> Score:
        trouble = self._scoring.trouble
        more = f" ({trouble})" if trouble else ""
        return Score("", "error", None, f"timed out: no score within {self.settings.seconds:g} s{more}")


def _result(name: str, score: Score, dropped: int, stripped: int) -> ScoreResult:
    note = None if score.status == "ok" else score.note or "the model gave no reason"
    return ScoreResult(id=name, status=score.status, score=score.value, error=note, dropped=dropped, stripped=stripped)


class Lane:
    """A thread that does one thing after the other. It does not hold up the end of the process."""

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._go, daemon=True, name="palate-count").start()

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def done(result: T | None, bad: Exception | None) -> None:
            if not future.done():
                future.set_exception(bad) if bad else future.set_result(result)  # type: ignore[arg-type]

        def step() -> None:
            if future.cancelled():
                return
            try:
                found, why = work(), None
            except Exception as bad:  # noqa: BLE001 - handed over to whoever waits
                found, why = None, bad
            if not loop.is_closed():
                loop.call_soon_threadsafe(done, found, why)

        self._works.put(step)
        return await future

    def _go(self) -> None:
        while True:
            self._works.get()()
