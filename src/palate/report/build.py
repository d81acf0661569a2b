"""Putting the report together: page, board and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.evaluation.measure import LARGEST, SIZES
from palate.pages import json_block, packed_block, render_page
from palate.pages.figures import inline
from palate.report import browser, figures
from palate.report.board import LADDER, board_rows, by_length, headline_view, lines
from palate.report.load import Board, LoadedRun, load_boards
from palate.spec import slug
from palate.store import dump

DRAWN = 8
PAGE, BOARD, FIGURES = "report.html", "board.json", "figures"


@dataclass(frozen=True, slots=True)
class Report:
    """What was written."""

    page: Path
    board: Path
    figures: tuple[Path, ...]
    boards: tuple[Board, ...]


def write_report(paths: Sequence[str | Path], out: str | Path, data: Sequence[str] = ()) -> Report:
    """Write `report.html`, `board.json` and `figures/*.svg` into the folder `out`.

    Args:
        paths: run folders, or folders that hold some.
        out: made if it is not there; a report in it is replaced.
        data: data strings, for runs whose data is elsewhere than their record says.

    Raises:
        PalateError: no run, or one that cannot be read.
    """
    boards = load_boards([Path(p) for p in paths], data)
    folder = Path(out)
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    drawn: dict[str, str] = {}
    sections = [_section(number, board, drawn) for number, board in enumerate(boards)]
    values = {"title": "What your reward models see of the user", "sections": sections}
    (folder / PAGE).write_text(render_page("palate.report", "report.html", values), encoding="utf-8")
    rows = [row for section in sections for row in section["rows"]]
    (folder / BOARD).write_text(dump({"format": 1, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    saved = []
    for name, svg in drawn.items():
        path = folder / FIGURES / f"{slug(name)}.svg"
        path.write_text(svg, encoding="utf-8")
        saved.append(path)
    return Report(folder / PAGE, folder / BOARD, tuple(saved), tuple(boards))


def _section(number: int, board: Board, drawn: dict[str, str]) -> dict[str, Any]:
    """Return all that the page shows of one data set."""
    found = lines(board)
    view = headline_view(board)
    heads = {x.title: x.head for x in found if x.head is not None and x.head.metrics["accuracy"] is not None}
    top = dict(list(heads.items())[:DRAWN])
    keep = _Figures(f"{number}-" if number else "", drawn)
    ladders = [(x, keep(figures.ladder(x), f"ladder-{x.title}", f"View ladder of {x.title}")) for x in found]
    keep(figures.ladders(found), "ladders", "View ladders")
    sizes = {t: _in_order(r.metrics["by_history_size"]) for t, r in top.items()}
    lengths = {t: by_length(board, r) for t, r in top.items()} if board.data else {}
    people = {t: _users(r) for t, r in top.items()}
    return {
        "number": number,
        "name": board.name,
        "digest": board.digest,
        "view": view,
        "lines": found,
        "views": [v for v in LADDER if any(v in x.runs for x in found)] + _others(board),
        "ladders": [(x, svg) for x, svg in ladders if svg],
        "domains": list(dict.fromkeys(d for r in heads.values() for d in r.metrics["by_domain"])),
        "heads": heads,
        "left_out": max(0, len(heads) - DRAWN),
        "sizes": keep(
            figures.groups("history-size", sizes, "posts in the user's history"),
            "history-size",
            "Accuracy by size of the history",
        ),
        "lengths": keep(
            figures.groups("length", lengths, "chosen answer, against the rejected one"),
            "length",
            "Accuracy by difference in length",
        ),
        "users": keep(figures.users(people), "users", "Accuracy of each user's items"),
        "parameters": keep(figures.parameters(_parameters(heads)), "parameters", "Accuracy against parameter count"),
        "count": len(board.data) if board.data else None,
        "notes": list(board.data.notes) if board.data else ["the data is not at hand, so there is no item browser"],
        "twins": any(r.metrics["both_right"] is not None for r in board.runs),
        "runs": board.runs,
        "rows": board_rows(board, found),
        **_browser(number, board),
    }


class _Figures:
    """Keeps each figure for saving and returns it as an element of the page."""

    def __init__(self, prefix: str, drawn: dict[str, str]) -> None:
        self._prefix = prefix
        self._drawn = drawn

    def __call__(self, svg: str | None, name: str, label: str) -> Any:
        if svg is None:
            return None
        self._drawn[self._prefix + name] = svg
        return inline(svg, label)


def _browser(number: int, board: Board) -> dict[str, Any]:
    if board.data is None:
        return {"blocks": []}
    packed = [packed_block(f"chunk-{number}-{k}", c) for k, c in enumerate(browser.chunks(board))]
    return {"blocks": [json_block(f"overview-{number}", browser.overview(board)), *packed]}


def _in_order(sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: sizes[name] for name in (*(n for _, n in SIZES), LARGEST) if name in sizes}


def _others(board: Board) -> list[str]:
    return [v for v in dict.fromkeys(r.view for r in board.runs) if v not in LADDER]


def _users(run: LoadedRun) -> list[float]:
    return [u["accuracy"] for u in run.metrics["by_user"].values() if u["accuracy"] is not None]


def _parameters(heads: Mapping[str, LoadedRun]) -> dict[str, list[tuple[float, Mapping[str, Any], str]]]:
    """Return family → (parameters, figures, model); a family is a name without the parts that tell its size."""
    found: dict[str, list[tuple[float, Mapping[str, Any], str]]] = {}
    for title, run in heads.items():
        size = run.record["config"]["model_identity"].get("parameters")
        if size:
            found.setdefault(family_of(title), []).append((float(size), run.metrics, title))
    return found


def family_of(title: str) -> str:
    """Return a model's name without the parts that tell its size: `hf/org/Reward-V2-8B` is of `org/Reward-V2`."""
    import re

    name = title.partition("/")[2] or title
    return re.sub(r"[-_ ]?\d+(?:\.\d+)?[bBmM](?![A-Za-z])", "", name) or name
