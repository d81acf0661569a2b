"""Asking in rounds. Work is a function from a name to a row that looks its replies up; what is missing is asked.

Since a row depends on nothing but stored replies, work that was killed goes on by doing the same again: replies that
are there are taken from the log, whoever asked for them and when.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from palate.llm.client import Ask, Client
from palate.llm.replies import Unparsed, without_thoughts
from palate.llm.served import call_row, stored_call, with_room
from palate.records import Call
from palate.store import RowLog

CHUNK = 256
Row = dict[str, Any]
Work = Callable[[str], Row]


class Missing(Exception):
    """Replies that have to come in before a row can be made: who is asked, and what."""

    def __init__(self, who: str, asks: Sequence[Ask]) -> None:
        super().__init__(who)
        self.who = who
        self.asks = list(asks)


class NoReply(Exception):
    """A server that failed; the row has the status `error` and is made when the work is started again."""


class Book:
    """The exchanges of one build by their keys, and whom to ask for those that are missing.

    Args:
        log: `calls.jsonl`; open for writing while `settle` runs.
        clients: who can be asked, by role.
    """

    def __init__(self, log: RowLog, clients: Mapping[str, Client]) -> None:
        self.log = log
        self._clients = clients
        self._asked: set[str] = set()

    def take(self, who: str, asks: Sequence[Ask], *, more_room: bool = True) -> list[Call]:
        """Return the replies to `asks`, in order.

        Args:
            who: the role that is asked.
            asks: the questions.
            more_room: whether a reply that was cut is asked for once more with more room.

        Raises:
            Missing: some have to be asked first.
            NoReply: the server failed on one of them in this session.
        """
        found: list[Call] = []
        missing: list[Ask] = []
        for ask in asks:
            known = stored_call(self.log.rows.get(ask.key))
            if known is not None and known.status == "error" and ask.key in self._asked:
                raise NoReply(known.note or "the server failed")
            if known is None or known.status == "error":
                missing.append(ask)
            elif more_room and _cut(known):
                missing.append(with_room(ask))
            else:
                found.append(known)
        if missing:
            raise Missing(who, missing)
        return found

    def ask(self, needs: Mapping[str, Sequence[Ask]]) -> None:
        """Ask everybody for what is missing, and keep each exchange as it comes back."""
        for who, asks in needs.items():
            waiting = {ask.key: ask for ask in asks}
            for call in self._clients[who].ask(list(waiting.values())):
                self.log.append(call_row(waiting[call.key], call))
                self._asked.add(call.key)


def settle(names: Sequence[str], work: Work, book: Book) -> Iterator[Row]:
    """Yield one row a name, some at a time, asking until all their replies are in.

    Raises:
        ModelError: a server refuses every call.
        Stopped: a limit of calls or tokens is reached.
    """
    left = iter(names)
    while open_ := list(islice(left, CHUNK)):
        while open_:
            needs: dict[str, list[Ask]] = {}
            waiting: list[str] = []
            for name in open_:
                row = _try(name, work, needs)
                if row is None:
                    waiting.append(name)
                else:
                    yield row
            open_ = waiting
            book.ask(needs)


def _try(name: str, work: Work, needs: dict[str, list[Ask]]) -> Row | None:
    try:
        return work(name)
    except Missing as missing:
        needs.setdefault(missing.who, []).extend(missing.asks)
        return None
    except NoReply as bad:
        return {"id": name, "status": "error", "reason": str(bad)}


def _cut(call: Call) -> bool:
    """Whether a first try was cut: at the limit, or inside a thought."""
    open_thought = call.status == "ok" and isinstance(without_thoughts(call.text or ""), Unparsed)
    return call.attempt == 1 and (call.status == "truncated" or open_thought)
