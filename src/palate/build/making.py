"""The three stages of a build over one folder: aspects from narratives, users matched as twins, pairs written.

    <out>/.build/   keys.jsonl    a line an item whose aspects were derived
                    matches.jsonl a line a candidate for twins
                    rows.jsonl    a line a pair: `ok`, `dropped` or `error`, with all tries
                    calls.jsonl   every exchange, whole; it is the cache

Each stage goes on where it stopped. The folder's name begins with a dot, so that no reader takes it for data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from palate.build import twins
from palate.build.keys import Keys, Wanted
from palate.build.models import Model
from palate.build.pairs import Pairs
from palate.build.rounds import Book, Row, settle
from palate.build.twins import Couple
from palate.build.units import Unit, Units
from palate.data import Dataset
from palate.records import Key
from palate.store import RowLog, counting, drive, unfinished
from palate.views import Looker

WORK = ".build"
KEYS, MATCHES, ROWS, CALLS = "keys.jsonl", "matches.jsonl", "rows.jsonl", "calls.jsonl"
Seen = Callable[[str, int, int, int], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a build is about; all but `ids`, `tries` and the models' servers decides its rows."""

    data: Dataset
    looker: Looker
    ids: tuple[str, ...]
    writer: Model
    judge: Model | None
    k: int
    tries: int
    twins: bool
    derive: bool


class Making:
    """The stages over the folder `work`, which need not exist to count what is to be done."""

    def __init__(self, setup: Setup, work: Path, *, mend: bool) -> None:
        self.setup = setup
        self.calls = RowLog(work / CALLS, mend=mend, forget=("prompt",))
        self.keys = RowLog(work / KEYS, mend=mend)
        self.matches = RowLog(work / MATCHES, mend=mend)
        self.pairs = RowLog(work / ROWS, mend=mend)
        clients = {m.role: m.client for m in (setup.writer, setup.judge) if m is not None}
        self.book = Book(self.calls, clients)
        self.wanted = Keys(setup.data, self.keys.rows, setup.derive)
        self._units = Units(setup.data, setup.looker, setup.k, self.key_of)

    def run(self, seen: Seen | None) -> None:
        """Do all that is missing.

        Raises:
            ModelError: a server refuses every call.
            Stopped: a limit of calls or tokens is reached.
        """
        setup = self.setup
        with self.calls:
            names = self.wanted.to_derive(setup.ids)
            todo = unfinished(self.keys, names)
            self._stage("keys", self.keys, names, todo, self._derived, seen)
            if setup.twins:
                names = [c.name for c in self.couples]
                self._stage("matching", self.matches, names, unfinished(self.matches, names), self._compared, seen)
            pairs = self.pairs_maker()
            self._stage("pairs", self.pairs, self.names, self.unmade, pairs.row, seen)

    def pairs_maker(self) -> Pairs:
        """Return the maker of pairs, which knows the answers of those that have passed."""
        setup = self.setup
        pairs = Pairs(self.unit, self.book, setup.writer, setup.judge, setup.tries)
        for name in self.names:
            row = self.pairs.rows.get(name)
            if row is not None and row["status"] == "ok":
                pairs.passed.add(name, row["answers"].values())
        return pairs

    @cached_property
    def usable(self) -> dict[str, Wanted]:
        """What is known of each item's key, and why it is missing."""
        return {item_id: self.wanted.of(item_id) for item_id in self.setup.ids}

    def key_of(self, item_id: str) -> Key:
        """Return the usable key of an item that has one."""
        key = self.usable[item_id].key
        assert key is not None, f"{item_id} has no usable key"
        return key

    @cached_property
    def couples(self) -> list[Couple]:
        """The candidates for twins among items with a usable key."""
        return twins.candidates(self.setup.data, [i for i, w in self.usable.items() if w.key is not None])

    @property
    def matched(self) -> list[Couple]:
        """The couples that are opposed."""
        return twins.matched(self.couples, self.matches.rows)

    @property
    def names(self) -> list[str]:
        """The names of the pairs, as far as they are known by now."""
        if self.setup.twins:
            return [c.name for c in self.matched]
        return [i for i, w in self.usable.items() if w.key is not None]

    @property
    def unmade(self) -> list[str]:
        """The pairs that are missing, have an `error`, or were dropped with fewer tries than are allowed now."""
        rows = self.pairs.rows
        short = {n for n, r in rows.items() if r["status"] == "dropped" and len(r["attempts"]) < self.setup.tries}
        again = set(unfinished(self.pairs, self.names)) | short
        return [n for n in self.names if n in again]

    def unit(self, name: str) -> Unit:
        """Return what the pair `name` is made of."""
        return self._units.twins(self._couple_by_name[name]) if self.setup.twins else self._units.single(name)

    @cached_property
    def _couple_by_name(self) -> Mapping[str, Couple]:
        return {c.name: c for c in self.couples}

    def _derived(self, item_id: str) -> Row:
        return self.wanted.derive(item_id, self.setup.writer, self.book)

    def _compared(self, name: str) -> Row:
        couple = self._couple_by_name[name]
        return twins.compare(self.setup.data, couple, self.key_of, self.setup.writer, self.book)

    def _stage(
        self,
        what: str,
        log: RowLog,
        names: Sequence[str],
        todo: Sequence[str],
        work: Callable[[str], Row],
        seen: Seen | None,
    ) -> None:
        if not todo:
            return
        told = partial(seen, f"build--{what}") if seen else None
        tell = counting(told, len(names), len(todo))
        drive(log, todo, lambda open_: settle(open_, work, self.book), tell)
