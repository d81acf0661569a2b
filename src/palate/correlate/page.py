"""The comparison as one page and one JSON file."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from palate.correlate.api import Correlation
from palate.correlate.figures import flow, power_curves, scatters
from palate.correlate.power import Power
from palate.correlate.words import TITLES
from palate.data.published import published_rows
from palate.evaluation.names import cut
from palate.pages import inline, render_page
from palate.pages.numbers import chance, plain, span
from palate.store import dump

PAGE, JSON = "correlate.html", "correlate.json"


@dataclass(frozen=True, slots=True)
class Written:
    """Where it was written."""

    page: Path
    json: Path


def write_correlation(found: Correlation, out: str | Path, power: Power | None = None) -> Written:
    """Write `correlate.html` and `correlate.json` into the folder `out`, which is made if it is not there."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, Any] = {"scatters": [], "flow": None, "power_figure": None}
    for number, (name, svg) in enumerate(scatters(found)):
        drawn["scatters"].append(inline(svg, name, f"s{number}-"))
    if (ranks := flow(found)) is not None:
        drawn["flow"] = inline(ranks, "Ranks of the models in each source", "flow-")
    if power is not None and (svg_power := power_curves(power)):
        drawn["power_figure"] = inline(svg_power, "Power over the number of models", "power-")
    forms = {"plain": plain, "span": span, "chance": chance, "cut": cut, "titles": TITLES}
    values = {"title": "Does the benchmark predict?", "c": found, "power": power, **drawn, **forms}
    values["not_ours"] = published_rows("agreement")
    (folder / PAGE).write_text(render_page("palate.correlate", "correlate.html", values), encoding="utf-8")
    (folder / JSON).write_text(dump(told(found, power), indent=2) + "\n", encoding="utf-8")
    return Written(folder / PAGE, folder / JSON)


def told(found: Correlation, power: Power | None = None) -> dict[str, Any]:
    """Return the content of `correlate.json`."""
    not_ours = [asdict(row) for row in published_rows("agreement")]
    return found.as_dict() | {"power": power.as_dict() if power else None, "not_ours": not_ours}
