"""Works that need several replies each: asks go out as connections get free, replies are kept, whole works come back.

The log is the cache. A reply is never asked for again, unless it is a failure of the server's, or its work asks for
another one in place of a reply that cannot be read. A reply that was cut gets one more try with more room.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from palate.llm.client import Ask, Client
from palate.llm.served import call_row, cut_for_good, stored_call, was_cut, with_room
from palate.records import Call
from palate.store import RowLog


def _any(call: Call) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Work:
    """What one result needs; stored replies that it does not keep are asked for anew."""

    name: str
    asks: tuple[Ask, ...]
    keeps: Callable[[Call], bool] = _any


@dataclass(slots=True)
class _Open:
    waiting: int
    calls: dict[str, Call] = field(default_factory=dict)


def gather(client: Client, works: Iterable[Work], log: RowLog) -> Iterator[tuple[str, Mapping[str, Call]]]:
    """Yield the name of each work and its replies by the keys of its asks, in the order in which they are whole.

    Args:
        client: sends what is asked.
        works: their names are unique, and so are the keys of all asks.
        log: where exchanges are kept.

    Raises:
        ModelError: the server refuses every call.
        Stopped: a limit of calls or tokens is reached; what came back before is kept.
    """
    stream = _Stream(works, log)
    with log:
        for call in client.ask(stream):
            stream.take(call)
            yield from stream.whole()
        yield from stream.whole()


def known_or_ask(ask: Ask, log: RowLog, keeps: Callable[[Call], bool]) -> Call | Ask:
    """Return the stored reply to an ask, or what has to be asked."""
    known = stored_call(log.rows.get(ask.key))
    if known is None or known.status == "error" or not keeps(known):
        return ask
    return with_room(ask) if was_cut(known) else known


class _Stream:
    """Gives the client its asks: second tries first, then the next work's."""

    def __init__(self, works: Iterable[Work], log: RowLog) -> None:
        self._works = iter(works)
        self._log = log
        self._open: dict[str, _Open] = {}
        self._asks: dict[str, tuple[Ask, str]] = {}
        self._ready: deque[Ask] = deque()
        self._whole: deque[tuple[str, Mapping[str, Call]]] = deque()

    def __iter__(self) -> "_Stream":
        return self

    def __next__(self) -> Ask:
        while not self._ready:
            self._begin(next(self._works))
        return self._ready.popleft()

    def take(self, call: Call) -> None:
        """Keep a reply; a cut one is asked for once more."""
        ask, name = self._asks.pop(call.key)
        call = cut_for_good(ask, call)
        self._log.append(call_row(ask, call))
        if was_cut(call):
            self._send(with_room(ask), name, first=True)
            return
        self._give(name, call)

    def whole(self) -> Iterator[tuple[str, Mapping[str, Call]]]:
        """Yield the works that are whole."""
        while self._whole:
            yield self._whole.popleft()

    def _begin(self, work: Work) -> None:
        self._open[work.name] = _Open(len(work.asks))
        if not work.asks:
            self._end(work.name)
        for ask in work.asks:
            found = known_or_ask(ask, self._log, work.keeps)
            if isinstance(found, Call):
                self._give(work.name, found)
            else:
                self._send(found, work.name)

    def _send(self, ask: Ask, name: str, *, first: bool = False) -> None:
        assert ask.key not in self._asks, f"two asks are named {ask.key}"
        self._asks[ask.key] = ask, name
        if first:
            self._ready.appendleft(ask)
        else:
            self._ready.append(ask)

    def _give(self, name: str, call: Call) -> None:
        work = self._open[name]
        work.calls[call.key] = call
        work.waiting -= 1
        if work.waiting == 0:
            self._end(name)

    def _end(self, name: str) -> None:
        self._whole.append((name, self._open.pop(name).calls))
