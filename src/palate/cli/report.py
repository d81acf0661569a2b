"""`palate report`."""

from pathlib import Path

import typer


def command(
    runs: list[Path] = typer.Argument(..., help="Run folders, or folders that hold some."),
    out: Path = typer.Option(Path("report"), help="Folder for report.html, board.json and figures/."),
    data: list[str] = typer.Option([], help="Where the data is, if not where the runs say. Repeatable."),
    json: bool = typer.Option(False, "--json", help="Print board.json."),
) -> None:
    """Write one self-contained page and a board from run folders, own or sent by others."""
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
