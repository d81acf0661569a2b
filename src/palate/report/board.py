"""The figures of the page: who stands where, what reading the user adds, and where accuracy comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palate.contrasts import Kind, contrast
from palate.metrics import Difference, Result, by_group
from palate.report.load import Board, LoadedRun

LADDER = ("question", "history?user=none", "swapped", "history", "oracle")
LEVEL = 0.05
LENGTHS = ((-0.15, "much shorter"), (-0.03, "shorter"), (0.03, "alike"), (0.15, "longer"))
LONGEST = "much longer"


@dataclass(frozen=True, slots=True)
class Line:
    """One model in the table. `rank` is shared by models that cannot be told apart; None for those not ranked."""

    model: str
    title: str
    probe: bool
    rank: int | None
    head: LoadedRun | None
    runs: Mapping[str, LoadedRun]
    lift: Difference | None
    swap_drop: Difference | None
    marks: tuple[str, ...]


def headline_view(board: Board) -> str:
    """Return the view that the ranking is about: `history` if there is one, else the most frequent."""
    views = [r.view for r in board.runs]
    return "history" if "history" in views else max(dict.fromkeys(views), key=views.count)


def lines(board: Board) -> list[Line]:
    """Return the table's lines: ranked models best first, then the others, then probes."""
    view = headline_view(board)
    models = dict.fromkeys(r.model for r in board.runs)
    runs = {m: {r.view: r for r in board.runs if r.model == m} for m in models}
    heads = {m: found.get(view) for m, found in runs.items()}
    entrants = [r for r in heads.values() if r is not None and r.ranked and not r.probe]
    ranks = _ranks(board, entrants)
    found = [
        Line(
            model=m,
            title=next(iter(runs[m].values())).title,
            probe=next(iter(runs[m].values())).probe,
            rank=ranks.get(m),
            head=heads[m],
            runs=runs[m],
            lift=_between(board, "lift", heads[m], runs[m].get("history?user=none")) if view == "history" else None,
            swap_drop=_between(board, "swap_drop", heads[m], runs[m].get("swapped")) if view == "history" else None,
            marks=_marks(runs[m]),
        )
        for m in models
    ]
    return sorted(found, key=lambda x: (x.probe, x.rank is None, -_accuracy(x.head)))


def _accuracy(run: LoadedRun | None) -> float:
    value = run.metrics["accuracy"] if run else None
    return -1.0 if value is None else float(value)


def _marks(runs: Mapping[str, LoadedRun]) -> tuple[str, ...]:
    """Return each mark once, with the views it speaks of unless it speaks of all."""
    views: dict[str, list[str]] = {}
    for view, run in runs.items():
        for mark in run.marks:
            views.setdefault(mark, []).append(view)
    return tuple(m if len(v) == len(runs) else f"{', '.join(v)}: {m}" for m, v in views.items())


def _ranks(board: Board, entrants: Sequence[LoadedRun]) -> dict[str, int]:
    """Rank = 1 + how many models are better on the common items by the paired sign-flip test at 5 %."""
    ranks = {}
    for one in entrants:
        better = 0
        for other in entrants:
            gap = _between(board, "model", other, one) if other is not one else None
            better += gap is not None and gap.p is not None and gap.p < LEVEL and (gap.value or 0) > 0
        ranks[one.model] = 1 + better
    return ranks


def _between(board: Board, kind: Kind, first: LoadedRun | None, second: LoadedRun | None) -> Difference | None:
    if first is None or second is None or board.data is None:
        return None
    known = set(second.ids)
    ids = [i for i in first.ids if i in known]
    return contrast(board.data, kind, first, second, ids).difference


def by_length(board: Board, run: LoadedRun) -> dict[str, dict[str, Any]]:
    """Return accuracy by how much longer the chosen answer is than the rejected one, relative to the longer of both."""
    assert board.data is not None
    places = [_length_group(*(len(a.text) for a in board.data.answers(i))) for i in run.ids]
    outcomes = [run.rows[i]["outcome"] if i in run.rows else None for i in run.ids]
    users = [board.data.entries[i].user_id for i in run.ids] if board.data.has_users else None
    found = by_group(outcomes, places, users)
    return {name: _figures(found[name]) for name in (*(n for _, n in LENGTHS), LONGEST) if name in found}


def _length_group(chosen: int, rejected: int) -> str:
    gap = (chosen - rejected) / max(chosen, rejected)
    return next((name for limit, name in LENGTHS if gap < limit), LONGEST)


def _figures(result: Result) -> dict[str, Any]:
    ci = result.interval
    return {"n": result.tally.n, "accuracy": result.tally.accuracy, "ci95": [ci.low, ci.high] if ci else None}


def board_rows(board: Board, found: Sequence[Line]) -> list[dict[str, Any]]:
    """Return results in the schema that all parts share: system, metric, value, ci95, n, source."""
    rows = []
    for line in found:
        for view, run in line.runs.items():
            m, marks = run.metrics, list(run.marks)
            source = {"data": board.name, "data_digest": board.digest, "run": run.record["digest"], "marks": marks}
            for name, ci in (("accuracy", m["ci95"]), ("strict_accuracy", None), ("both_right", None)):
                if m[name] is not None:
                    n = m["twin_pairs"] if name == "both_right" else m["scored"]
                    rows.append(_result(line.model, f"{name}/{view}", m[name], ci, n, source))
        for name, gap in (("lift", line.lift), ("swap_drop", line.swap_drop)):
            if gap is not None and gap.value is not None:
                source = {"data": board.name, "data_digest": board.digest, "p": gap.p, "bounds": gap.bounds}
                rows.append(_result(line.model, name, gap.value, gap.ci95, gap.common, source))
    return rows


def _result(system: str, metric: str, value: float, ci: Any, n: int, source: dict[str, Any]) -> dict[str, Any]:
    return {"system": system, "metric": metric, "value": value, "ci95": ci, "n": n, "source": source}
