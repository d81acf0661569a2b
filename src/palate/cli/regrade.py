"""`palate regrade`."""

from pathlib import Path

import typer

from palate.cli.output import figures, print_json, print_table


def command(
    runs: list[Path] = typer.Argument(..., help="Run folders of judges or raters."),
    parser: str | None = typer.Option(
        None, help="Another parser: verdict, brackets, letter, … (rate: score, rating, …)."
    ),
    tie: str | None = typer.Option(None, help="exact, agree (both orders must), or a margin around one half."),
    data: str | None = typer.Option(None, help="Where the data is, if not where the runs say."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Decide stored replies again by another parser or tie rule; no call is repeated, old rows are kept."""
    from palate.evaluation.regrade import regrade

    done = [regrade(path, data, parser=parser, tie=tie) for path in runs]
    if json:
        print_json([{"folder": str(d.folder), "before": d.before, "after": d.after} for d in done])
        return
    columns = [("model", "left"), ("view", "left"), ("", "left"), ("n", "right"), ("coverage", "right")]
    columns += [("accuracy", "right"), ("95 %", "right")]
    rows = [
        [d.model, d.view, name, *figures(m)] for d in done for name, m in (("before", d.before), ("after", d.after))
    ]
    print_table("Graded again", columns, rows)
