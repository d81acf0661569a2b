"""Accuracy of verdicts: what was scored, what was right, and how sure one can be.

A failure is never a number: values that are None are counted in `n` and lower the coverage, and enter no mean.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from palate.metrics.intervals import Interval, bootstrap_mean, wilson

CREDIT: Mapping[str | None, float | None] = {"correct": 1.0, "tie": 0.5, "wrong": 0.0, None: None}


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of outcomes. `accuracy` gives ties half, `strict_accuracy` nothing; both None if nothing was scored."""

    n: int
    correct: int
    wrong: int
    ties: int

    @property
    def scored(self) -> int:
        """How many have an outcome."""
        return self.correct + self.wrong + self.ties

    @property
    def coverage(self) -> float | None:
        """Scored share of all, None of nothing."""
        return self.scored / self.n if self.n else None

    @property
    def accuracy(self) -> float | None:
        """(correct + ties / 2) / scored."""
        return (self.correct + 0.5 * self.ties) / self.scored if self.scored else None

    @property
    def strict_accuracy(self) -> float | None:
        """Correct / scored."""
        return self.correct / self.scored if self.scored else None


@dataclass(frozen=True, slots=True)
class Result:
    """A tally with its interval."""

    tally: Tally
    interval: Interval | None


def tally(outcomes: Sequence[str | None]) -> Tally:
    """Count outcomes; None is a failure."""
    found = list(outcomes)
    return Tally(len(found), found.count("correct"), found.count("wrong"), found.count("tie"))


def mean_interval(outcomes: Sequence[str | None], users: Sequence[Hashable] | None, seed: int = 0) -> Result:
    """Return tally and interval of outcomes.

    Wilson if every user has one item and there are no ties; otherwise a bootstrap over users if they repeat,
    else over items.

    Args:
        outcomes: `correct`, `wrong`, `tie` or None, one an item.
        users: whose each item is, or None if unknown.
        seed: of the bootstrap.
    """
    counts = tally(outcomes)
    scored = [k for k, o in enumerate(outcomes) if o is not None]
    if not scored:
        return Result(counts, None)
    own = [users[k] for k in scored] if users is not None else None
    repeat = own is not None and len(set(own)) < len(own)
    if not repeat and counts.ties == 0:
        return Result(counts, wilson(counts.correct, counts.scored))
    values = [CREDIT[outcomes[k]] or 0.0 for k in scored]
    if own is not None and repeat:
        return Result(counts, bootstrap_mean(values, own, "users", seed))
    return Result(counts, bootstrap_mean(values, scored, "items", seed))


def by_group(
    outcomes: Sequence[str | None],
    groups: Sequence[str],
    users: Sequence[Hashable] | None,
    *,
    intervals: bool = True,
) -> dict[str, Result]:
    """Return a result for each group, in order of first appearance; without `intervals`, tallies only."""
    places: dict[str, list[int]] = {}
    for k, name in enumerate(groups):
        places.setdefault(name, []).append(k)
    found: dict[str, Result] = {}
    for name, ks in places.items():
        own = [outcomes[k] for k in ks]
        of = [users[k] for k in ks] if users is not None else None
        found[name] = mean_interval(own, of) if intervals else Result(tally(own), None)
    return found


def macro_mean(values: Sequence[float | None]) -> float | None:
    """Return the plain mean of the groups' means, None if one of them is missing."""
    found = [v for v in values if v is not None]
    return float(np.mean(found)) if found and len(found) == len(values) else None


def both_right(outcomes: Mapping[str, str | None], twins: Mapping[str, str | None]) -> tuple[float | None, int]:
    """Return the share of twin pairs with both sides correct, and how many pairs had both sides scored.

    Args:
        outcomes: by item id; pairs with a side missing here or None are left out.
        twins: the twin's id by item id.
    """
    pairs = {tuple(sorted((a, b))) for a, b in twins.items() if b is not None and a in outcomes and b in outcomes}
    scored = [(a, b) for a, b in pairs if outcomes[a] is not None and outcomes[b] is not None]
    if not scored:
        return None, 0
    return sum(outcomes[a] == outcomes[b] == "correct" for a, b in scored) / len(scored), len(scored)


def spread(values: Sequence[float]) -> dict[str, float | int] | None:
    """Return how a figure spreads over users: count, mean, standard deviation (n - 1), quartiles and extremes."""
    if len(values) < 2:
        return None
    data = np.asarray(values, dtype=float)
    low, q1, median, q3, high = (float(q) for q in np.quantile(data, [0, 0.25, 0.5, 0.75, 1]))
    return {
        "users": len(values),
        "mean": float(data.mean()),
        "sd": float(data.std(ddof=1)),
        "min": low,
        "q1": q1,
        "median": median,
        "q3": q3,
        "max": high,
    }
