"""Matplotlib figures as SVG: one form for papers, and one for pages whose ink follows light and dark mode."""

import io
import re
import warnings
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
THEMED = {
    INK: "currentColor",
    "#0072b2": "var(--blue)",
    "#5e4fa2": "var(--purple)",
    "#e69f00": "var(--amber)",
    "#56b4e9": "var(--sky)",
}
_FONT = re.compile(r"font: ([\d.]+)px[^;\"]*")
_IDS = re.compile(r"( id=\"|url\(#|href=\"#)")
_COLOUR = re.compile("|".join(THEMED))
_TAG = re.compile(r"<[^>]*>")
_VIEW_BOX = re.compile(r'viewBox="([^"]+)"')


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
        "text.parse_math": False,
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

    quiet = warnings.catch_warnings()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}), quiet:
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # names are kept as text, so the reader's fonts decide
        buffer = io.StringIO()
        made.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": "Palate"})
    return buffer.getvalue()


def inline(svg: str, label: str, prefix: str) -> Markup:
    """Return an SVG document as an element of a page: named for screen readers, as wide as its place, ink by theme.

    Args:
        svg: from `to_svg`.
        label: what it shows.
        prefix: put before each id of the drawing, so that no two of a page share one.
    """
    body = svg[svg.index("<svg") :]
    box = _VIEW_BOX.search(body)
    assert box is not None, "not a drawing of matplotlib"
    inner = re.sub(r"<metadata>.*?</metadata>", "", body[body.index(">") + 1 :], flags=re.DOTALL)
    themed = _TAG.sub(lambda tag: _on_page(tag[0], prefix), inner)
    return Markup(f'<svg viewBox="{box[1]}" role="img" aria-label="{escape(label)}">{themed}')


def _on_page(tag: str, prefix: str) -> str:
    own = _IDS.sub(rf"\g<1>{prefix}", tag)
    return _COLOUR.sub(lambda colour: THEMED[colour[0]], _FONT.sub(r"font-size: \1px", own))
