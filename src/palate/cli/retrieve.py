"""`palate retrieve`."""

from pathlib import Path

import typer

from palate.cli.output import print_json, print_table


def command(
    data: str = typer.Option("sample", help="A data string, as for eval."),
    retriever: str = typer.Option("bm25", help="bm25, recency, dense[/model]."),
    k: int = typer.Option(10, min=1, help="Posts to keep for each item."),
    out: Path = typer.Option(Path("rankings"), help="Folder for the rankings; use it as --retriever stored/<folder>."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Rank every user's posts for their question once, for reuse."""
    from palate.data import open_data
    from palate.retrieval import make_retriever
    from palate.retrieval.rankings import store_all

    opened = open_data(data)
    about = {"data": opened.name, "data_digest": opened.digest}
    record = store_all(out, opened, make_retriever(retriever), k, about)
    if json:
        print_json(record)
        return
    rows = [[name, str(value)] for name, value in record["retriever"].items() if value is not None]
    rows += [[name, str(record[name])] for name in ("k", "items", "cold_start", "lost")]
    print_table(f"Rankings of {opened.name}", [("", "left"), ("", "left")], rows)
    typer.echo(f"Use them: palate eval --retriever stored/{out}")
