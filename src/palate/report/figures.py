"""The figures of the page, each as an SVG document for papers; the page takes them inline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from palate.evaluation.names import cut
from palate.pages import COLOURS, figure, to_svg
from palate.report.lines import Line
from palate.report.load import LoadedRun

STEPS = (("question", "question"), ("history?user=none", "filler"), ("history", "history"), ("oracle", "rubric"))
PLAN = "plan"
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#5e4fa2")
MARKERS = "osD^vP<>"
NAME = 40
Named = Sequence[tuple[str, Mapping[str, Mapping[str, Any]]]]


def ladder(line: Line) -> str | None:
    """Return one model's view ladder: question, filler, history, rubric, with another user's history beside."""
    if not _climbs(line):
        return None
    with figure(3.4, 2.3) as (made, axes):
        _ladder(axes, line)
        axes.set_ylabel("accuracy, %")
        return to_svg(made, f"ladder-{line.key}")


def ladders(found: Sequence[Line]) -> str | None:
    """Return the ladders of up to four models side by side, for papers."""
    shown = [line for line in found if _climbs(line)][:4]
    if len(shown) < 2:
        return None
    with figure(2.9 * len(shown), 2.4, len(shown)) as (made, panels):
        for axes, line in zip(panels, shown, strict=True):
            _ladder(axes, line)
            axes.set_title(cut(line.title, NAME) + (" (probe)" if line.probe else ""), fontsize=9)
        panels[0].set_ylabel("accuracy, %")
        return to_svg(made, "ladders")


def _rungs(line: Line) -> list[tuple[str, str]]:
    """Return the views of the ladder and their names; a plan, if there is one, stands between history and rubric."""
    plans = [view for view in line.runs if view.partition("?")[0] == PLAN and "user=" not in view][:1]
    return [*STEPS[:-1], *((view, PLAN) for view in plans), STEPS[-1]]


def _steps(line: Line) -> list[tuple[int, LoadedRun]]:
    steps = [(k, line.runs[view]) for k, (view, _) in enumerate(_rungs(line)) if view in line.runs]
    return [(k, run) for k, run in steps if run.metrics["accuracy"] is not None]


def _climbs(line: Line) -> bool:
    return len(_steps(line)) > 1


def _ladder(axes: Any, line: Line) -> None:
    steps = _steps(line)
    _coin(axes.axhline)
    values = [100 * float(run.metrics["accuracy"]) for _, run in steps]
    axes.plot([k for k, _ in steps], values, color=COLOURS["history"], linewidth=1.4, zorder=2)
    for k, run in steps:
        _point(axes, k, run.metrics, "o", COLOURS["history"])
    swapped = line.runs.get("swapped")
    if swapped is not None and swapped.metrics["accuracy"] is not None:
        _point(axes, 2.22, swapped.metrics, "D", COLOURS["swapped"], label="another user's history")
        axes.legend(frameon=False, fontsize=8, loc="upper left", handletextpad=0.2, borderpad=0)
    names = [name for _, name in _rungs(line)]
    axes.set_xlim(-0.35, len(names) - 0.65)
    axes.set_xticks(range(len(names)), names)
    _percent(axes)


def groups(title: str, found: Named, label: str) -> str | None:
    """Return accuracy by group for several models: `found` are models with group → figures."""
    names = list(dict.fromkeys(name for _, each in found for name in each))
    if len(names) < 2:
        return None
    with figure(6.6, 2.9) as (made, axes):
        _coin(axes.axhline)
        width = min(0.14, 0.7 / max(1, len(found)))
        for number, (model, each) in enumerate(found):
            shift = (number - (len(found) - 1) / 2) * width
            known = [(k + shift, each[n]) for k, n in enumerate(names) if n in each and each[n]["accuracy"] is not None]
            _series(axes, number, known, model)
        counts = {n: max(each[n]["n"] for _, each in found if n in each) for n in names}
        axes.set_xticks(range(len(names)), [f"{n}\nn = {counts[n]}" for n in names])
        axes.set_xlabel(label)
        _named(axes)
        return to_svg(made, title)


def users(found: Sequence[tuple[str, Sequence[float], float]]) -> str | None:
    """Return how accuracy spreads over users: `found` are models with each user's accuracy and the median."""
    if not found:
        return None
    with figure(6.6, 0.9 + 0.42 * len(found)) as (made, axes):
        _coin(axes.axvline)
        for row, (_, values, median) in enumerate(found):
            xs, ys = _swarm(values, row)
            axes.plot(xs, ys, "o", color=CYCLE[0], alpha=0.6, markersize=3.6, markeredgewidth=0, zorder=3)
            axes.plot([100 * median] * 2, [row - 0.32, row + 0.32], color=CYCLE[1], linewidth=2.6, zorder=2)
        axes.set_yticks(range(len(found)), [cut(model, NAME) for model, _, _ in found])
        axes.invert_yaxis()
        axes.set_xlim(-3, 103)
        axes.set_xlabel("accuracy of each user's items, %")
        axes.grid(axis="x")
        return to_svg(made, "users")


def _swarm(values: Sequence[float], row: int) -> tuple[list[float], list[float]]:
    """Return a place for each value in per cent; equal values stand beside each other around `row`."""
    counts = Counter(values)
    step = min(0.1, 0.4 / max(1, max(counts.values()) // 2))
    places = [(value, place) for value in sorted(counts) for place in range(counts[value])]
    xs = [100 * value for value, _ in places]
    ys = [row + step * ((place + 1) // 2) * (1 if place % 2 else -1) for _, place in places]
    return xs, ys


def parameters(found: Mapping[str, Sequence[tuple[float, Mapping[str, Any]]]]) -> str | None:
    """Return accuracy against parameter count; `found` is family → (parameters, figures)."""
    if sum(map(len, found.values())) < 2:
        return None
    with figure(6.6, 2.9) as (made, axes):
        _coin(axes.axhline)
        for number, (family, each) in enumerate(found.items()):
            ordered = sorted(each, key=lambda e: e[0])
            values = [100 * figures["accuracy"] for _, figures in ordered]
            axes.plot([size for size, _ in ordered], values, color=CYCLE[number % len(CYCLE)], linewidth=1)
            _series(axes, number, ordered, family)
        axes.set_xscale("log")
        axes.set_xlabel("parameters")
        _named(axes)
        return to_svg(made, "parameters")


def _coin(draw: Any) -> None:
    draw(50, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))


def _series(axes: Any, number: int, found: Sequence[tuple[float, Mapping[str, Any]]], name: str) -> None:
    colour, marker = CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)]
    for place, (x, figures) in enumerate(found):
        _point(axes, x, figures, marker, colour, label=cut(name, NAME) if place == 0 else None)


def _named(axes: Any) -> None:
    axes.set_ylabel("accuracy, %")
    _percent(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))


def _point(axes: Any, x: float, figures: Mapping[str, Any], marker: str, colour: str, label: str | None = None) -> None:
    value, ci = 100 * figures["accuracy"], figures["ci95"]
    if ci is not None:
        axes.plot([x, x], [100 * ci[0], 100 * ci[1]], color=colour, linewidth=1, alpha=0.7, zorder=2)
    axes.plot(x, value, marker, color=colour, markersize=5, label=label, zorder=3, linestyle="none")


def _percent(axes: Any) -> None:
    axes.set_ylim(0, 101)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.grid(axis="y")
