"""The middle of a run: items become groups, scores come back in any order, and each finished pair becomes a row."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from palate.data import Dataset
from palate.errors import ItemError
from palate.records import Answer, Group, Query, Score, Status, Verdict
from palate.rewards import Scorer, decide
from palate.views import Budget, Looker, NoContext, View, fit


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
        self.looker.ahead(self.view, ids)
        for score in map(_finite, self.scorer.score(self._groups(ids))):
            yield from self._drain()
            item_id, is_chosen = self._owner.pop(score.answer_id)
            pair = self._pairs[item_id]
            (pair.chosen if is_chosen else pair.rejected).append(score)
            pair.waiting -= 1
            if pair.waiting == 0:
                del self._pairs[item_id]
                verdict = decide(item_id, pair.chosen, pair.rejected)
                notes = verdict.notes + too_few(self.view, pair.queries)
                yield row_of(replace(verdict, shown=shown(pair.queries), notes=notes))
        yield from self._drain()
        for item_id in list(self._pairs):
            yield row_of(unasked(item_id, "error", "the reward model gave no number for an answer"))

    def _drain(self) -> Iterator[dict[str, Any]]:
        while self._unasked:
            yield row_of(self._unasked.popleft())

    def _groups(self, ids: Sequence[str]) -> Iterable[Group]:
        for item_id in ids:
            queries = queries_of(self.looker, self.view, item_id, self.scorer.budget)
            if isinstance(queries, Verdict):
                self._unasked.append(queries)
                continue
            answers = self.data.answers(item_id)
            self._pairs[item_id] = _Pair(queries, len(queries) * len(answers))
            for group in groups_of(answers, queries):
                self._owner.update({a.id: (item_id, a.role == "chosen") for a in group.answers})
                yield group


def queries_of(looker: Looker, view: View, item_id: str, budget: Budget | None) -> list[Query] | Verdict:
    """Return one query a draw, fitted to the model, or the verdict of an item that cannot be asked."""
    found: list[Query] = []
    for draw in range(view.draws):
        query = looker.query(item_id, view, draw)
        if isinstance(query, NoContext):
            if found:
                break
            return unasked(item_id, "no_context", query.reason)
        try:
            fitted = fit(query, budget.prompt, budget.count) if budget else query
        except ItemError as bad:
            return unasked(item_id, "error", str(bad))
        if fitted is None:
            return unasked(item_id, "overlong", "the question alone does not fit into the window")
        found.append(fitted)
    return found


def groups_of(answers: Sequence[Answer], queries: Sequence[Query]) -> list[Group]:
    """Return a group a draw; the answers' ids tell the draws apart."""
    return [
        Group(query, tuple(replace(a, id=f"{a.id}@{draw}") if draw else a for a in answers))
        for draw, query in enumerate(queries)
    ]


def too_few(view: View, queries: Sequence[Query]) -> tuple[str, ...]:
    """Return a note if the domain had fewer donors than draws were asked for."""
    if len(queries) == view.draws:
        return ()
    return (f"{len(queries)} draws instead of {view.draws}: the domain has no more donors",)


def shown(queries: Sequence[Query]) -> dict[str, Any]:
    """Return what was shown: ids of the entries best first, how many were dropped, and who lent them.

    With several draws all but `donors` and `draws` is of the first; `draws` has the entries of each.
    """
    contexts = [q.context for q in queries]
    first = contexts[0]
    found: dict[str, Any] = {
        "posts": [b.id for b in first.blocks] if first else [],
        "dropped": queries[0].dropped,
    }
    if first and first.lost:
        found["lost"] = first.lost
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


def _finite(score: Score) -> Score:
    if score.value is None or isfinite(score.value):
        return score
    return Score(score.answer_id, "error", None, f"the model gave {score.value}, which is not a reward")


def unasked(item_id: str, status: Status, note: str) -> Verdict:
    """Return the verdict of an item that was not put to the model."""
    return Verdict(item_id, status, None, shown={"posts": [], "dropped": 0}, notes=(note,))
