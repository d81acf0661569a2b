"""How many models, items and samples tell a true correlation from chance, or two benchmarks apart: by simulation."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from palate.correlate.api import Correlation
from palate.correlate.base import Row, Source
from palate.correlate.words import TITLES
from palate.errors import SpecError
from palate.metrics.latent import power, share_of_noise
from palate.metrics.ranking import spearman
from palate.metrics.swap import swap_power

MODELS = (4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 40)
APART = (5, 6, 8, 10, 15, 20, 30)
ITEMS = (100, 1000, 10_000)
SAMPLES = {"a quarter of the samples downstream": 0.25, "four times the samples downstream": 4.0}
ENOUGH = 0.8
LARGEST = 0.99


@dataclass(frozen=True, slots=True)
class Curve:
    """Power over the number of models; `enough` is the first with 80 %, None if none has it."""

    name: str
    models: tuple[int, ...]
    power: tuple[float, ...]

    @property
    def enough(self) -> int | None:
        """The smallest number of models looked at with a power of 80 %."""
        return next((n for n, p in zip(self.models, self.power, strict=True) if p >= ENOUGH), None)


@dataclass(frozen=True, slots=True)
class Power:
    """Curves for a true correlation `rho`, the first with the noise at hand; `apart` tells two benchmarks apart."""

    statistic: str
    rho: float
    estimated: bool
    curves: tuple[Curve, ...]
    apart: Curve | None
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def power_of(found: Correlation, rho: float | None = None) -> Power:
    """Return the power of the first statistic for the first benchmark and downstream result.

    Args:
        found: what was compared.
        rho: the true correlation to find; by default the one at hand, freed of the noise that is known.

    Raises:
        SpecError: `rho` is not above 0 and below 1.
    """
    if rho is not None and not 0 < rho < 1:
        raise SpecError(f"--rho {rho}: a correlation above 0 and below 1 is needed.")
    statistic = found.settings.statistics[0]
    row = next(r for r in found.rows if r.statistic == statistic)
    estimate = _estimate(found.benchmarks[0], found.downstreams[0], row)
    wanted = rho if rho is not None else estimate
    if wanted is None or wanted <= 0:
        told = "No positive correlation is seen, so there is no size to plan for; name one with --rho."
        return Power(statistic, wanted or 0.0, True, (), None, told)
    left, right = (0.0 if s is None else s for s in row.noise)
    seed, options = found.settings.seed, found.settings.options
    if options["gains"] == "raw":
        options["gains"] = "rank"  # raw gains have no scale that could be simulated for other numbers of models
    by_items = _by_items(found.benchmarks[0], list(row.models), row.noise[0])
    shares = {"noise as at hand": (left, right)} | {name: (share, right) for name, share in by_items.items()}
    shares |= {name: (left, share) for name, share in _by_samples(right).items()}
    curves = tuple(
        Curve(
            name,
            MODELS,
            tuple(
                power(statistic, wanted, n, truth_noise=truth, score_noise=score, seed=seed, **options) for n in MODELS
            ),
        )
        for name, (score, truth) in shares.items()
    )
    apart = _apart(found, wanted, statistic, options)
    return Power(statistic, wanted, rho is None, curves, apart, _sentence(statistic, wanted, curves, apart))


def _estimate(benchmark: Source, downstream: Source, row: Row) -> float | None:
    """Return the correlation without noise: Spearman's ρ on a normal scale, divided by the root of reliabilities."""
    x, y = (s.numbers(row.models) for s in (downstream, benchmark))
    seen = float(spearman(x, y))
    if not np.isfinite(seen):
        return None
    kept = float(np.prod([1 - (share or 0.0) for share in row.noise]))
    return float(np.clip(2 * np.sin(np.pi * seen / 6) / np.sqrt(kept), -LARGEST, LARGEST))


def _by_items(benchmark: Source, models: list[str], share: float | None) -> dict[str, float]:
    """Return shares of noise for numbers of items, where values are shares of items and differ by more than noise."""
    values = np.array([benchmark.values[m].value for m in models], dtype=float)
    if share is None or values.min() < 0 or values.max() > 1:
        return {}
    spread = float(np.sqrt(np.var(values, ddof=1) * (1 - share)))
    return {f"{n:,} items": share_of_noise(n, spread, float(values.mean())) for n in ITEMS} if spread > 0 else {}


def _by_samples(share: float) -> dict[str, float]:
    """Return shares of noise for other numbers of downstream samples; none where no noise is known.

    The variance of noise goes with one over the samples.
    """
    if not share:
        return {}
    return {name: share / (share + (1 - share) * factor) for name, factor in SAMPLES.items()}


def _apart(found: Correlation, rho: float, statistic: str, options: dict[str, Any]) -> Curve | None:
    """Return how often two benchmarks are told apart: the first two, or the first and one of half its correlation."""
    other, between, name = rho / 2, rho * rho / 2, f"a second one of ρ {rho / 2:.2f}"
    if len(found.benchmarks) > 1:
        a, b, d = found.benchmarks[0], found.benchmarks[1], found.downstreams[0]
        models = [m for m in a.values if m in b.values and m in d.values]
        lists = [s.numbers(models) for s in (d, a, b)]
        seen = [2 * np.sin(np.pi * float(spearman(*pair)) / 6) for pair in ((lists[0], lists[2]), (lists[1], lists[2]))]
        if len(models) < 3 or not np.isfinite(seen).all():
            return None
        other, between, name = float(seen[0]), float(seen[1]), f"{a.label} and {b.label} (ρ {seen[0]:.2f})"
    made = tuple(swap_power(statistic, rho, other, between, n, seed=found.settings.seed, **options) for n in APART)
    return Curve(name, APART, made)


def _sentence(statistic: str, rho: float, curves: tuple[Curve, ...], apart: Curve | None) -> str:
    first, more = curves[0], curves[1:]
    how = f"{TITLES[statistic]}, one-sided 5 %"
    aim = f"To tell a true correlation of {rho:.2f} from chance four times out of five ({how})"
    told = f"{aim} takes {_count(first)} with the noise at hand"
    told += "".join(f", {_count(c)} with {c.name}" for c in more)
    if apart is not None:
        told += f"; to tell two benchmarks apart ({apart.name}) takes {_count(apart)}"
    return told + "."


def _count(curve: Curve) -> str:
    return f"{curve.enough} models" if curve.enough else f"more than {curve.models[-1]} models"
