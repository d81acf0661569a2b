"""What people made of the pairs: means per criterion and side, equivalence, the rubric's difference, whom they pick."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from palate.annotate.reading import FIT, Annotation
from palate.data.label_studio import GENERAL, SIDES
from palate.metrics import (
    CREDIT,
    Equivalence,
    Floor,
    Interval,
    above_floor,
    bootstrap_mean,
    difference,
    mean_ci95,
    tost,
    wilson,
)

MARGIN = 0.25
FLOOR = 3.5
SPAN = 4
OUTCOME: Mapping[str, str] = {"chosen": "correct", "none": "tie", "rejected": "wrong"}
General = Literal["confirmed", "refuted", "inconclusive"]
UserOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class SideMean:
    """The mean rating of the answers of one side: of each item's mean over annotators, with a t interval over items."""

    side: str
    items: int
    ratings: int
    mean: float | None
    ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of general quality: both sides' means, alike within the margin, and above the floor."""

    name: str
    sides: tuple[SideMean, ...]
    equivalence: Equivalence
    floors: tuple[Floor, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """How much better the chosen answers fit the rubric, paired by item, on the scale of ratings."""

    sides: tuple[SideMean, ...]
    items: int
    value: float | None
    ci95: tuple[float, float] | None
    p: float | None
    method: str


@dataclass(frozen=True, slots=True)
class Share:
    """How often people pick the chosen answer; no difference counts half."""

    votes: int
    items: int
    chosen: int
    none: int
    rejected: int
    share: float | None
    ci95: tuple[float, float] | None
    method: str | None

    @property
    def none_share(self) -> float | None:
        """Share of votes that see no difference."""
        return self.none / self.votes if self.votes else None


@dataclass(frozen=True, slots=True)
class Person:
    """One annotator: whom they pick, their mean ratings by criterion and side, and the attention items they failed."""

    name: str
    share: Share
    means: Mapping[str, Mapping[str, float]]
    attention: int
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """All that people said. `general` is about the three criteria together, `first_seat` about the votes' order."""

    items: int
    annotators: int
    attention_items: int
    criteria: tuple[Criterion, ...]
    general: General
    fit: Fit
    share: Share
    first_seat: Share
    people: tuple[Person, ...]


def results(annotations: Sequence[Annotation], user_of: UserOf | None = None) -> Results:
    """Return the results; attention items are in no figure but the count of those failed.

    Args:
        annotations: of both steps.
        user_of: the user of an item, if known; users with several items are then resampled as a whole.
    """
    kept = [a for a in annotations if not a.attention]
    checks = [a for a in annotations if a.attention]
    criteria = tuple(_criterion(kept, name) for name in GENERAL)
    names = dict.fromkeys(a.annotator for a in annotations)
    return Results(
        items=len({a.item for a in kept}),
        annotators=len({a.annotator for a in kept}),
        attention_items=len({a.item for a in checks}),
        criteria=criteria,
        general=_general(criteria),
        fit=_fit(kept, user_of),
        share=_share([(a.item, a.preference) for a in kept], user_of),
        first_seat=_share([(a.item, _seat(a)) for a in kept], user_of),
        people=tuple(_person(name, kept, checks) for name in names),
    )


def _by_item(kept: Iterable[Annotation], value: Callable[[Annotation], float | None]) -> dict[str, float]:
    """Return for each item the mean over annotators of what `value` finds."""
    found: dict[str, list[float]] = {}
    for a in kept:
        if (one := value(a)) is not None:
            found.setdefault(a.item, []).append(one)
    return {item: fmean(values) for item, values in found.items()}


def _side(kept: Sequence[Annotation], name: str, side: str) -> tuple[SideMean, list[float]]:
    values = list(_by_item(kept, lambda a: a.ratings.get(name, {}).get(side)).values())
    count = sum(side in a.ratings.get(name, {}) for a in kept)
    return SideMean(side, len(values), count, fmean(values) if values else None, mean_ci95(values)), values


def _gap(a: Annotation, name: str) -> float | None:
    sides = a.ratings.get(name, {})
    return sides["chosen"] - sides["rejected"] if len(sides) == 2 else None


def _criterion(kept: Sequence[Annotation], name: str) -> Criterion:
    sides = [_side(kept, name, side) for side in SIDES]
    gaps = list(_by_item(kept, lambda a: _gap(a, name)).values())
    floors = tuple(above_floor(values, FLOOR) for _, values in sides)
    return Criterion(name, tuple(mean for mean, _ in sides), tost(gaps, MARGIN), floors)


def _general(criteria: Sequence[Criterion]) -> General:
    """Confirmed if every criterion is alike and above the floor, refuted if one is not, else inconclusive."""
    alike, floors = [c.equivalence.verdict for c in criteria], [f.verdict for c in criteria for f in c.floors]
    if "different" in alike or "missed" in floors:
        return "refuted"
    return "confirmed" if {*alike} == {"equivalent"} and {*floors} == {"met"} else "inconclusive"


def _fit(kept: Sequence[Annotation], user_of: UserOf | None) -> Fit:
    """Compare the sides by the paired difference of outcomes, which lives on 0 to 1; ratings are brought there."""
    both = [a for a in kept if len(a.ratings.get(FIT, {})) == 2]
    means = {side: _by_item(both, lambda a, s=side: a.ratings[FIT][s]) for side in SIDES}  # type: ignore[misc]
    items = list(means["chosen"])
    one, other = ([(means[side][item] - 1) / SPAN for item in items] for side in SIDES)
    unit = "items" if user_of is None else "users"
    found = difference(one, other, _clusters(items, user_of), unit)
    ci95 = None if found.ci95 is None else (SPAN * found.ci95[0], SPAN * found.ci95[1])
    value = None if found.value is None else SPAN * found.value
    sides = tuple(_side(kept, FIT, side)[0] for side in SIDES)
    return Fit(sides, len(items), value, ci95, found.p, found.method)


def _clusters(items: Sequence[str], user_of: UserOf | None) -> list[tuple[str, str]]:
    """Return what is resampled as a whole: an item's user if known, else the item."""
    users = [user_of(item) if user_of else None for item in items]
    return [("user", user) if user is not None else ("item", item) for item, user in zip(items, users, strict=True)]


def _share(votes: Iterable[tuple[str, str | None]], user_of: UserOf | None) -> Share:
    given = [(item, OUTCOME[label]) for item, label in votes if label is not None]
    items, outcomes = [item for item, _ in given], [o for _, o in given]
    chosen, none, rejected = (outcomes.count(o) for o in ("correct", "tie", "wrong"))
    n, distinct = len(given), len(set(items))
    if not n:
        return Share(0, 0, 0, 0, 0, None, None, None)
    values = [CREDIT[o] or 0.0 for o in outcomes]
    clusters = _clusters(items, user_of)
    if len(set(clusters)) == n and not none:
        found: Interval | None = wilson(chosen, n)
    else:
        found = bootstrap_mean(values, clusters, "items" if user_of is None else "users")
    ci95, method = (None, None) if found is None else ((found.low, found.high), found.method)
    return Share(n, distinct, chosen, none, rejected, fmean(values), ci95, method)


def _seat(a: Annotation) -> str | None:
    """Return a vote as one for the first seat (chosen) or the second."""
    if a.preference is None or a.preference == "none":
        return a.preference
    return "chosen" if a.preference == a.seats[0] else "rejected"


def _person(name: str, kept: Sequence[Annotation], checks: Sequence[Annotation]) -> Person:
    own = [a for a in kept if a.annotator == name]
    mine = [a for a in checks if a.annotator == name and a.passed is not None]
    means: dict[str, dict[str, float]] = {}
    for criterion in (*GENERAL, FIT):
        for side in SIDES:
            values = [a.ratings[criterion][side] for a in own if side in a.ratings.get(criterion, {})]
            if values:
                means.setdefault(criterion, {})[side] = fmean(values)
    failed = tuple(dict.fromkeys(a.item for a in mine if a.passed is False))
    share = _share([(a.item, a.preference) for a in own], None)
    return Person(name, share, means, len({a.item for a in mine}), failed)
