"""Shares, differences and intervals as people read them, on pages and on the command line. Imports nothing."""

from collections.abc import Sequence

NONE = "–"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as `71.9 %`, a missing one as a dash."""
    return NONE if value is None else f"{100 * value:.{digits}f} %"


def points(value: float | None) -> str:
    """Return a difference of shares in percentage points, signed with a true minus: `+3.2`, `−1.0`."""
    return NONE if value is None else f"{100 * value:+.1f}".replace("-", "\u2212")


def interval(ci: Sequence[float] | None, signed: bool = False) -> str:
    """Return an interval of shares as `67.6 – 76.5`, one of differences as `−1.0 … +4.2`."""
    if ci is None:
        return NONE
    low, high = (points(v) if signed else f"{100 * v:.1f}" for v in ci)
    return f"{low} … {high}" if signed else f"{low} – {high}"
