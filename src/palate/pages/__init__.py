"""The kit of the HTML pages: one self-contained file, no remote asset, all foreign text escaped for its place."""

from palate.pages.figures import COLOURS, figure, inline, to_svg
from palate.pages.html import asset, environment, json_block, packed_block, render_page

__all__ = [
    "COLOURS",
    "asset",
    "environment",
    "figure",
    "inline",
    "json_block",
    "packed_block",
    "render_page",
    "to_svg",
]
