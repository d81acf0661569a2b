"""What a check says: figures with threshold, reason and worst items; and how verdicts come of all checks together."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import stats

from palate.metrics import CREDIT, benjamini_hochberg, bootstrap_mean, mean_interval, sign_flip
from palate.metrics.intervals import cluster_sums

Verdict = Literal["ok", "flagged", "undefined"]
Unit = Literal["share", "count", "ratio", "points"]
BY_CHANCE = "beyond, but chance is not ruled out"
LEVEL = 0.05
WORST = 10
EXCERPT = 160
NOTHING_LOOKED_AT = "there is nothing to look at"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number over `n` items (or what `of` names).

    `p` is that of a test and `adjusted` the same among all tests of the audit. A figure that is None has a `reason`. A
    verdict of None belongs to a figure that is only told.
    """

    name: str
    n: int
    value: float | None
    ci95: tuple[float, float] | None = None
    method: str | None = None
    p: float | None = None
    reason: str | None = None
    judged: bool = True
    unit: Unit | None = None
    adjusted: float | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Worst:
    """An item that shows the fault, and a short excerpt."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Check:
    """One question put to the data.

    `whole` is its figure and `parts` the same figure of domains, runs or kinds. Values from `low` to `high` are within
    the threshold; `why` is the reason for it. `verdict` is `flagged` if the whole or any judged part is.
    """

    id: str
    kind: str
    title: str
    unit: Unit
    whole: Figure
    why: str
    low: float | None = None
    high: float | None = None
    parts: tuple[Figure, ...] = ()
    worst: tuple[Worst, ...] = ()
    verdict: Verdict = "undefined"

    @property
    def reason(self) -> str | None:
        """Why the verdict is not `ok`, or is although the figure is beyond its threshold, in a few words."""
        if self.verdict == "undefined":
            return self.whole.reason
        if self.verdict == "ok":
            value = self.whole.value
            return None if value is None or _within(value, self.low, self.high) else BY_CHANCE
        if self.whole.verdict == "flagged":
            return None
        return "in " + ", ".join(p.name for p in self.parts if p.verdict == "flagged")

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        head = {"id": self.id, "kind": self.kind, "title": self.title, "verdict": self.verdict, "reason": self.reason}
        threshold = {"unit": self.unit, "low": self.low, "high": self.high, "why": self.why}
        parts = [asdict(p) for p in self.parts]
        return {**head, "threshold": threshold, **asdict(self.whole), **head, "parts": parts, "worst": listed(self)}


def listed(check: Check) -> list[dict[str, str]]:
    """Return the worst items for JSON."""
    return [asdict(w) for w in check.worst]


def settle(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks with verdicts.

    A figure is flagged if it is beyond its threshold and, where it has a test, the test rejects at a false discovery
    rate of `LEVEL` over all tests of all checks.
    """
    drafts = list(checks)
    tests = [f.p for c in drafts for f in _figures(c) if f.judged and f.p is not None]
    adjusted = iter(benjamini_hochberg(tests))
    done = []
    for check in drafts:
        whole, *parts = [_settled(f, check, adjusted) for f in _figures(check)]
        verdicts = [f.verdict for f in (whole, *parts)]
        verdict: Verdict = "flagged" if "flagged" in verdicts else whole.verdict or "undefined"
        done.append(replace(check, whole=whole, parts=tuple(parts), verdict=verdict))
    return tuple(done)


def _figures(check: Check) -> list[Figure]:
    return [check.whole, *check.parts]


def _settled(figure: Figure, check: Check, adjusted: Iterable[float]) -> Figure:
    if not figure.judged:
        return figure
    if figure.p is not None:
        figure = replace(figure, adjusted=next(iter(adjusted)))
    if figure.value is None:
        return replace(figure, verdict="undefined")
    beyond = not _within(figure.value, check.low, check.high)
    told = figure.adjusted is None or figure.adjusted <= LEVEL
    return replace(figure, verdict="flagged" if beyond and told else "ok")


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def undefined(name: str, reason: str, n: int = 0) -> Figure:
    """Return a figure that cannot be given."""
    return Figure(name, n, None, reason=reason)


def accuracy(
    name: str, outcomes: Sequence[str | None], units: Sequence[Hashable], seed: int, *, judged: bool = True
) -> Figure:
    """Return the share of `correct` (a tie counts half) with interval and a sign-flip test against one half.

    Args:
        name: of the figure.
        outcomes: one an item; None is not scored.
        units: what is resampled and flipped as a whole.
        seed: of both.
        judged: whether it counts for the verdict.
    """
    scored = [(CREDIT[o], u) for o, u in zip(outcomes, units, strict=True) if o is not None]
    if not scored:
        return replace(undefined(name, NOTHING_LOOKED_AT, len(outcomes)), judged=judged)
    found = mean_interval(outcomes, list(units), seed)
    sums, _ = cluster_sums([(c or 0.0) - 0.5 for c, _ in scored], [u for _, u in scored])
    ci, p = found.interval, sign_flip(sums, seed)[0]
    return Figure(
        name,
        len(scored),
        found.tally.accuracy,
        (ci.low, ci.high) if ci else None,
        ci.method if ci else None,
        p if judged else None,
        judged=judged,
    )


def mean(
    name: str, values: Sequence[float], units: Sequence[Hashable], seed: int, *, at_least: float | None = None
) -> Figure:
    """Return the mean of shares with interval; with `at_least` a one-sided test that it is not below that.

    The test is a t test of the units' ratio mean (Cochran 1977, section 6.4).
    """
    if not values:
        return undefined(name, NOTHING_LOOKED_AT)
    sums, counts = cluster_sums(values, units)
    value = float(sums.sum() / counts.sum())
    ci = bootstrap_mean(values, units, "users", seed)
    p = None
    if at_least is not None:
        n = len(sums)
        spread = float(np.sqrt(np.sum((sums - value * counts) ** 2) * n / max(1, n - 1)) / counts.sum())
        t = (value - at_least) / spread if spread > 0 else np.inf * np.sign(value - at_least)
        p = float(stats.t.cdf(t, n - 1)) if n > 1 else 1.0
    return Figure(name, len(values), value, (ci.low, ci.high) if ci else None, ci.method if ci else None, p)


def counted(name: str, found: Iterable[str], n: int) -> Figure:
    """Return how many of `n` items are among `found`; undefined if there is nothing to look at."""
    return Figure(name, n, len(set(found))) if n else undefined(name, NOTHING_LOOKED_AT)


def excerpt(text: str, longest: int = EXCERPT) -> str:
    """Return the beginning of a text on one line, without signs that cannot be seen."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
