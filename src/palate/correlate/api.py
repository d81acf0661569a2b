"""`correlate`: every benchmark with every downstream result, and benchmarks with each other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from palate.correlate.base import Comparison, Missing, Row, Source
from palate.correlate.sources import open_source
from palate.correlate.words import verdict
from palate.errors import DataError, SpecError, did_you_mean
from palate.metrics.latent import latent_interval, noise_share
from palate.metrics.ranking import GAINS, LEAST, MEASURES, PERSISTENCE, agreement
from palate.metrics.swap import swap_test

STATISTICS = tuple(MEASURES)


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is compared; the first of `statistics` is the one that the verdict speaks of."""

    statistics: tuple[str, ...] = STATISTICS
    gains: str = "rank"
    persistence: float = PERSISTENCE
    seed: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """The options of the statistics that take some."""
        return {"gains": self.gains, "persistence": self.persistence}


@dataclass(frozen=True, slots=True)
class Correlation:
    """What was compared: a row a benchmark, downstream result and statistic; comparisons of two benchmarks each."""

    benchmarks: tuple[Source, ...]
    downstreams: tuple[Source, ...]
    settings: Settings
    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> tuple[str, ...]:
        """What it means, a sentence or two for each pair, by the first statistic."""
        return verdict(self.rows, self.comparisons, self.settings.statistics[0])

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        s = self.settings
        return {
            "format": 1,
            "settings": {"statistics": list(s.statistics), **s.options, "seed": s.seed},
            "verdict": list(self.verdict),
            "rows": [r.as_dict() for r in self.rows],
            "comparisons": [c.as_dict() for c in self.comparisons],
            "missing": [{"source": m.source, "model": m.model, "why": m.why} for m in self.missing],
            "notes": list(self.notes),
            "benchmarks": [b.as_dict() for b in self.benchmarks],
            "downstreams": [d.as_dict() for d in self.downstreams],
        }


def correlate(
    benchmarks: Sequence[str],
    downstreams: Sequence[str],
    *,
    metric: str | None = None,
    statistics: Sequence[str] = STATISTICS,
    gains: str = "rank",
    persistence: float = PERSISTENCE,
    strict: bool = False,
    probes: bool = False,
    seed: int = 0,
) -> Correlation:
    """Compare the orders that benchmarks and downstream results give the same models.

    Args:
        benchmarks: strings `path?metric=…&view=…&data=…&label=…` of boards, run folders or CSV files.
        downstreams: such strings of what should be predicted.
        metric: of the benchmarks whose string names none.
        statistics: names from `palate.metrics.ranking.MEASURES`; the verdict speaks of the first.
        gains: of NDCG.
        persistence: of RBO.
        strict: refuse models that one side lacks.
        probes: count probes as models.
        seed: of simulations.

    Raises:
        SpecError: a string or setting that cannot be used.
        DataError: what cannot be read, fewer than 3 models in common, negative raw gains, or with `strict` a model
            that is missing somewhere.
    """
    settings = _settings(statistics, gains, persistence, seed)
    notes: list[str] = []
    left = _sources(benchmarks, "benchmark", metric, notes, probes=probes)
    right = _sources(downstreams, "downstream", None, notes, probes=probes)
    right = _apart(left, right)
    missing = _missing([*left, *right])
    if strict and missing:
        told = "; ".join(f"{m.model[:60]}: {m.source}, {m.why}" for m in missing[:6])
        raise DataError(f"--strict: {len(missing)} models are missing or left out ({told}).")
    notes += _same_figures(left, right)
    rows = tuple(r for b in left for d in right for r in _rows(b, d, settings, notes))
    pairs = [(a, b, d) for d in right for a, b in combinations(left, 2)]
    found = tuple(c for a, b, d in pairs for c in _compare(a, b, d, settings, notes))
    tests = len(left) * len(right) + len(pairs)
    if tests > 1:
        notes.append(f"{tests} comparisons are made here and their p-values are not adjusted for it")
    return Correlation(left, right, settings, rows, found, missing, tuple(dict.fromkeys(notes)))


def _settings(statistics: Sequence[str], gains: str, persistence: float, seed: int) -> Settings:
    for name in statistics:
        if name not in MEASURES:
            raise SpecError(f"no statistic '{name}'.{did_you_mean(name, MEASURES)}")
    if not statistics:
        raise SpecError("no statistic given.")
    if gains not in GAINS:
        raise SpecError(f"no gains '{gains}'.{did_you_mean(gains, GAINS)}")
    if not 0 < persistence < 1:
        raise SpecError(f"persistence must be between 0 and 1, not {persistence}.")
    return Settings(tuple(dict.fromkeys(statistics)), gains, persistence, seed)


def _sources(
    texts: Sequence[str], what: str, metric: str | None, notes: list[str], *, probes: bool
) -> tuple[Source, ...]:
    """Open the sources of one side; one that is given twice counts once, and names are made to differ."""
    if not texts:
        raise SpecError(f"no {what} given.")
    kept: list[Source] = []
    for text in texts:
        found = open_source(text, metric, probes=probes)
        twin = next((k for k in kept if _same(k, found)), None)
        if twin is not None:
            notes.append(f"{what} {found.label} is {twin.label} again and counts once")
            continue
        taken = {k.label for k in kept}
        label, number = found.label, 2
        if label in taken:
            label = f"{found.label} ({found.metric})"
        while label in taken:
            label, number = f"{found.label} #{number}", number + 1
        kept.append(_renamed(found, label))
    for one in kept:
        notes += [f"{one.label}: {note}" for note in one.notes]
        marked = [f"{name[:60]} ({'; '.join(m.marks)[:120]})" for name, m in one.values.items() if m.marks]
        notes += [f"{one.label}: marked: {', '.join(marked[:6])}"] if marked else []
    return tuple(kept)


def _renamed(source: Source, label: str) -> Source:
    return replace(source, label=label, out=tuple(replace(m, source=label) for m in source.out))


def _apart(left: Sequence[Source], right: Sequence[Source]) -> tuple[Source, ...]:
    taken = {s.label for s in left}
    return tuple(_renamed(s, f"{s.label} (downstream)") if s.label in taken else s for s in right)


def _same(one: Source, other: Source) -> bool:
    def figures(s: Source) -> dict[str, Any]:
        return {name: (m.value, m.ci95) for name, m in s.values.items()}

    return one.metric == other.metric and figures(one) == figures(other)


def _same_figures(left: Sequence[Source], right: Sequence[Source]) -> list[str]:
    return [
        f"{b.label} and {d.label} are the same figures: that they agree says nothing"
        for b in left
        for d in right
        if _same(b, d)
    ]


def _missing(sources: Sequence[Source]) -> tuple[Missing, ...]:
    """Return for each source the models that another one has and it lacks, and those that it leaves out."""
    everyone = list(dict.fromkeys(name for s in sources for name in s.values))
    found = []
    for s in sources:
        out = {m.model: m for m in s.out}
        found += list(s.out)
        found += [Missing(s.label, name, "not in it") for name in everyone if name not in s.values and name not in out]
    return tuple(found)


def _common(*sources: Source) -> list[str]:
    """Return the models that all sources have.

    Raises:
        DataError: fewer than 3.
    """
    names = [name for name in sources[0].values if all(name in s.values for s in sources[1:])]
    if len(names) < LEAST:
        what = " and ".join(s.label for s in sources)
        shown = f": {', '.join(n[:60] for n in names)}" if names else ""
        only = "; ".join(f"{s.label} has {', '.join(n[:40] for n in list(s.values)[:4]) or 'none'}" for s in sources)
        raise DataError(f"{what}: {len(names)} models in common{shown}. At least {LEAST} are needed ({only}).")
    return names


def _rows(benchmark: Source, downstream: Source, settings: Settings, notes: list[str]) -> Iterable[Row]:
    models = _common(benchmark, downstream)
    x, y = downstream.numbers(models), benchmark.numbers(models)
    errors = []
    for source in (downstream, benchmark):
        known, how = source.errors(models, settings.seed)
        notes.append(f"{source.label}: noise {how}")
        errors.append(known)
    if settings.gains == "raw" and "ndcg" in settings.statistics and min(x) < 0:
        bad = ", ".join(m[:60] for m, v in zip(models, x, strict=True) if v < 0)
        raise DataError(f"{downstream.label}: raw gains must not be below 0 ({bad}). Take --gains rank.")
    shares = (noise_share(y, errors[1]), noise_share(x, errors[0]))
    for name in settings.statistics:
        found = agreement(name, x, y, seed=settings.seed, **settings.options)
        span, reason = None, found.reason
        if found.value is not None and found.p_greater is not None:
            span = latent_interval(
                name, x, y, truth_errors=errors[0], score_errors=errors[1], seed=settings.seed, **settings.options
            )
            if span is None:
                reason = reason or _no_interval(benchmark, downstream, shares)
        yield Row(
            benchmark.label, downstream.label, name, found.n, found.value, found.expected, found.p_greater,
            found.p_two_sided, (span.low, span.high) if span else None, span.method if span else None, found.exact,
            reason, tuple(models), shares,
        )  # fmt: skip


def _no_interval(benchmark: Source, downstream: Source, shares: tuple[float | None, float | None]) -> str:
    noisy = [s.label for s, share in zip((benchmark, downstream), shares, strict=True) if share is None]
    if noisy:
        return f"no interval: 90 % or more of how {' and '.join(noisy)} differs between models is noise"
    return "no interval: no correlation makes such a value likely"


def _compare(a: Source, b: Source, downstream: Source, settings: Settings, notes: list[str]) -> Iterable[Comparison]:
    try:
        models = _common(a, b, downstream)
    except DataError as bad:
        notes.append(f"not compared: {bad}")
        return
    lists = [s.numbers(models) for s in (downstream, a, b)]
    for name in settings.statistics:
        found = swap_test(name, *lists, seed=settings.seed, **settings.options)
        span = found.interval
        yield Comparison(
            a.label, b.label, downstream.label, name, found.n, found.difference, found.p, found.least_p,
            (span.low, span.high) if span else None, span.method if span else None, found.exact, found.reason,
        )  # fmt: skip
