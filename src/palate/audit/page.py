"""The audit as one page and one JSON file, and the words of its figures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.audit.api import Audit
from palate.audit.base import Check, Figure, Unit
from palate.pages import render_page
from palate.pages.numbers import NONE, interval, percent, points
from palate.store import dump

PAGE, JSON = "audit.html", "audit.json"


@dataclass(frozen=True, slots=True)
class Written:
    """Where the audit was written."""

    page: Path
    json: Path


def write_audit(found: Audit, out: str | Path) -> Written:
    """Write `audit.html` and `audit.json` into the folder `out`, which is made if it is not there."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    values: dict[str, Any] = {"title": "Is this benchmark strictly personal?", "a": found, "told": found.as_dict()}
    forms = {"show": show, "span": span, "limits": limits, "cut": cut, "amount": amount, "p_value": p_value}
    (folder / PAGE).write_text(render_page("palate.audit", "audit.html", values | forms), encoding="utf-8")
    (folder / JSON).write_text(dump(values["told"], indent=2) + "\n", encoding="utf-8")
    return Written(folder / PAGE, folder / JSON)


def amount(value: float | None, unit: Unit) -> str:
    """Return a number in its unit: `71.9 %`, `3`, `1.25 ×`, `+4.2`."""
    if value is None:
        return NONE
    forms = {"share": percent(value), "count": f"{value:.0f}", "ratio": f"{value:.2f} ×", "points": points(value)}
    return forms[unit]


def show(figure: Figure, check: Check) -> str:
    """Return a figure as people read it, counts with what they are of."""
    unit = figure.unit or check.unit
    own = amount(figure.value, unit)
    return f"{own} of {figure.n}" if unit == "count" and figure.value is not None else own


def span(figure: Figure, check: Check) -> str:
    """Return a figure's 95 % interval."""
    unit = figure.unit or check.unit
    if figure.ci95 is not None and unit == "ratio":
        return f"{figure.ci95[0]:.2f} – {figure.ci95[1]:.2f}"
    return interval(figure.ci95, signed=unit == "points")


def limits(check: Check) -> str:
    """Return the threshold of a check: `45.0 % – 55.0 %`, `≤ 0`, `≥ 55.0 %`."""
    low, high = check.low, check.high
    if low is not None and high is not None:
        return amount(low, check.unit) if low == high else f"{amount(low, check.unit)} – {amount(high, check.unit)}"
    return f"≥ {amount(low, check.unit)}" if low is not None else f"≤ {amount(high, check.unit)}"


def p_value(figure: Figure) -> str:
    """Return the adjusted p-value of a test, a dash without one."""
    value = figure.adjusted
    return NONE if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def cut(text: str, longest: int = 80) -> str:
    """Return a name of any length so that it fits."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
