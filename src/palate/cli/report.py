"""`palate report`."""

from pathlib import Path

import typer

from palate.cli.output import print_json
from palate.errors import SpecError

OUT = Path("report")


def command(
    runs: list[Path] | None = typer.Argument(None, help="Run folders, or folders that hold some.", show_default=False),
    out: Path = typer.Option(OUT, help="Folder for report.html, board.json and figures/."),
    data: list[str] = typer.Option([], help="Where the data is, if not where the runs say. Repeatable."),
    compare: tuple[Path, Path] | None = typer.Option(
        None, metavar="RUN RUN", help="Instead of a page: do two runs of the same items agree?"
    ),
    tolerance: float | None = typer.Option(
        None, help="With --compare: leave with code 1 over this gap of a score, or if a pair flips."
    ),
    json: bool = typer.Option(False, "--json", help="Print board.json, or the comparison."),
) -> None:
    """Write one self-contained page and a board from run folders, own or sent by others."""
    if compare is not None:
        if runs or data or out != OUT:
            raise SpecError("--compare takes two runs and writes no page: no other runs, --out or --data.")
        _compare(compare, tolerance, json)
        return
    if not runs:
        raise SpecError("no runs given: name run folders, or folders that hold some.")
    if tolerance is not None:
        raise SpecError("--tolerance needs --compare.")
    _write(runs, out, data, json)


def _write(runs: list[Path], out: Path, data: list[str], json: bool) -> None:
    from palate.report import write_report

    made = write_report(runs, out, data)
    if json:
        typer.echo(made.board.read_text(encoding="utf-8"), nl=False)
        return
    for text in made.unread:
        typer.echo(f"left out: {text}")
    for board in made.boards:
        typer.echo(f"{board.name}: {len(board.runs)} runs")
        for run in board.runs:
            for mark in run.marks:
                typer.echo(f"  {run.title} {run.view}: {mark}")
    typer.echo(
        f"Page: {made.page}\nBoard: {made.board}\nFigures: {len(made.figures)} in {made.page.parent / 'figures'}"
    )


def _compare(runs: tuple[Path, Path], tolerance: float | None, json: bool) -> None:
    from palate.cli.compared import check_line, compared_lines
    from palate.report import compare_runs

    found = compare_runs(*runs, tolerance=tolerance)
    if json:
        print_json(found.as_dict())
    else:
        for line in compared_lines(found):
            typer.echo(line)
    if tolerance is not None:
        typer.echo(check_line(found), err=json or not found.passed)
    if found.passed is False:
        raise typer.Exit(1)
