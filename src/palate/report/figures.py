"""The figures of the page, each as an SVG document for papers; the page takes them inline."""

from collections.abc import Mapping, Sequence
from typing import Any

from palate.pages import COLOURS, figure, to_svg
from palate.report.board import Line
from palate.report.load import LoadedRun

STEPS = (("question", "question"), ("history?user=none", "filler"), ("history", "history"), ("oracle", "rubric"))
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#5e4fa2")
MARKERS = "osD^vP<>"


def ladder(line: Line) -> str | None:
    """Return one model's view ladder: question, filler, history, rubric, with another user's history beside."""
    if not _climbs(line):
        return None
    with figure(3.4, 2.3) as (made, axes):
        _ladder(axes, line)
        axes.set_ylabel("accuracy, %")
        return to_svg(made, f"ladder-{line.model}")


def ladders(found: Sequence[Line]) -> str | None:
    """Return the ladders of up to four models side by side, for papers."""
    shown = [line for line in found if _climbs(line)][:4]
    if len(shown) < 2:
        return None
    with figure(2.9 * len(shown), 2.4, len(shown)) as (made, panels):
        for axes, line in zip(panels, shown, strict=True):
            _ladder(axes, line)
            axes.set_title(line.title + (" (probe)" if line.probe else ""), fontsize=9)
        panels[0].set_ylabel("accuracy, %")
        return to_svg(made, "ladders")


def _steps(line: Line) -> list[tuple[int, LoadedRun]]:
    steps = [(k, line.runs[view]) for k, (view, _) in enumerate(STEPS) if view in line.runs]
    return [(k, run) for k, run in steps if run.metrics["accuracy"] is not None]


def _climbs(line: Line) -> bool:
    return len(_steps(line)) > 1


def _ladder(axes: Any, line: Line) -> None:
    steps = _steps(line)
    axes.axhline(50, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))
    values = [100 * float(run.metrics["accuracy"]) for _, run in steps]
    axes.plot([k for k, _ in steps], values, color=COLOURS["history"], linewidth=1.4, zorder=2)
    for k, run in steps:
        _point(axes, k, run.metrics, "o", COLOURS["history"])
    swapped = line.runs.get("swapped")
    if swapped is not None and swapped.metrics["accuracy"] is not None:
        _point(axes, 2.22, swapped.metrics, "D", COLOURS["swapped"], label="another user's history")
        axes.legend(frameon=False, fontsize=8, loc="upper left", handletextpad=0.2, borderpad=0)
    axes.set_xlim(-0.35, 3.35)
    axes.set_xticks(range(4), [name for _, name in STEPS])
    _percent(axes)


def groups(title: str, found: Mapping[str, Mapping[str, Mapping[str, Any]]], label: str) -> str | None:
    """Return accuracy by group for several models: `found` is model → group → figures."""
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    if len(names) < 2:
        return None
    with figure(6.6, 2.9) as (made, axes):
        axes.axhline(50, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))
        width = min(0.14, 0.7 / max(1, len(found)))
        for number, (model, each) in enumerate(found.items()):
            places = [(k, each[n]) for k, n in enumerate(names) if n in each and each[n]["accuracy"] is not None]
            shift = (number - (len(found) - 1) / 2) * width
            colour, marker = CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)]
            for place, (k, figures) in enumerate(places):
                _point(axes, k + shift, figures, marker, colour, label=model if place == 0 else None)
        counts = {n: max(each[n]["n"] for each in found.values() if n in each) for n in names}
        axes.set_xticks(range(len(names)), [f"{n}\nn = {counts[n]}" for n in names])
        axes.set_xlabel(label)
        axes.set_ylabel("accuracy, %")
        _percent(axes)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        return to_svg(made, title)


def users(found: Mapping[str, Sequence[float]]) -> str | None:
    """Return how accuracy spreads over users: a dot a user, a bar at the median."""
    found = {m: v for m, v in found.items() if len(v) > 1}
    if not found:
        return None
    with figure(6.6, 0.9 + 0.42 * len(found)) as (made, axes):
        axes.axvline(50, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))
        for row, values in enumerate(found.values()):
            seen: dict[float, int] = {}
            for value in sorted(values):
                place = seen[value] = seen.get(value, 0) + 1
                shift = ((place % 2) * 2 - 1) * (place // 2) * 0.4 / max(1, len(values) / 6)
                axes.plot(
                    100 * value,
                    row + max(-0.4, min(0.4, shift)),
                    "o",
                    color=CYCLE[0],
                    alpha=0.45,
                    markersize=3.6,
                    markeredgewidth=0,
                )
            middle = sorted(values)[len(values) // 2]
            axes.plot([100 * middle] * 2, [row - 0.32, row + 0.32], color=CYCLE[1], linewidth=2)
        axes.set_yticks(range(len(found)), list(found))
        axes.invert_yaxis()
        axes.set_xlim(-3, 103)
        axes.set_xlabel("accuracy of each user's items, %; the bar is the median user")
        axes.grid(axis="x")
        return to_svg(made, "users")


def parameters(found: Mapping[str, Sequence[tuple[float, Mapping[str, Any], str]]]) -> str | None:
    """Return accuracy against parameter count; `found` is family → (parameters, figures, model)."""
    if sum(map(len, found.values())) < 2:
        return None
    with figure(6.6, 2.9) as (made, axes):
        axes.axhline(50, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)))
        for number, (family, each) in enumerate(found.items()):
            ordered = sorted(each, key=lambda e: e[0])
            colour, marker = CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)]
            axes.plot([e[0] for e in ordered], [100 * e[1]["accuracy"] for e in ordered], color=colour, linewidth=1)
            for place, (size, figures, _) in enumerate(ordered):
                _point(axes, size, figures, marker, colour, label=family if place == 0 else None)
        axes.set_xscale("log")
        axes.set_xlabel("parameters")
        axes.set_ylabel("accuracy, %")
        _percent(axes)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        return to_svg(made, "parameters")


def _point(axes: Any, x: float, figures: Mapping[str, Any], marker: str, colour: str, label: str | None = None) -> None:
    value, ci = 100 * figures["accuracy"], figures["ci95"]
    if ci is not None:
        axes.plot([x, x], [100 * ci[0], 100 * ci[1]], color=colour, linewidth=1, alpha=0.7, zorder=2)
    axes.plot(x, value, marker, color=colour, markersize=5, label=label, zorder=3, linestyle="none")


def _percent(axes: Any) -> None:
    axes.set_ylim(0, 101)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.grid(axis="y")
