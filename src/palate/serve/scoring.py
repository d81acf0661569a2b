"""The thread that scores. A call that hangs is found out; where it can be, its place is taken by another thread."""

import threading
import time
from dataclasses import dataclass, field
from math import isfinite

from palate.records import Score
from palate.rewards import Scorer
from palate.serve.jobs import Job, Waiting, group_of
from palate.serve.meters import Meters
from palate.serve.served import Served

MOST = 64
MOST_HUNG = 4
Groups = list[list[Job]]


@dataclass(eq=False)
class Hand:
    """One scoring thread: what it works on and since when it gave no score; `left` once another took its place."""

    thread: threading.Thread | None = None
    jobs: list[Job] = field(default_factory=list)
    first: list[Job] = field(default_factory=list)
    since: float | None = None
    left: bool = False

    def waits(self, now: float) -> float:
        """Return for how many seconds a call has given no score."""
        since = self.since
        return now - since if since is not None else 0.0


class Scoring:
    """Scores what waits, one batch after the other, in one thread.

    A call that gives no score for half of an item's time is taken to hang. A scorer without weights is then opened a
    second time in a new thread, which scores what was still open of the batch, each answer by itself, except the first:
    that is most likely the cause and gets its error when its time is over. Weights are not loaded twice: with them the
    server is `stuck`, and items end as errors when their time is over, until the call comes back.
    """

    def __init__(self, served: Served, waiting: Waiting, meters: Meters, seconds: float) -> None:
        self._served, self._waiting, self._meters = served, waiting, meters
        self._seconds = seconds
        self._hand = Hand()
        self._hung: list[Hand] = []
        self._broken: str | None = None

    def start(self) -> None:
        """Start to score."""
        self._begin(self._hand, self._served.scorer)

    @property
    def trouble(self) -> str | None:
        """Why nothing is scored at the moment, or None."""
        if self._broken:
            return self._broken
        waited = self._hand.waits(time.monotonic())
        return f"stuck: a call of the model has given no score for {waited:.0f} s" if waited > self._seconds else None

    @property
    def hung(self) -> int:
        """How many threads hang whose place was taken."""
        self._hung = [h for h in self._hung if h.thread and h.thread.is_alive()]
        return len(self._hung)

    def look(self) -> None:
        """Take the place of a hung thread, if that can be done. To be called again and again."""
        hand = self._hand
        if hand.waits(time.monotonic()) <= self._seconds / 2 or not self._served.again or self.hung >= MOST_HUNG:
            return
        hand.left = True
        self._hung.append(hand)
        open_ = [j for j in hand.jobs if not j.over][1:]
        self._hand = Hand(first=[*open_, *hand.first])
        hand.first = []
        self._begin(self._hand, None)

    def _begin(self, hand: Hand, scorer: Scorer | None) -> None:
        hand.thread = threading.Thread(target=self._work, args=(hand, scorer), daemon=True, name="palate-score")
        hand.thread.start()

    def _work(self, hand: Hand, scorer: Scorer | None) -> None:
        try:
            scorer = scorer or self._served.reopen()
        except Exception as bad:  # noqa: BLE001 - whatever it is, those who wait are told
            self._broken = f"broken: the model could not be opened again: {_cause(bad)}"
            return
        while not hand.left:
            if hand.first:
                self._batch(hand, scorer, [[hand.first.pop(0)]])
            else:
                self._batch(hand, scorer, self._waiting.take(MOST))

    def _batch(self, hand: Hand, scorer: Scorer, groups: Groups) -> None:
        jobs = [job for group in groups for job in group]
        if not jobs:
            return
        hand.jobs = jobs
        self._meters.batch(len(groups), len(jobs))
        bad = self._call(hand, scorer, groups)
        rest = [j for j in jobs if not j.over]
        for job in rest:
            # What one answer did to the call must not be laid to the others: each is tried by itself.
            if hand.left:
                return
            why = bad if len(jobs) == 1 else self._call(hand, scorer, [[job]])
            job.settle(Score(job.name, "error", None, why or "the model gave no score for this answer"))

    def _call(self, hand: Hand, scorer: Scorer, groups: Groups) -> str | None:
        """Score groups and settle their jobs; return why it ended early, or None."""
        jobs = {job.name: job for group in groups for job in group}
        hand.since = time.monotonic()
        try:
            for score in scorer.score(map(group_of, groups)):
                hand.since = time.monotonic()
                if (job := jobs.get(score.answer_id)) is not None:
                    job.settle(checked(score))
        except Exception as bad:  # noqa: BLE001 - a stranger's model may raise anything; it becomes the items' error
            return _cause(bad)
        finally:
            hand.since = None
        return None


def checked(score: Score) -> Score:
    """Return a score whose number is finite, else an error."""
    if score.value is None:
        return score if score.note else Score(score.answer_id, score.status, None, "the model gave no reason")
    value = float(score.value)
    if not isfinite(value):
        return Score(score.answer_id, "error", None, f"the model gave {value}, which is not a reward")
    return Score(score.answer_id, "ok", value)


def _cause(bad: BaseException) -> str:
    return f"{type(bad).__name__}: {str(bad).partition(chr(10))[0][:300]}"
