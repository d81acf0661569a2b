"""How far two sets of rows about the same items agree: outcomes, statuses, and gaps between scores.

Gaps are differences of the scores as they are written in the rows, in decimals: 1.05 and 1.0 are 0.05 apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from palate.errors import RunError
from palate.evaluation.names import cut
from palate.evaluation.runs import Row
from palate.metrics.accuracy import tally

LARGEST = 1e300
UNUSABLE = "unusable"
VOTES = "a judge compares two answers and scores neither"
NO_SCORES = "no item has scores in both runs"
NOTHING = "no item was scored by both runs"


@dataclass(frozen=True, slots=True)
class Half:
    """What one run says of an item.

    `status` is `unusable` where the row says ok and has no outcome that could be believed. Scores and margin, chosen
    minus rejected, are None without scores, and for a judge, whose row holds shares of votes.
    """

    status: str
    outcome: str | None
    chosen: float | None = None
    rejected: float | None = None
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """An item in both runs. `gap` is the larger of the gaps of its two scores, `margin_gap` that of its margins."""

    id: str
    a: Half
    b: Half
    gaps: tuple[float, float] | None = None
    margin_gap: float | None = None

    @property
    def gap(self) -> float | None:
        """The larger one of the gaps of the two scores, None without scores."""
        return max(self.gaps) if self.gaps else None

    @property
    def scored(self) -> bool:
        """Whether both runs have an outcome."""
        return self.a.status == self.b.status == "ok"

    @property
    def flipped(self) -> bool:
        """Whether it is correct in one run and wrong in the other."""
        return {self.a.outcome, self.b.outcome} == {"correct", "wrong"}

    @property
    def tie_changed(self) -> bool:
        """Whether it is a tie in one run and decided in the other."""
        return self.scored and self.a.outcome != self.b.outcome and "tie" in (self.a.outcome, self.b.outcome)


@dataclass(frozen=True, slots=True)
class Gaps:
    """Absolute gaps of `scores` single scores, two a pair, and of the pairs' margins; `equal` counts exact equality."""

    scores: int
    equal: int
    largest: float
    median: float
    margin_largest: float
    margin_median: float


def pair_up(a: Mapping[str, Row], b: Mapping[str, Row]) -> list[Pair]:
    """Return the items in both, in the order of `a`.

    Raises:
        RunError: a score beyond ±1e300, which could not be subtracted.
    """
    return [_pair(_half(a[name]), _half(b[name]), name) for name in a if name in b]


def gaps_of(pairs: Sequence[Pair]) -> Gaps | str:
    """Return the gaps of scores, or why there are none."""
    if not any(p.scored for p in pairs):
        return NOTHING
    single = [gap for p in pairs if p.gaps for gap in p.gaps]
    margins = [p.margin_gap for p in pairs if p.margin_gap is not None]
    if not single:
        return NO_SCORES
    return Gaps(len(single), single.count(0.0), max(single), median(single), max(margins), median(margins))


def counts(pairs: Sequence[Pair], what: str) -> dict[tuple[str, str], int]:
    """Return how often each pair of statuses or outcomes occurs, the most frequent first; None is left out."""
    found = Counter((getattr(p.a, what), getattr(p.b, what)) for p in pairs)
    return {key: n for key, n in found.most_common() if None not in key}


def accuracies(pairs: Sequence[Pair]) -> tuple[float | None, float | None]:
    """Return the accuracy of both runs on the pairs that both scored, ties half; None where there are none."""
    scored = [p for p in pairs if p.scored]
    return tally([p.a.outcome for p in scored]).accuracy, tally([p.b.outcome for p in scored]).accuracy


def _half(row: Row) -> Half:
    outcome = row.derived
    if row.status != "ok" or outcome is None:
        return Half(UNUSABLE if row.status == "ok" else row.status, None)
    up, down = row.chosen_score, row.rejected_score
    if row.judge is not None or up is None or down is None:
        return Half("ok", outcome)
    if max(abs(up), abs(down)) > LARGEST:
        raise RunError(f"item '{cut(row.id)}': a score beyond ±{LARGEST:g} cannot be compared.")
    return Half("ok", outcome, up, down, float(_written(up) - _written(down)))


def _pair(a: Half, b: Half, name: str) -> Pair:
    if a.chosen is None or a.rejected is None or b.chosen is None or b.rejected is None:
        return Pair(name, a, b)
    up, down = _written(a.chosen) - _written(b.chosen), _written(a.rejected) - _written(b.rejected)
    return Pair(name, a, b, (float(abs(up)), float(abs(down))), float(abs(up - down)))


def _written(value: float) -> Decimal:
    return Decimal(repr(float(value)))
