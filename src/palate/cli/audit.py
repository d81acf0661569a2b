"""`palate data audit`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from palate.cli.output import print_json, print_table, progress_bar

if TYPE_CHECKING:
    from palate.audit import Audit


def command(
    data: str = typer.Argument(..., help="A data string."),
    runs: Path | None = typer.Option(None, help="Folder of runs on these data: what is solved without the user."),
    against: list[str] = typer.Option(
        [], help="Other data, such as the train split, to share nothing with. Repeatable."
    ),
    out: Path = typer.Option(Path("audit"), help="Folder for audit.html and audit.json."),
    seed: int = typer.Option(0, min=0, help="Of resampling and of the other users that histories are compared with."),
    json: bool = typer.Option(False, "--json", help="Print audit.json."),
) -> None:
    """Is the preference strictly personal? Look for artefacts and write a page; code 1 if a check is flagged."""
    from palate.audit import audit, write_audit
    from palate.evaluation import Progress
    from palate.store import refuse_file

    refuse_file(out)
    with progress_bar() as bar:
        found = audit(
            data, runs, seed, against=against, seen=lambda done, total: bar(Progress("audit", done, total, 0))
        )
    written = write_audit(found, out)
    if json:
        print_json(found.as_dict())
    else:
        _table(found)
        typer.echo(f"Page: {written.page}\nFigures: {written.json}")
    if found.flagged:
        raise typer.Exit(1)


def _table(found: "Audit") -> None:
    from palate.audit.page import cut, limits, show, span

    columns = [("check", "left"), ("figure", "right"), ("95 %", "right"), ("threshold", "right"), ("verdict", "left")]
    rows = []
    for check in found.checks:
        verdict = check.verdict + (f" ({cut(check.reason, 48)})" if check.reason else "")
        rows.append([check.title, show(check.whole, check), span(check.whole, check), limits(check), verdict])
    print_table(cut(found.name), columns, rows)
    counts = found.as_dict()["counts"]
    typer.echo(f"{counts['flagged']} flagged, {counts['ok']} ok, {counts['undefined']} undefined")
    for note in found.notes:
        typer.echo(f"note: {note}")
