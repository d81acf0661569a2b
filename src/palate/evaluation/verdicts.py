"""The middle of a run: items become groups, scores come back in any order, and each finished pair becomes a row."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from palate.data import Dataset
from palate.records import Answer, Group, Query, Score, Status, Verdict
from palate.rewards import Scorer, decide
from palate.views import Looker, NoContext, View, fit


@dataclass(slots=True)
class _Pair:
    """A pair whose scores are still coming in."""

    queries: list[Query]
    waiting: int
    chosen: list[Score] = field(default_factory=list)
    rejected: list[Score] = field(default_factory=list)


@dataclass(slots=True)
class Verdicts:
    """Asks `scorer` about items of `data` under `view`."""

    data: Dataset
    looker: Looker
    scorer: Scorer
    view: View
    _unasked: deque[Verdict] = field(default_factory=deque)
    _pairs: dict[str, _Pair] = field(default_factory=dict)
    _owner: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def rows(self, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield one row an item, in the order in which the scorer finishes them."""
        for score in self.scorer.score(self._groups(ids)):
            yield from self._drain()
            item_id, is_chosen = self._owner.pop(score.answer_id)
            pair = self._pairs[item_id]
            (pair.chosen if is_chosen else pair.rejected).append(score)
            pair.waiting -= 1
            if pair.waiting == 0:
                del self._pairs[item_id]
                yield row_of(replace(decide(item_id, pair.chosen, pair.rejected), shown=shown(pair.queries)))
        yield from self._drain()

    def _drain(self) -> Iterator[dict[str, Any]]:
        while self._unasked:
            yield row_of(self._unasked.popleft())

    def _groups(self, ids: Sequence[str]) -> Iterable[Group]:
        for item_id in ids:
            queries = self._queries(item_id)
            if isinstance(queries, Verdict):
                self._unasked.append(queries)
                continue
            answers = self.data.answers(item_id)
            self._pairs[item_id] = _Pair(queries, len(queries) * len(answers))
            for draw, query in enumerate(queries):
                named = tuple(_in_draw(a, draw) for a in answers)
                self._owner.update({a.id: (item_id, a.role == "chosen") for a in named})
                yield Group(query, named)

    def _queries(self, item_id: str) -> list[Query] | Verdict:
        """Return one query a draw, fitted to the model, or the verdict of an item that cannot be asked."""
        budget = self.scorer.budget
        found: list[Query] = []
        for draw in range(self.view.draws):
            query = self.looker.query(item_id, self.view, draw)
            if isinstance(query, NoContext):
                if found:
                    break
                return _unasked(item_id, "no_context", query.reason)
            fitted = fit(query, budget.prompt, budget.count) if budget else query
            if fitted is None:
                return _unasked(item_id, "overlong", "the question alone does not fit into the window")
            found.append(fitted)
        return found


def shown(queries: Sequence[Query]) -> dict[str, Any]:
    """Return what was shown: ids of the entries best first, how many were dropped, and who lent them.

    With several draws `posts` are those of the first, `draws` those of each.
    """
    contexts = [q.context for q in queries]
    first = contexts[0]
    found: dict[str, Any] = {
        "posts": [b.id for b in first.blocks] if first else [],
        "dropped": sum(q.dropped for q in queries),
    }
    if first and first.donors:
        found["donors"] = [d for c in contexts if c for d in c.donors]
    if len(queries) > 1:
        found["draws"] = [[b.id for b in c.blocks] for c in contexts if c]
    return found


def row_of(verdict: Verdict) -> dict[str, Any]:
    """Return the line of `rows.jsonl`."""
    return {
        "id": verdict.item_id,
        "status": verdict.status,
        "outcome": verdict.outcome,
        "chosen_score": verdict.chosen_score,
        "rejected_score": verdict.rejected_score,
        "shown": dict(verdict.shown),
        "notes": list(verdict.notes),
    }


def _in_draw(answer: Answer, draw: int) -> Answer:
    return replace(answer, id=f"{answer.id}@{draw}") if draw else answer


def _unasked(item_id: str, status: Status, note: str) -> Verdict:
    return Verdict(item_id, status, None, shown={"posts": [], "dropped": 0}, notes=(note,))
