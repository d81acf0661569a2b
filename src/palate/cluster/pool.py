"""A stream of requests through actor pools of Ray Data: one pipeline a window, results as they come.

A pipeline takes its input as a whole, so requests go through it in windows: what waits on the driver and in the
object store stays bounded, however long the stream is. Each window starts its workers anew, so it must not be small.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from math import ceil
from typing import Any

from palate.cluster.join import Cluster
from palate.cluster.worker import Reply, Tally, Work, Worker
from palate.errors import ClusterError, ModelError

LARGEST = 256 * 2**20
LOST = Reply(note="its batch was lost in the cluster")
Request = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Pool:
    """The workers of a cluster at one kind of work; `what` names it in errors."""

    cluster: Cluster
    work: Work
    what: str

    def run(self, requests: Iterable[Request]) -> Iterator[tuple[list[Any], Reply]]:
        """Yield the names of a batch's requests and its reply, in the order in which batches are done.

        A worker that dies is started again by Ray, and its batch is done again.

        Args:
            requests: pairs of a name, which stays here, and what is sent. Drawn a window ahead of the work.

        Raises:
            ModelError: a worker found that the work cannot be done at all.
            ClusterError: the workers cannot run.
        """
        stream = iter(requests)
        while window := list(_window(stream, self.cluster.place.window)):
            yield from self._pipeline(window)

    def _pipeline(self, window: list[tuple[Any, bytes]]) -> Iterator[tuple[list[Any], Reply]]:
        crew, most = self.cluster.crew, self.cluster.place.batch
        # At least a few batches a worker, so that none of them waits long for the last.
        size = min(most, max(1, ceil(len(window) / (4 * crew.workers))))
        batches = [window[start : start + size] for start in range(0, len(window), size)]
        names = {number: [name for name, _ in batch] for number, batch in enumerate(batches)}
        rows = [{"batch": n, "requests": pickle.dumps([sent for _, sent in b])} for n, b in enumerate(batches)]
        window.clear()
        for number, reply in self._replies(rows):
            if reply.fatal is not None:
                raise ModelError(f"{self.what}: {reply.fatal}")
            if number in names:
                yield names.pop(number), reply
        for lost in names.values():
            yield lost, LOST

    def _replies(self, rows: list[dict[str, Any]]) -> Iterator[tuple[int, Reply]]:
        import ray

        crew = self.cluster.crew
        tally = ray.remote(Tally).options(num_cpus=0).remote(crew.workers)
        with _settings():
            done = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                Worker,
                fn_constructor_args=(self.work, version("palate"), tally),
                batch_size=None,
                batch_format="numpy",
                compute=ray.data.ActorPoolStrategy(size=min(crew.workers, len(rows))),
                num_cpus=crew.cpus,
                num_gpus=crew.gpus or None,
            )
            rows.clear()
            try:
                for row in done.iter_rows():
                    yield row["batch"], pickle.loads(row["reply"])
            except ray.exceptions.RayError as bad:
                raise ClusterError(f"{self.what}: the workers cannot run: {_last_line(bad)}") from None
            finally:
                ray.kill(tally)


def _window(stream: Iterator[Request], count: int) -> Iterator[tuple[Any, bytes]]:
    """Take up to `count` requests, fewer if they are large."""
    taken = 0
    for name, sent in islice(stream, count):
        raw = pickle.dumps(sent)
        yield name, raw
        taken += len(raw)
        if taken > LARGEST:
            return


@contextmanager
def _settings() -> Iterator[None]:
    """Set what Ray Data's pipelines take from the process: silence, and no end of a run for one failed block.

    Workers that die are started again and their batches repeated without end, as Ray Data has it; the `Tally` ends it.
    """
    from ray.data import DataContext

    context = DataContext.get_current()
    wanted = {"enable_progress_bars": False, "print_on_execution_start": False, "max_errored_blocks": -1}
    kept = {name: getattr(context, name) for name in wanted if hasattr(context, name)}
    for name in kept:
        setattr(context, name, wanted[name])
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(context, name, value)


def _last_line(bad: Exception) -> str:
    lines: Sequence[str] = [line.strip() for line in str(bad).splitlines() if line.strip()]
    return lines[-1] if lines else type(bad).__name__
