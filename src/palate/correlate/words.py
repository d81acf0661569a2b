"""What the figures mean, in plain words. Nothing here says more than the numbers hold."""

from collections.abc import Iterator, Sequence
from math import factorial

from palate.correlate.base import Comparison, Row
from palate.pages.numbers import chance, plain, span

LEVEL = 0.05
TITLES = {
    "ndcg": "NDCG",
    "rbo": "RBO",
    "weighted_tau": "weighted τ",
    "spearman": "Spearman ρ",
    "kendall": "Kendall τ-b",
}


def verdict(rows: Sequence[Row], comparisons: Sequence[Comparison], statistic: str) -> tuple[str, ...]:
    """Return the sentences of all pairs by one statistic."""
    return (*(_row(r) for r in rows if r.statistic == statistic), *_comparisons(comparisons, statistic))


def _row(row: Row) -> str:
    head = f"{row.benchmark} → {row.downstream}: "
    if row.value is None or row.p_greater is None or row.expected is None:
        return f"{head}undefined with {row.n} models: {row.reason}."
    value = f"{TITLES[row.statistic]} {plain(row.value, 3)}"
    as_well = _share(row.p_greater)
    if row.p_greater > LEVEL:
        told = f"With {row.n} models this cannot be told from chance: {as_well} of random orders do as well ({value})."
        if 1 / factorial(row.n) > LEVEL:
            told += f" No order of {row.n} models could: even the best is one of {factorial(row.n)}."
        return head + told
    if row.ci95 is None:
        return f"{head}Only {as_well} of random orders of {row.n} models do as well ({value}), but {row.reason}."
    if row.ci95[0] <= row.expected:
        return (
            f"{head}A hint, no more: {as_well} of random orders of {row.n} models do as well ({value}), but the "
            f"interval {span(row.ci95, 3)} still holds what a random order gives, {plain(row.expected, 3)}."
        )
    return (
        f"{head}Beyond chance among these {row.n} models: {as_well} of random orders do as well ({value}); models like "
        f"them would show {span(row.ci95, 3)}, a random order {plain(row.expected, 3)}."
    )


def _comparisons(found: Sequence[Comparison], statistic: str) -> Iterator[str]:
    for c in found:
        if c.statistic != statistic:
            continue
        head = f"{c.a} or {c.b} for {c.downstream}: "
        if c.p is None or c.difference is None or c.least_p is None:
            yield f"{head}undefined with {c.n} models: {c.reason}."
            continue
        about = f"difference {plain(c.difference, 3, signed=True)}, p = {chance(c.p)}"
        least = f"the smallest p that {c.n} models can give is {chance(c.least_p)}"
        holds = c.ci95 is not None and c.ci95[0] <= 0 <= c.ci95[1]
        if c.p > LEVEL:
            yield f"{head}with {c.n} models it cannot be told which agrees better ({about}; {least})."
        elif holds:
            held = span(c.ci95, 3, signed=True)
            yield f"{head}a hint, no more ({about}; {least}): the interval {held} still holds 0."
        else:
            better = c.a if c.difference > 0 else c.b
            yield f"{head}{better} agrees better among these {c.n} models ({about}; {least})."


def _share(p: float) -> str:
    return "fewer than 0.1 %" if p < 0.001 else f"{100 * p:.1f} %" if p < 0.1 else f"{100 * p:.0f} %"
