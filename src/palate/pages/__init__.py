"""The kit of the HTML pages: one self-contained file, no remote asset, all foreign text escaped for its place."""

from palate.pages.figures import COLOURS, figure, inline, to_svg
from palate.pages.html import json_block, packed_block, render_page

__all__ = ["COLOURS", "figure", "inline", "json_block", "packed_block", "render_page", "to_svg"]
