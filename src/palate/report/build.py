"""Putting the report together: page, board and figures."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from palate.data.published import published_rows
from palate.evaluation.measure import LARGEST, SIZES
from palate.evaluation.names import cut
from palate.pages import inline, json_block, packed_block, render_page
from palate.report import browser, figures
from palate.report.board import board_rows, by_length, length_groups
from palate.report.lines import LADDER, Line, headline_view, lines
from palate.report.load import Board, LoadedRun, load_boards
from palate.report.scorecards import find_scorecards
from palate.spec import slug
from palate.store import dump

DRAWN = 8
PAGE, BOARD, FIGURES = "report.html", "board.json", "figures"
NO_BROWSER = "the data is not at hand, so there is no item browser"
_SIZE = re.compile(r"[-_ ]?\d+(?:\.\d+)?[bBmM](?![A-Za-z])")


@dataclass(frozen=True, slots=True)
class Report:
    """What was written."""

    page: Path
    board: Path
    figures: tuple[Path, ...]
    boards: tuple[Board, ...]
    unread: tuple[str, ...] = ()


def write_report(paths: Sequence[str | Path], out: str | Path, data: Sequence[str] = ()) -> Report:
    """Write `report.html`, `board.json` and `figures/*.svg` into the folder `out`.

    Args:
        paths: run folders, or folders that hold some.
        out: made if it is not there; a report in it is replaced.
        data: data strings, for runs whose data is elsewhere than their record says.

    Raises:
        PalateError: no run that can be read. Single folders that cannot be read are left out and named.
    """
    unread: list[str] = []
    boards = load_boards([Path(p) for p in paths], data, unread)
    cards = find_scorecards([Path(p) for p in paths], unread)
    folder = Path(out)
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    drawn = _Figures()
    sections = [_section(number, board, drawn) for number, board in enumerate(boards)]
    values = {
        "title": "What your reward models see of the user",
        "sections": sections,
        "unread": unread,
        "cards": cards,
        "not_ours": published_rows("accuracy"),
    }
    page = render_page("palate.report", "report.html", values, script="report.js")
    (folder / PAGE).write_text(page, encoding="utf-8")
    rows = [row for section in sections for row in section["rows"]]
    (folder / BOARD).write_text(dump({"format": 1, "rows": rows, "unread": unread}, indent=2) + "\n", encoding="utf-8")
    saved = []
    for name, svg in drawn.saved.items():
        path = folder / FIGURES / f"{name}.svg"
        path.write_text(svg, encoding="utf-8")
        saved.append(path)
    return Report(folder / PAGE, folder / BOARD, tuple(saved), tuple(boards), tuple(unread))


class _Figures:
    """Keeps each figure for saving, under a file name of its own, and returns it as an element of the page."""

    def __init__(self) -> None:
        self.saved: dict[str, str] = {}
        self._taken: set[str] = set()
        self.prefix = ""

    def __call__(self, svg: str | None, name: str, label: str, key: str = "") -> Any:
        """Keep `svg`, if there is one; `key` tells figures apart whose names are alike."""
        if svg is None:
            return None
        wanted = slug(self.prefix + name)
        wanted = wanted if wanted.lower() not in self._taken else slug(f"{wanted[:50]}-{key[:8]}")
        self._taken.add(wanted.lower())
        self.saved[wanted] = svg
        return inline(svg, label, f"f{len(self.saved)}-")


def _section(number: int, board: Board, keep: _Figures) -> dict[str, Any]:
    """Return all that the page shows of one data set."""
    found = lines(board)
    board = replace(board, runs=_ordered(found))
    keep.prefix = f"{number}-" if number else ""
    heads = [(x, x.head) for x in found if x.head is not None and x.head.metrics["accuracy"] is not None]
    return {
        "number": number,
        "name": cut(board.name),
        "digest": board.digest,
        "view": headline_view(board),
        "lines": found,
        "models": len({r.line[0] for r in board.runs}),
        "views": _views(board),
        "heads": heads,
        "domains": {d: cut(d.replace("_", " ")) for _, r in heads for d in r.metrics["by_domain"]},
        "left_out": max(0, len(heads) - DRAWN),
        "count": len(board.data) if board.data else None,
        "notes": list(board.data.notes) if board.data else [NO_BROWSER],
        "twins": any(r.metrics["both_right"] is not None for r in board.runs),
        "runs": board.runs,
        "seated": [r for r in board.runs if r.metrics.get("position")],
        "rows": board_rows(board, found),
        "blocks": _blocks(number, board),
        **_ladders(found, keep),
        **_drawings(board, heads, keep),
    }


def _ordered(found: Sequence[Line]) -> tuple[LoadedRun, ...]:
    """Return the runs in the order of the table, within a line from little of the user to much."""
    ordered: dict[int, LoadedRun] = {}
    for line in found:
        views = [*(v for v in LADDER if v in line.runs), *(v for v in line.runs if v not in LADDER)]
        ordered.update({id(line.runs[v]): line.runs[v] for v in views if id(line.runs[v]) not in ordered})
    return tuple(ordered.values())


def _views(board: Board) -> list[str]:
    found = dict.fromkeys(r.view for r in board.runs)
    return [*(v for v in LADDER if v in found), *(v for v in found if v not in LADDER)]


def _ladders(found: Sequence[Line], keep: _Figures) -> dict[str, Any]:
    kept = [(x, keep(figures.ladder(x), f"ladder-{x.title}", f"View ladder of {x.title}", x.key)) for x in found]
    keep(figures.ladders(found), "ladders", "View ladders")
    return {"ladders": [(x, svg) for x, svg in kept if svg]}


def _drawings(board: Board, heads: Sequence[tuple[Line, LoadedRun]], keep: _Figures) -> dict[str, Any]:
    """Return the figures about the headline view, of the first models of the table."""
    top = [(x.title, r) for x, r in heads[:DRAWN]]
    sizes = figures.groups("history-size", [(t, _in_order(r)) for t, r in top], "posts in the user's history")
    spans = length_groups(board)
    lengths = [(t, by_length(board, r, spans)) for t, r in top] if spans else []
    length = figures.groups("length", lengths, "chosen answer, against the rejected one")
    people = [(t, _users(r), r.metrics["users"]["median"]) for t, r in top if r.metrics["users"]]
    return {
        "sizes": keep(sizes, "history-size", "Accuracy by size of the history"),
        "lengths": keep(length, "length", "Accuracy by difference in length"),
        "users": keep(figures.users(people), "users", "Accuracy of each user's items"),
        "parameters": keep(figures.parameters(_parameters(heads)), "parameters", "Accuracy against parameter count"),
    }


def _blocks(number: int, board: Board) -> list[Any]:
    """Return the data of the item browser."""
    if board.data is None:
        return []
    packed = [packed_block(f"chunk-{number}-{k}", c) for k, c in enumerate(browser.chunks(board))]
    return [json_block(f"overview-{number}", browser.overview(board)), *packed]


def _in_order(run: LoadedRun) -> dict[str, Any]:
    sizes = run.metrics["by_history_size"]
    return {name: sizes[name] for name in (*(n for _, n in SIZES), LARGEST) if name in sizes}


def _users(run: LoadedRun) -> list[float]:
    return [u["accuracy"] for u in run.metrics["by_user"].values() if u["accuracy"] is not None]


def _parameters(heads: Sequence[tuple[Line, LoadedRun]]) -> dict[str, list[tuple[float, Mapping[str, Any]]]]:
    """Return family → (parameters, figures); a family is a name without the parts that tell its size."""
    found: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
    for line, run in heads:
        size = run.record.config.model.parameters
        if size:
            found.setdefault(family_of(line.title), []).append((float(size), run.metrics))
    return found


def family_of(title: str) -> str:
    """Return a model's name without the parts that tell its size: `hf/org/Reward-V2-8B` is of `org/Reward-V2`."""
    name = title.partition("/")[2] or title
    return _SIZE.sub("", name) or name
