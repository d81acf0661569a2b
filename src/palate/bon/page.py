"""The page of a best-of-N curve and its figure, which also stands beside it for papers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from palate.pages import figure, inline, render_page, to_svg

PAGE, FIGURE = "bon.html", "scaling.svg"
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5e4fa2", "#8c8c8c")
MARKERS = "osD^vP<>"
DRAWN = 8
# Characters of a name in the legend: what fits beside another name, and what fits at all.
HALF, NAME = 30, 64


def write_page(folder: Path, curve: Mapping[str, Any]) -> None:
    """Write `bon.html` and `scaling.svg` into `folder`."""
    svg = scaling(curve)
    (folder / FIGURE).write_text(svg, encoding="utf-8")
    label = f"Mean grade of the pick of k samples, for {len(curve['systems'])} reward models"
    values = {
        "title": "What your reward models choose",
        "curve": curve,
        "figure": inline(svg, label, "bon-"),
        "last": len(curve["ks"]) - 1,
        "domains": list(curve["systems"][0]["points"][-1]["by_domain"]) if curve["systems"] else [],
        "left_out": max(0, len(curve["systems"]) - DRAWN),
    }
    page = render_page("palate.bon", "bon.html", values, script="bon.js")
    (folder / PAGE).write_text(page, encoding="utf-8")


def scaling(curve: Mapping[str, Any]) -> str:
    """Return the figure: mean grade against k, a line a reward model and view, between random and oracle choice."""
    shown = curve["systems"][:DRAWN]
    names = [_name(one) for one in shown]
    columns = 2 if all(len(name) <= HALF for name in names) else 1
    with figure(5.4, 3.0 + 0.18 * ((3 + len(names)) // columns)) as (made, axes):
        ks = curve["ks"]
        _reference(axes, ks, [curve["random"]["value"]] * len(ks), (0, (4, 3)), "random choice")
        if curve["oracle"]:
            _reference(axes, ks, [p["value"] for p in curve["oracle"]["points"]], (0, (1, 2)), "oracle choice")
        for number, one in enumerate(shown):
            _line(axes, number, names, one)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ks, [str(k) for k in ks])
        axes.minorticks_off()
        axes.set_xlabel("samples to choose from, k")
        axes.set_ylabel("mean grade of the choice, %")
        axes.grid(axis="y")
        made.legend(frameon=False, fontsize=8, loc="outside lower left", ncols=columns)
        return to_svg(made, "scaling")


def _reference(axes: Any, ks: Sequence[int], values: Sequence[float | None], dashes: Any, name: str) -> None:
    known = [(k, 100 * v) for k, v in zip(ks, values, strict=True) if v is not None]
    axes.plot([k for k, _ in known], [v for _, v in known], color="#888888", linewidth=1, linestyle=dashes, label=name)


def _line(axes: Any, number: int, names: Sequence[str], one: Mapping[str, Any]) -> None:
    colour, marker = CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)]
    shift = 2 ** ((number - (len(names) - 1) / 2) * 0.035)
    known = [p for p in one["points"] if p["value"] is not None]
    for p in known:
        if p["ci95"] is not None:
            ends = [100 * p["ci95"][0], 100 * p["ci95"][1]]
            axes.plot([p["k"] * shift] * 2, ends, color=colour, linewidth=0.9, alpha=0.6, zorder=2)
    xs, ys = [p["k"] * shift for p in known], [100 * p["value"] for p in known]
    axes.plot(xs, ys, marker=marker, color=colour, markersize=4, linewidth=1.3, label=names[number], zorder=3)


def _name(one: Mapping[str, Any]) -> str:
    name = f"{one['system']} · {one['view']}" + (" (probe)" if one["probe"] else "")
    return name if len(name) <= NAME else f"{name[: NAME - 33]}…{name[-32:]}"
