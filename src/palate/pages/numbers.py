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


def plain(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """Return a number that is no share as `0.712`, or signed as `+0.31`; a missing one as a dash."""
    return NONE if value is None else f"{value:{'+' if signed else ''}.{digits}f}".replace("-", "\u2212")


def span(ci: Sequence[float] | None, digits: int = 2, signed: bool = False) -> str:
    """Return an interval of such numbers as `0.61 … 0.80`, a missing one as a dash."""
    return NONE if ci is None else " … ".join(plain(v, digits, signed) for v in ci)


def chance(p: float | None) -> str:
    """Return a p-value as `0.031`, a very small one as `< 0.001`."""
    return NONE if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
