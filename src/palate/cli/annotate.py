"""`palate annotate serve | status | export`; what is made of the rows is in `annotated`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from palate.cli import annotated
from palate.cli.output import print_json, print_table

if TYPE_CHECKING:
    from palate.annotate import Study

app = typer.Typer(help="Ask people which answer a user would prefer.", no_args_is_help=True, rich_markup_mode=None)
annotated.mount(app)
STUDY = typer.Argument(..., help="The study's folder.")


@app.command()
def serve(
    data: str | None = typer.Option(None, help="A data string, as for eval. Needed for a new study."),
    out: Path = typer.Option(Path("study"), help="The study's folder; if it is there, the study goes on."),
    annotators: str = typer.Option("", help="Names, as in ana,ben,cy. Who is in the study already keeps their items."),
    overlap: int | None = typer.Option(None, min=1, help="How many annotators see each item (3)."),
    limit: int | None = typer.Option(None, min=1, help="Only the first N items."),
    attention: str | None = typer.Option(
        None, help="Data whose items carry `expected`, or auto:N to set N items aside and make them of these."
    ),
    seed: int | None = typer.Option(None, min=0, help="Of order, seats and assignment (0)."),
    retriever: str | None = typer.Option(None, help="bm25, recency, dense[/model], stored/<folder> (bm25)."),
    k: int | None = typer.Option(None, min=1, help="Posts shown for each item (10)."),
    host: str = typer.Option("127.0.0.1", help="The address to serve on; the default is reached from here only."),
    port: int = typer.Option(8310, min=0, max=65535, help="The port; 0 takes a free one."),
) -> None:
    """Make a study, or go on with one, and serve its pages: one link for each annotator."""
    from palate.annotate import Wanted, open_study
    from palate.annotate import serve as server

    server.need_web()
    wanted = Wanted(data, overlap, limit, attention, seed, retriever, k)
    names = [name for name in annotators.split(",") if name.strip()]
    with open_study(out, wanted, names, seen=_seen) as study:
        if not server.is_loopback(host):
            typer.echo(
                f"warning: {host} can be reached from other machines, without encryption. Whoever sees a link can read "
                "the study and answer in that name; put a server with TLS in front of it.",
                err=True,
            )
        server.serve(study, host, port, lambda links: _print_links(study, links))


def _seen(done: int, total: int) -> None:
    if done == total or done % 500 == 0:
        typer.echo(f"{done} of {total} items are ready", err=True)


def _print_links(study: "Study", links: dict[str, str]) -> None:
    items, checks = study.book.items(), study.book.items(attention=True)
    told = f"{study.folder}: {len(items)} items, {len(links)} annotators, overlap {study.config['overlap']}"
    typer.echo(told + (f", {len(checks)} attention items" if checks else ""), err=True)
    if bare := sum(steps == 1 for steps in items.values()):
        typer.echo(f"{bare} items have no rubric and so no second step", err=True)
    if len(links) < study.config["overlap"]:
        typer.echo(f"fewer annotators than the overlap: each item has {len(links)}", err=True)
    for name, link in links.items():
        typer.echo(f"{name}\t{link}")
    typer.echo("Serving. Ctrl-C stops it; the same --out goes on.", err=True)


@app.command()
def status(
    study: Path = STUDY,
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Show how far each annotator is; safe while the study is served."""
    from dataclasses import asdict

    from palate.annotate import read_status

    found = read_status(study)
    if json:
        print_json([asdict(one) for one in found])
        return
    columns = [("annotator", "left"), ("items", "right"), ("done", "right"), ("begun", "right")]
    columns += [("attention passed", "right"), ("corrected", "right"), ("after the rubric", "right")]
    rows = [
        [
            *(s.annotator, str(s.items), str(s.done), str(s.begun)),
            f"{s.passed} of {s.checked}" if s.checked else "–",
            *(str(s.corrected), str(s.after_rubric)),
        ]
        for s in found
    ]
    print_table(str(study), columns, rows)


@app.command()
def export(
    study: Path = STUDY,
    out: Path | None = typer.Option(None, help="The file to write; default annotations.jsonl in the folder; - prints."),
    partial: bool = typer.Option(False, "--partial", help="Also steps that were begun but not finished."),
) -> None:
    """Write what people answered, one JSON object a finished step; safe while the study is served."""
    from palate.annotate import export_rows
    from palate.annotate.export import ROWS

    made = export_rows(study, out, partial=partial)
    typer.echo(f"{made.rows} rows written to {out or study / ROWS}", err=True)
    if made.unfinished:
        typer.echo(f"{made.unfinished} steps were begun but not finished: left out (--partial takes them)", err=True)
    if made.unbegun:
        typer.echo(f"{made.unbegun} steps were not begun", err=True)
