"""What commands print: tables and JSON on standard output, progress on standard error."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from palate.pages.numbers import interval as interval
from palate.pages.numbers import percent
from palate.pages.numbers import points as points

if TYPE_CHECKING:
    from rich.console import Console

    from palate.evaluation import Progress

PIPED = 160
share = percent
EVERY = 10.0


def print_json(value: Any) -> None:
    """Print strict JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))


def print_table(title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; `columns` are names and `left` or `right`.

    Where the terminal is too narrow for it, each row becomes a short paragraph, so that nothing is cut.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = PIPED
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.show_header = any(name for name, _ in columns)
    for name, side in columns:
        table.add_column(name, justify="left" if side == "left" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    if Measurement.get(console, console.options.update(max_width=10_000), table).maximum <= console.width:
        console.print(table)
    else:
        _paragraphs(console, title, columns, rows)


def _paragraphs(
    console: "Console", title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]
) -> None:
    console.print(title, style="bold")
    for row in rows:
        cells = list(zip(columns, row, strict=True))
        console.print(" · ".join(cell for (_, side), cell in cells if side == "left" and cell))
        figures = [f"{name} {cell}".strip() for (name, side), cell in cells if side != "left" and cell]
        if figures:
            console.print("  " + ", ".join(figures).replace("\n", " "), soft_wrap=False)
    console.print()


@contextmanager
def progress_bar() -> Iterator[Callable[["Progress"], None]]:
    """Show how far each run is on standard error, with rate and time left; lines instead where it is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def seen(now: "Progress") -> None:
            if now.run not in tasks:
                tasks[now.run] = bars.add_task(_short(now.run), total=now.total - now.before, rate="")
            task = bars.tasks[bars.task_ids.index(tasks[now.run])]
            rate = f"{task.speed:.1f}/s" if task.speed else ""
            bars.update(tasks[now.run], completed=now.done - now.before, rate=rate)
            if now.done == now.total:
                bars.update(tasks[now.run], visible=False)

        yield seen


class _Lines:
    """Tells progress in lines: the start of each run, then every few seconds how far, how fast, and what is left."""

    def __init__(self) -> None:
        self._started = self._told = 0.0

    def __call__(self, now: "Progress") -> None:
        clock = time.monotonic()
        if now.done == now.before:
            self._started = self._told = clock
            again = f", {now.before} done before" if now.before else ""
            if now.before < now.total:
                typer.echo(f"{now.run}: {now.total} items{again}", err=True)
        elif clock - self._told >= EVERY:
            self._told = clock
            rate = (now.done - now.before) / (clock - self._started)
            left = (now.total - now.done) / rate
            typer.echo(f"{now.run}: {now.done}/{now.total}, {rate:.1f}/s, {left:.0f} s left", err=True)


def _short(name: str) -> str:
    return name.rpartition("--")[0] or name


def figures(found: Mapping[str, Any]) -> list[str]:
    """Return the cells n, coverage, accuracy, interval of a group's figures."""
    return [str(found["n"]), share(found["coverage"]), share(found["accuracy"]), interval(found["ci95"])]


def cell(found: Mapping[str, Any] | None) -> str:
    """Return accuracy over its interval as one cell of a group table."""
    return "–" if found is None else f"{share(found['accuracy'])}\n{interval(found['ci95'])}"
