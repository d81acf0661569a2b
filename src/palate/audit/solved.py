"""What reward models reach without the user, and with another's: from runs, if given."""

from collections.abc import Sequence

from palate.audit.base import WORST, Check, Figure, Worst, accuracy, undefined
from palate.audit.runs import SeenRun
from palate.contrasts import contrasts_of
from palate.data import Dataset
from palate.rewards.judge.kin import kinship

MOST = 0.60
BLIND = {
    "solved_without_user": ("question", "Solved from the question alone"),
    "solved_with_filler": ("history?user=none", "Solved with filler for a history"),
    "solved_with_another": ("swapped", "Solved with another user's history"),
}
TOLD = {"question": "gain", "swapped": "swap_drop", "history?user=none": "lift"}
NO_RUNS = "no runs given (--runs)"
WHY = (
    "Taste that most people share also scores without the user; over 60 % it decides more items than the user's own "
    "taste can, so the pairs are not strictly personal."
)
WHY_KIN = "Judges prefer answers of their own family, so a judge of the answers' writer scores for that reason too."


def solved(data: Dataset, runs: Sequence[SeenRun], units: Sequence[str], seed: int) -> list[Check]:
    """Return a check of each view without the own user, and one of judges that are kin to the answers' writer.

    Args:
        data: the audited data.
        runs: runs on it.
        units: what is resampled as a whole, in the order of the data's ids.
        seed: of the statistics.
    """
    checks = [_blind(name, view, title, data, runs, units, seed) for name, (view, title) in BLIND.items()]
    return [*checks, _kin(data, runs)]


def _blind(
    name: str, view: str, title: str, data: Dataset, runs: Sequence[SeenRun], units: Sequence[str], seed: int
) -> Check:
    parts = [_run_figure(data, run, units, seed) for run in runs if run.view == view]
    scored = [p for p in parts if p.value is not None]
    whole = undefined("runs", NO_RUNS if not runs else f"no run under {view} scored an item")
    if scored:
        highest = max(scored, key=lambda f: f.value or 0.0)
        whole = Figure(highest.name, highest.n, highest.value, highest.ci95, highest.method, highest.p)
    told = _contrasts(data, runs, TOLD[view])
    worst = _solved_by_all(data.ids, [r for r in runs if r.view == view])
    return Check(name, "solved", title, "share", whole, WHY, None, MOST, (*parts, *told), worst)


def _solved_by_all(ids: Sequence[str], runs: Sequence[SeenRun]) -> tuple[Worst, ...]:
    """Return items that every run gets right; with one run that is chance half of the time, so two are needed."""
    right = [i for i in ids if all(i in r.rows and r.rows[i]["outcome"] == "correct" for r in runs)]
    return tuple(Worst(i, f"solved by all {len(runs)} runs") for i in right[:WORST]) if len(runs) > 1 else ()


def _run_figure(data: Dataset, run: SeenRun, units: Sequence[str], seed: int) -> Figure:
    outcomes = [run.rows[i]["outcome"] if i in run.rows else None for i in data.ids]
    return accuracy(run.model, outcomes, units, seed)


def _contrasts(data: Dataset, runs: Sequence[SeenRun], kind: str) -> list[Figure]:
    found = [c for c in contrasts_of(data, runs, data.ids) if c.kind == kind]
    name = kind.replace("_", " ")
    return [
        Figure(f"{name} of {c.model} under {c.view}", c.difference.common, c.difference.value, c.difference.ci95,
               c.difference.method, judged=False, unit="points")
        for c in found
    ]  # fmt: skip


def _kin(data: Dataset, runs: Sequence[SeenRun]) -> Check:
    title = "Judges of the answers' own family"
    asked = list(dict.fromkeys(r.model for r in runs if r.judged))
    reason = NO_RUNS if not runs else "no run of a judge" if not asked else "no column 'generator' names the writer"
    kin = [m for m in asked if kinship(m, data.generators)]
    known = bool(asked and data.generators)
    whole = Figure("judges", len(asked), len(kin)) if known else undefined("judges", reason)
    parts = tuple(Figure(m, 1, 1, judged=False) for m in kin)
    return Check("kin", "solved", title, "count", whole, WHY_KIN, None, 0, parts)
