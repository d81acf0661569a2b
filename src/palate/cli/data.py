"""`palate data check | show | convert`."""

from pathlib import Path

import typer

from palate.cli.output import print_json, print_table, share

app = typer.Typer(
    help="Look at data, check it, bring it into Palate's form.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def check(
    data: str = typer.Argument(..., help="A data string."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Read every record and say what is wrong (code 1) and what is odd."""
    from palate.data.check import check_data

    found = check_data(data)
    if json:
        print_json(found.as_dict())
    else:
        rows = [[name, str(value)] for name, value in found.figures.items()]
        print_table(found.name, [("", "left"), ("", "left")], rows)
        for warning in found.warnings:
            typer.echo(f"warning: {warning}")
        for problem in found.problems:
            typer.echo(f"problem: {problem}")
        more = found.problem_count - len(found.problems)
        typer.echo(f"… and {more} more problems" if more else "no problems" if not found.problems else "")
        domains = ", ".join(f"{name} {share(value)}" for name, value in found.length_accuracy.items())
        typer.echo(f"the longer answer is the chosen one: {domains}" if domains else "no pairs")
    if found.problem_count:
        raise typer.Exit(1)


@app.command()
def show(
    data: str = typer.Argument(..., help="A data string."),
    item: str | None = typer.Option(None, help="An id; default is the first item."),
    view: str = typer.Option("history", help="A view string; what a reward model would read is shown."),
    retriever: str = typer.Option("bm25", help="bm25, recency, dense[/model], stored/<folder>."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Show exactly what a reward model reads of an item under a view, and the answers."""
    from palate.data import open_data
    from palate.errors import PalateError
    from palate.retrieval import make_retriever
    from palate.views import Looker, NoContext, View

    opened = open_data(data)
    name = item or opened.ids[0]
    query = Looker(opened, make_retriever(retriever)).query(name, View.parse(view))
    if isinstance(query, NoContext):
        raise PalateError(f"item '{name}' under '{view}': {query.reason}.")
    entry, answers = opened.entry(name), opened.answers(name)
    if json:
        messages = [{"role": m.role, "content": m.content} for m in query.messages]
        texts = {a.id: a.text for a in answers}
        print_json({"id": name, "view": query.view, "user_id": entry.user_id, "messages": messages, "answers": texts})
        return
    typer.echo(
        f"{name} · user {entry.user_id or '–'} · {entry.domain} · {entry.posts} posts · twin {entry.twin or '–'}\n"
    )
    for message in query.messages:
        typer.echo(f"── {message.role} ──\n{message.content}\n")
    for answer in answers:
        typer.echo(f"── {answer.role} ({len(answer.text.split())} words) ──\n{answer.text}\n")


@app.command()
def convert(
    data: str = typer.Argument(..., help="A .jsonl, .json or .parquet file, or any data string."),
    out: Path = typer.Argument(..., help="The .jsonl file to write; must not exist."),
    rename: list[str] = typer.Option(
        [], "--map", help="field=source, as in chosen=options.0 or question=prompt. Repeatable."
    ),
) -> None:
    """Write data in Palate's own form, taking fields from where they are."""
    from palate.data.convert import convert_data

    count = convert_data(data, out, rename)
    typer.echo(f"{count} records written to {out}")
