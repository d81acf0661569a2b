"""What is compared, and what comes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palate.metrics.latent import joint_noise

LEAST_COVERAGE = 0.95
_WIDTH = 3.92  # a normal 95 % interval in standard errors


@dataclass(frozen=True, slots=True)
class Measured:
    """One model in one source; `value` is None where there is none, with the `reason`. `marks` are for the reader."""

    value: float | None
    ci95: tuple[float, float] | None = None
    n: int | None = None
    coverage: float | None = None
    probe: bool = False
    reason: str | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """A model that a source does not have, or has but leaves out, and why."""

    source: str
    model: str
    why: str


@dataclass(frozen=True, slots=True)
class Source:
    """Values of models, larger is better.

    `values` are those that count, `out` those left out. `outcomes` are credits of (model, item) from run folders, NaN
    where an item is not scored, by the same models as `values`; None for other sources.
    """

    label: str
    metric: str
    values: Mapping[str, Measured]
    out: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    outcomes: Mapping[str, NDArray[np.float64]] | None = field(default=None, hash=False, compare=False)

    def numbers(self, models: Sequence[str]) -> list[float]:
        """Return the models' values in their order."""
        return [v for v in (self.values[m].value for m in models) if v is not None]

    def errors(self, models: Sequence[str], seed: int) -> tuple[list[float] | None, str]:
        """Return standard errors of the models' values, and how they were got; None where noise is not known."""
        if self.outcomes is not None and len(models) > 1:
            noise = joint_noise(np.stack([self.outcomes[m] for m in models]), seed=seed)
            if noise is not None:
                return [noise] * len(models), "items resampled for all models together"
        spans = [self.values[m].ci95 for m in models]
        known = [(span[1] - span[0]) / _WIDTH for span in spans if span is not None]
        if len(known) < len(models):
            return None, "not accounted for"
        return known, "from the models' intervals"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        models = {name: asdict(m) | {"ci95": list(m.ci95) if m.ci95 else None} for name, m in self.values.items()}
        return {"label": self.label, "metric": self.metric, "models": models, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Row:
    """One statistic of one benchmark and one downstream result, on the n models that both have.

    `expected` and the p-values are those of a random order. `ci95` is None where it is undefined; `reason` tells why
    the value or the interval is. `noise` are the shares of variance that are noise: of the benchmark and downstream.
    """

    benchmark: str
    downstream: str
    statistic: str
    n: int
    value: float | None
    expected: float | None
    p_greater: float | None
    p_two_sided: float | None
    ci95: tuple[float, float] | None
    method: str | None
    exact: bool
    reason: str | None
    models: tuple[str, ...]
    noise: tuple[float | None, float | None]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        lists = {"ci95": list(self.ci95) if self.ci95 else None, "models": list(self.models)}
        return asdict(self) | lists | {"noise": dict(zip(("benchmark", "downstream"), self.noise, strict=True))}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Does benchmark `a` predict a downstream result better than `b`? On the n models that all three have."""

    a: str
    b: str
    downstream: str
    statistic: str
    n: int
    difference: float | None
    p: float | None
    least_p: float | None
    ci95: tuple[float, float] | None
    method: str | None
    exact: bool
    reason: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self) | {"ci95": list(self.ci95) if self.ci95 else None}


def settle(
    label: str, found: Mapping[str, Measured], *, probes: bool
) -> tuple[dict[str, Measured], tuple[Missing, ...]]:
    """Return the models that count, and those that do not: no value, a probe, or too few items scored."""
    values, out = {}, []
    for name, one in found.items():
        why = _excluded(one, probes=probes)
        if why is None:
            values[name] = one
        else:
            out.append(Missing(label, name, why))
    return values, tuple(out)


def _excluded(one: Measured, *, probes: bool) -> str | None:
    if one.probe and not probes:
        return "a probe, not a model"
    if one.value is None:
        return one.reason or "no value"
    if one.coverage is not None and one.coverage < LEAST_COVERAGE:
        return f"coverage {100 * one.coverage:.0f} %: values over part of the items are not ranked"
    return None
