"""Matplotlib figures as SVG: one form for papers, and one for pages whose ink follows light and dark mode."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe & Ito (2008): told apart with every common colour vision, on white and on black.
COLOURS = {
    "question": "#8c8c8c",
    "none": "#56b4e9",
    "swapped": "#e69f00",
    "history": "#0072b2",
    "oracle": "#009e73",
    "plan": "#cc79a7",
    "extra": "#d55e00",
}
INK = "#0a0b0c"
THEMED = {INK: "currentColor", "#0072b2": "var(--blue)", "#5e4fa2": "var(--purple)"}
_FONT = re.compile(r"font: ([\d.]+)px[^;\"]*")


@contextmanager
def figure(width: float, height: float, columns: int = 1) -> Iterator[tuple["Figure", Any]]:
    """Yield a figure in the house style and its axes, a list of them if there are several columns.

    Sizes are in inches. Nothing global of matplotlib is changed.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.linewidth": 0.6,
        "font.size": 9,
        "grid.color": "#888888",
        "grid.linewidth": 0.4,
        "grid.alpha": 0.35,
        "svg.fonttype": "none",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
    }
    with rc_context(style):
        made = Figure(figsize=(width, height), layout="constrained")
        yield made, made.subplots(1, columns, sharey=True) if columns > 1 else made.add_subplot()


def to_svg(made: "Figure", name: str) -> str:
    """Return a figure as an SVG document, the same bytes for the same figure."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        buffer = io.StringIO()
        made.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": "Palate"})
    return buffer.getvalue()


def inline(svg: str, label: str) -> Markup:
    """Return an SVG document as an element of a page: named for screen readers, as wide as its place, ink by theme."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" role="img" LABEL>', body, count=1)
    body = _FONT.sub(r"font-size: \1px", body)
    for ink, themed in THEMED.items():
        body = body.replace(ink, themed)
    return Markup(body.replace("LABEL", f'aria-label="{escape(label)}"', 1))
