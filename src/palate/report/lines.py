"""The lines of the table: one reward model × one retriever each, their ranks, and what reading the user adds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from palate.contrasts import Kind, contrast
from palate.metrics import Difference
from palate.report.load import Board, LoadedRun
from palate.store import digest_of

LADDER = ("question", "history?user=none", "swapped", "history", "oracle")
AGAINST: Mapping[Kind, str] = {"lift": "history?user=none", "swap_drop": "swapped"}
LEVEL = 0.05
Key = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Line:
    """One model with one retriever, its runs by view; runs that read no retriever are in every line of their model.

    `key` is a digest of both identities, `system` the full name, `title` the short one. `rank` is shared by models
    that cannot be told apart; None for those not ranked.
    """

    key: str
    system: str
    title: str
    probe: bool
    rank: int | None
    head: LoadedRun | None
    runs: Mapping[str, LoadedRun]
    gaps: Mapping[Kind, Difference]
    marks: tuple[str, ...]

    @property
    def lift(self) -> Difference | None:
        """Own history minus filler."""
        return self.gaps.get("lift")

    @property
    def swap_drop(self) -> Difference | None:
        """Own history minus another user's."""
        return self.gaps.get("swap_drop")


def headline_view(board: Board) -> str:
    """Return the view that the ranking is about: `history` if there is one, else the most frequent."""
    views = [r.view for r in board.runs]
    return "history" if "history" in views else max(dict.fromkeys(views), key=views.count)


def lines(board: Board) -> list[Line]:
    """Return the table's lines: ranked models best first, then the others, then probes."""
    view = headline_view(board)
    runs = _by_line(board.runs)
    heads = {key: found[view] for key, found in runs.items() if view in found}
    ranks = _ranks(board, {k: r for k, r in heads.items() if r.ranked and not r.probe})
    found = [_line(board, key, own, heads.get(key), ranks.get(key)) for key, own in runs.items()]
    return sorted(found, key=lambda x: (x.probe, x.rank is None, -_accuracy(x.head), x.rank or 0, x.title))


def _by_line(runs: Sequence[LoadedRun]) -> dict[Key, dict[str, LoadedRun]]:
    """Return line → view → run."""
    retrievers: dict[str, dict[str | None, None]] = {}
    for run in runs:
        kept = retrievers.setdefault(run.line[0], {})
        if run.line[1] is not None:
            kept[run.line[1]] = None
    keys = [(model, each) for model, found in retrievers.items() for each in found or {None: None}]
    return {key: {r.view: r for r in runs if r.line in (key, (key[0], None))} for key in keys}


def _line(board: Board, key: Key, runs: Mapping[str, LoadedRun], head: LoadedRun | None, rank: int | None) -> Line:
    named = next((r for r in runs.values() if r.line == key), next(iter(runs.values())))
    found = {kind: _between(board, kind, head, runs.get(view)) for kind, view in AGAINST.items()}
    gaps = {kind: gap for kind, gap in found.items() if gap is not None and head and head.view == "history"}
    return Line(
        key=digest_of(key),
        system=named.model,
        title=named.title,
        probe=named.probe,
        rank=rank,
        head=head,
        runs=runs,
        gaps=gaps,
        marks=_marks(runs),
    )


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


def _ranks(board: Board, entrants: Mapping[Key, LoadedRun]) -> dict[Key, int]:
    """Return 1 + how many models a paired sign-flip test at 5 % finds better, but no better than any rank above.

    Tests on the common items need not agree with the order of accuracy; the running maximum makes ranks do so.
    """
    better = dict.fromkeys(entrants, 0)
    for one, other in combinations(entrants, 2):
        gap = _between(board, "model", entrants[one], entrants[other])
        if gap is not None and gap.p is not None and gap.p < LEVEL and gap.value:
            better[other if gap.value > 0 else one] += 1
    ranks: dict[Key, int] = {}
    worst = 1
    for key in sorted(entrants, key=lambda k: (-_accuracy(entrants[k]), better[k])):
        worst = ranks[key] = max(worst, 1 + better[key])
    return ranks


def _between(board: Board, kind: Kind, first: LoadedRun | None, second: LoadedRun | None) -> Difference | None:
    if first is None or second is None or board.data is None:
        return None
    known = set(second.ids)
    return contrast(board.data, kind, first, second, [i for i in first.ids if i in known]).difference
