"""The middle of a run whose model is asked: pairs become questions, replies are kept, each settled pair is a row.

`calls.jsonl` is the cache. A reply is never asked for again, unless it is a failure of the server's, or its item has a
row without a verdict and is to be done again (`--retry`). A reply that was cut gets one more try with more room.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from palate.data import Dataset
from palate.evaluation.measure import grade_digest
from palate.evaluation.verdicts import groups_of, queries_of, row_of, shown, too_few
from palate.llm.client import Ask
from palate.llm.served import call_row, cut_for_good, stored_call, was_cut, with_room
from palate.records import Call, Group, Query, Verdict
from palate.rewards import AskedModel, Settled
from palate.store import RowLog
from palate.views import Looker, View

FORGET = ("prompt",)


@dataclass(slots=True)
class _Pair:
    """A pair whose replies are still coming in."""

    groups: list[Group]
    queries: list[Query]
    waiting: int
    calls: dict[str, Call] = field(default_factory=dict)


@dataclass(slots=True)
class AskedVerdicts:
    """Asks `model` about items of `data` under `view`; every exchange goes to `log`. `done` are the rows so far."""

    data: Dataset
    looker: Looker
    model: AskedModel
    view: View
    log: RowLog
    done: Mapping[str, Mapping[str, Any]]
    _pairs: dict[str, _Pair] = field(default_factory=dict)
    _rows: deque[dict[str, Any]] = field(default_factory=deque)
    _again: deque[Ask] = field(default_factory=deque)
    _asks: dict[str, Ask] = field(default_factory=dict)

    def rows(self, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield one row an item, in the order in which they are settled."""
        self.looker.ahead(self.view, ids)
        with self.log:
            for call in self.model.client.ask(_Stream(self, ids)):
                self._take(call)
                yield from self._settled()
            yield from self._settled()

    def _settled(self) -> Iterator[dict[str, Any]]:
        while self._rows:
            yield self._rows.popleft()

    def _take(self, call: Call) -> None:
        ask = self._asks.pop(call.key)
        call = cut_for_good(ask, call)
        self.log.append(call_row(ask, call))
        if was_cut(call):
            more = with_room(ask)
            self._asks[more.key] = more
            self._again.append(more)
            return
        self._give(ask.item_id, call)

    def _give(self, item_id: str, call: Call) -> None:
        pair = self._pairs[item_id]
        pair.calls[call.key] = call
        pair.waiting -= 1
        if pair.waiting == 0:
            del self._pairs[item_id]
            self._rows.append(self._row(pair))

    def _row(self, pair: _Pair) -> dict[str, Any]:
        settled = self.model.settle(pair.groups, pair.calls)
        return settled_row(self.model, settled, pair.queries, self.view, pair.calls)

    def next_item(self, item_id: str) -> list[Ask]:
        """Return what has to be asked about an item; what the log already holds is taken from there."""
        queries = queries_of(self.looker, self.view, item_id, None)
        if isinstance(queries, Verdict):
            self._rows.append(row_of(queries))
            return []
        groups = groups_of(self.data.answers(item_id), queries)
        asks = [ask for group in groups for ask in self.model.asks(group)]
        self._pairs[item_id] = _Pair(groups, queries, len(asks))
        new = []
        for found in (known_or_ask(self.model, ask, self.log, self.done.get(item_id)) for ask in asks):
            if isinstance(found, Call):
                self._give(item_id, found)
            else:
                self._asks[found.key] = found
                new.append(found)
        return new


class _Stream:
    """Gives the client its asks: second tries first, then the next item's."""

    def __init__(self, verdicts: AskedVerdicts, ids: Sequence[str]) -> None:
        self._verdicts = verdicts
        self._ids = iter(ids)
        self._ready: deque[Ask] = deque()

    def __iter__(self) -> "_Stream":
        return self

    def __next__(self) -> Ask:
        if self._verdicts._again:
            return self._verdicts._again.popleft()
        while not self._ready:
            self._ready.extend(self._verdicts.next_item(next(self._ids)))
        return self._ready.popleft()


def settled_row(
    model: AskedModel, settled: Settled, queries: Sequence[Query], view: View, calls: Mapping[str, Call]
) -> dict[str, Any]:
    """Return the line of `rows.jsonl`, with how it was graded and the names of the exchanges that it rests on.

    A row whose replies had a second try already stands for two, so that resuming does not give it a third.
    """
    notes = settled.verdict.notes + too_few(view, queries)
    row = row_of(replace(settled.verdict, shown=shown(queries), notes=notes))
    tries = max((c.attempt for c in calls.values()), default=1)
    more: dict[str, Any] = {"judge": dict(settled.judge)} if settled.judge else {}
    more |= {"tries": tries} if tries > 1 else {}
    return row | more | {"grade": grade_digest(model.grade), "calls": sorted(calls)}


def known_or_ask(model: AskedModel, ask: Ask, log: RowLog, row: Mapping[str, Any] | None) -> Call | Ask:
    """Return the stored reply to an ask, or what has to be asked. `row` is what the ask's item has come to so far."""
    known = stored_call(log.rows.get(ask.key))
    if known is None or known.status == "error":
        return ask
    if row is not None and row["status"] != "error" and not model.readable(known):
        return ask
    return with_room(ask) if was_cut(known) else known


def count_asks(
    data: Dataset,
    looker: Looker,
    model: object,
    view: View,
    log: RowLog,
    done: Mapping[str, Mapping[str, Any]],
    ids: Sequence[str],
) -> tuple[int, int]:
    """Return how many questions about `ids` are still to be asked, and about how many tokens they have."""
    calls = characters = 0
    if not isinstance(model, AskedModel):
        return 0, 0
    for item_id in ids:
        queries = queries_of(looker, view, item_id, None)
        groups = [] if isinstance(queries, Verdict) else groups_of(data.answers(item_id), queries)
        for ask in (a for group in groups for a in model.asks(group)):
            if isinstance(known_or_ask(model, ask, log, done.get(item_id)), Ask):
                calls += 1
                characters += sum(len(m.content) for m in ask.messages)
    return calls, characters // 4
