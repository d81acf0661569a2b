"""What runs on a worker: it opens its model or encoder once, from the string, and works on batches.

Nothing but `Reply` goes back. An error that is the user's to mend stops the run with its own message. A batch that
cannot be done comes back with the reason, so that its answers get the status `error`.
"""

import os
import pickle
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from palate.errors import ModelError, PalateError

TRIES = 3


class Work(Protocol):
    """A kind of work, sent to the workers."""

    def open(self) -> None:
        """Load what is needed.

        Raises:
            PalateError: it cannot be used here.
        """
        ...

    def do(self, requests: Sequence[Any]) -> list[Any]:
        """Return the results of a batch, in any form that pickles."""
        ...

    def environment(self) -> Mapping[str, Any]:
        """Return what should be known of where it was done."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a batch: results, or why there are none; `fatal` ends the run."""

    results: list[Any] = field(default_factory=list)
    note: str | None = None
    fatal: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)


class Tally:
    """Counts how often each batch was begun, in a process of its own, since a worker's death takes its memory along.

    Args:
        workers: how many work at once.
    """

    def __init__(self, workers: int) -> None:
        self._begun: Counter[int] = Counter()
        self._done = 0
        self._most = TRIES * (workers + 1)

    def begin(self, batch: int) -> tuple[bool, bool]:
        """Return whether `batch` has killed its worker too often, and whether no worker has lived to do any."""
        self._begun[batch] += 1
        return self._begun[batch] > TRIES, not self._done and self._begun.total() > self._most

    def finish(self) -> None:
        """Count a batch that was done."""
        self._done += 1


class Worker:
    """One worker of a Ray Data pipeline. Rows `{"batch", "requests"}` become rows `{"batch", "reply"}`, pickled inside.

    Args:
        work: what to do.
        version: the driver's version of Palate, which must be the worker's too.
        tally: the handle of a `Tally`.
    """

    def __init__(self, work: Work, version: str, tally: Any) -> None:
        self._work = work
        self._version = version
        self._tally = tally
        self._open = False

    def __call__(self, rows: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Work on some batches, one a row."""
        batches = [int(batch) for batch in rows["batch"]]
        replies = [self._reply(b, pickle.loads(r)) for b, r in zip(batches, rows["requests"], strict=True)]
        return {"batch": batches, "reply": [pickle.dumps(reply) for reply in replies]}

    def _reply(self, batch: int, requests: Sequence[Any]) -> Reply:
        import ray

        deadly, hopeless = ray.get(self._tally.begin.remote(batch))
        if hopeless:
            return self._fatal("workers were killed before any of them finished a batch (out of memory?)")
        if deadly:
            return Reply(note=f"its worker was killed {TRIES} times")
        try:
            self._ready()
            reply = Reply(self._work.do([pickle.loads(request) for request in requests]))
        except PalateError as bad:
            return self._fatal(str(bad))
        except Exception as bad:  # noqa: BLE001  (whatever fails on a worker has to reach the rows with its cause)
            if not self._open:
                return self._fatal(f"cannot be loaded on a worker: {_said(bad)}")
            reply = Reply(note=_said(bad))
        self._tally.finish.remote()
        return Reply(reply.results, reply.note, None, dict(self._work.environment()))

    def _ready(self) -> None:
        if self._open:
            return
        from importlib.metadata import version

        if version("palate") != self._version:
            raise ModelError(f"the worker has palate {version('palate')}, and {self._version} was started.")
        self._work.open()
        self._open = True

    def _fatal(self, message: str) -> Reply:
        return Reply(fatal=f"{message}\n(So says the worker on {socket.gethostname()}, process {os.getpid()}.)")


def _said(bad: Exception) -> str:
    first = str(bad).strip().partition("\n")[0]
    return f"{type(bad).__name__}: {first}" if first else type(bad).__name__
