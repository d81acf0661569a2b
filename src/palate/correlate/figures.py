"""The figures of the page: scatter with intervals both ways, ranks over sources, power."""

from collections.abc import Iterator
from typing import Any

from palate.correlate.api import Correlation
from palate.correlate.base import Source
from palate.correlate.power import Power
from palate.evaluation.names import cut
from palate.metrics.ranking import average_ranks
from palate.pages import COLOURS, figure, to_svg

CYCLE = tuple(COLOURS[k] for k in ("history", "extra", "oracle", "plan", "swapped", "none", "question"))
NAME, MOST_NAMED = 28, 14


def scatters(found: Correlation) -> Iterator[tuple[str, str]]:
    """Yield a name and an SVG for each benchmark and downstream result."""
    for b in found.benchmarks:
        for d in found.downstreams:
            models = [m for m in b.values if m in d.values]
            name = f"{b.label} and {d.label}"
            with figure(3.6, 3.0) as (made, axes):
                for place, model in enumerate(models):
                    _point(axes, b, d, model, named=len(models) <= MOST_NAMED, colour=CYCLE[place % len(CYCLE)])
                axes.set_xlabel(f"{cut(b.label, NAME)} ({cut(b.metric, NAME)})")
                axes.set_ylabel(f"{cut(d.label, NAME)} ({cut(d.metric, NAME)})")
                axes.margins(0.12)
                axes.grid()
                yield cut(name), to_svg(made, f"scatter-{name}")


def _point(axes: Any, benchmark: Source, downstream: Source, model: str, *, named: bool, colour: str) -> None:
    x, y = benchmark.values[model], downstream.values[model]
    if x.ci95 is not None:
        axes.plot(x.ci95, [y.value] * 2, color=colour, linewidth=1, alpha=0.6)
    if y.ci95 is not None:
        axes.plot([x.value] * 2, y.ci95, color=colour, linewidth=1, alpha=0.6)
    axes.plot([x.value], [y.value], "o", color=colour, markersize=5)
    if named:
        axes.annotate(cut(model, NAME), (x.value, y.value), xytext=(4, 4), textcoords="offset points", fontsize=7)


def flow(found: Correlation) -> str | None:
    """Return the ranks of the models that all sources have, benchmarks first; None if fewer than 3 are in all."""
    sources = [*found.benchmarks, *found.downstreams]
    models = [m for m in sources[0].values if all(m in s.values for s in sources)]
    if len(models) < 3:
        return None
    ranks = [len(models) + 1 - average_ranks(s.numbers(models)) for s in sources]
    with figure(2.2 + 1.6 * len(sources), 1.0 + 0.26 * len(models)) as (made, axes):
        for place in range(len(models)):
            heights = [float(r[place]) for r in ranks]
            colour = CYCLE[place % len(CYCLE)]
            axes.plot(range(len(sources)), heights, "o-", color=colour, linewidth=1.4, markersize=4)
        ends: dict[float, list[str]] = {}
        for place, model in enumerate(models):
            ends.setdefault(float(ranks[-1][place]), []).append(cut(model, NAME))
        for height, names in ends.items():
            text = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
            axes.text(len(sources) - 0.93, height, text, fontsize=7, va="center")
        axes.set_xticks(range(len(sources)), [cut(s.label, NAME // 2) for s in sources])
        axes.set_xlim(-0.2, len(sources) - 0.1)
        axes.invert_yaxis()
        axes.set_ylabel("rank, best on top")
        return to_svg(made, "flow")


def power_curves(power: Power) -> str | None:
    """Return power over the number of models: by item counts, and of two benchmarks apart."""
    if not power.curves:
        return None
    with figure(5.6, 2.8) as (made, axes):
        for number, curve in enumerate((*power.curves, *((power.apart,) if power.apart else ()))):
            apart = curve is power.apart
            axes.plot(
                curve.models,
                [100 * p for p in curve.power],
                "--" if apart else "o-",
                color=CYCLE[number % len(CYCLE)],
                linewidth=1.2,
                markersize=3,
                label=cut(curve.name, 44),
            )
        axes.axhline(80, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))
        axes.set_xlabel("models")
        axes.set_ylabel("power, %")
        axes.set_ylim(0, 101)
        axes.grid(axis="y")
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
        return to_svg(made, "power")
