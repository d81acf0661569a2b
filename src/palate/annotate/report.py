"""The page of a study: what people said of the pairs, how far they agree, and which judge agrees with them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from palate.annotate import words
from palate.annotate.agreement import UNNAMED, Judged, Question, judged, questions
from palate.annotate.reading import FIT, read_annotations
from palate.annotate.results import FLOOR, MARGIN, Person, Results, SideMean, UserOf, results
from palate.data import open_data
from palate.data.label_studio import GENERAL, SIDES
from palate.pages import figure, inline, render_page, to_svg
from palate.pages.numbers import chance, plain, span
from palate.store import dump, refuse_file

PAGE, NUMBERS = "people.html", "people.json"
COLOUR = {"chosen": "#0072b2", "rejected": "#e69f00"}
COLUMNS = (("general", GENERAL), ("fit", (FIT,)))
PAIRS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Told:
    """What was written, and what stands in it."""

    page: Path
    numbers: Path
    results: Results
    questions: tuple[Question, ...]
    judges: tuple[Judged, ...]


def write_people(paths: Sequence[Path], out: Path, runs: Sequence[Path] = (), data: str | None = None) -> Told:
    """Write `people.html` and `people.json` into the folder `out`.

    Args:
        paths: files of annotation rows.
        out: made if it is not there; a page in it is replaced.
        runs: run folders, or folders that hold some, to compare with people.
        data: the data string of the items, if users with several of them are to be resampled as a whole.

    Raises:
        PalateError: rows, runs or data that cannot be read, or `out` is a file.
    """
    refuse_file(out)
    said = read_annotations(paths)
    found = results(said, users_of(data) if data else None)
    asked, judges = questions(said), judged(said, runs) if runs else []
    out.mkdir(parents=True, exist_ok=True)
    values = _values(found, asked, judges)
    (out / PAGE).write_text(render_page("palate.annotate", PAGE, values, "people.js"), encoding="utf-8")
    told = Told(out / PAGE, out / NUMBERS, found, tuple(asked), tuple(judges))
    (out / NUMBERS).write_text(dump(as_dict(told), indent=2) + "\n", encoding="utf-8")
    return told


def as_dict(told: Told) -> dict[str, Any]:
    """Return all figures as plain values, the margin and the floor among them."""
    return {
        "format": 1,
        "margin": MARGIN,
        "floor": FLOOR,
        **asdict(told.results),
        "agreement": [asdict(q) for q in told.questions],
        "judges": [asdict(j) | {"coverage": j.coverage} for j in told.judges],
    }


def users_of(data: str) -> UserOf:
    """Return the user of each item of a data set; of an item that it lacks none is known."""
    entries = open_data(data).entries
    return lambda item: entries[item].user_id if item in entries else None


def _values(found: Results, asked: Sequence[Question], judges: Sequence[Judged]) -> dict[str, Any]:
    return {
        "title": "What people say of the pairs",
        "r": found,
        "questions": asked,
        "judges": judges,
        "words": words,
        "unnamed": UNNAMED,
        "margin": MARGIN,
        "floor": FLOOR,
        "plain": plain,
        "span": span,
        "chance": chance,
        "pairs_shown": PAIRS_SHOWN,
        "columns": [(f"{label}, {side}", names, side) for label, names in COLUMNS for side in SIDES],
        "mean": _mean,
        "means": _means(found),
        "gaps": _gaps(found),
    }


def _mean(person: Person, names: Sequence[str], side: str) -> float | None:
    """Return the mean of a person's means on several criteria."""
    found = [person.means[name][side] for name in names if side in person.means.get(name, {})]
    return fmean(found) if found else None


def _means(found: Results) -> Any:
    """Draw the mean of each criterion and side with its 95 % interval."""
    groups = [(c.name, c.sides) for c in found.criteria] + [(f"{FIT} to the rubric", found.fit.sides)]
    kept = [(name, sides) for name, sides in groups if any(s.mean is not None for s in sides)]
    if not kept:
        return None
    with figure(4.6, 0.7 + 0.5 * len(kept)) as (made, axes):
        for row, (_, sides) in enumerate(kept):
            for shift, side in zip((-0.13, 0.13), sides, strict=True):
                _dot(axes, side, row + shift)
        axes.set_yticks(range(len(kept)), [name for name, _ in kept])
        axes.set_ylim(len(kept) - 0.5, -0.5)
        axes.set_xlim(0.9, 5.1)
        axes.set_xticks(range(1, 6))
        axes.set_xlabel("mean rating, 1 to 5")
        axes.axvline(FLOOR, color="#888888", linewidth=0.8, linestyle="--")
        axes.grid(axis="x")
        axes.legend(*_legend(axes), loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=8)
        return inline(to_svg(made, "means"), "Mean ratings of both answers by criterion", "m-")


def _dot(axes: Any, side: SideMean, height: float) -> None:
    if side.mean is None:
        return
    low, high = side.ci95 or (side.mean, side.mean)
    axes.plot([low, high], [height, height], color=COLOUR[side.side], linewidth=1.6)
    axes.plot([side.mean], [height], "o", color=COLOUR[side.side], markersize=5, label=side.side)


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    marks, names = axes.get_legend_handles_labels()
    first = {name: mark for mark, name in reversed(list(zip(marks, names, strict=True)))}
    return [first[name] for name in COLOUR if name in first], [name for name in COLOUR if name in first]


def _gaps(found: Results) -> Any:
    """Draw each criterion's difference with its 90 % interval against the margin."""
    kept = [c for c in found.criteria if c.equivalence.mean is not None]
    if not kept:
        return None
    with figure(4.6, 0.7 + 0.38 * len(kept)) as (made, axes):
        axes.axvspan(-MARGIN, MARGIN, color="#56b4e9", alpha=0.25, linewidth=0)
        axes.axvline(0, color="#888888", linewidth=0.8)
        for row, one in enumerate(kept):
            test = one.equivalence
            low, high = test.ci90 or (test.mean, test.mean)
            axes.plot([low, high], [row, row], color=COLOUR["chosen"], linewidth=1.6)
            axes.plot([test.mean], [row], "o", color=COLOUR["chosen"], markersize=5)
        axes.set_yticks(range(len(kept)), [c.name for c in kept])
        axes.set_ylim(len(kept) - 0.5, -0.5)
        ends = [abs(v) for c in kept for v in (c.equivalence.ci90 or (c.equivalence.mean or 0.0,))]
        reach = max(2 * MARGIN, 1.1 * max(ends))
        axes.set_xlim(-reach, reach)
        axes.set_xlabel("chosen minus rejected, points of 5")
        axes.grid(axis="x")
        label = f"Differences with 90 % intervals against a margin of {MARGIN:g}"
        return inline(to_svg(made, "gaps"), label, "g-")
