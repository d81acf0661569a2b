"""`palate data check | show | convert | export`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from palate.cli.output import print_json, print_table, share

if TYPE_CHECKING:
    from palate.data import Dataset
    from palate.records import Query

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


@app.command()
def export(
    data: str = typer.Argument(..., help="A data string."),
    out: Path = typer.Argument(..., help="The file to write: .jsonl, for label-studio .json; must not exist."),
    to: str = typer.Option(..., help="rewardbench, trl, lamp-qa, personalized-rewardbench or label-studio."),
    view: str | None = typer.Option(
        None, help="question or history: what prompts say of the user. [question; label-studio: history]"
    ),
    retriever: str = typer.Option("bm25", help="Ranks the posts under --view history."),
    with_keys: bool = typer.Option(
        False, "--with-keys", help="Write rubric and narrative too; for label-studio the tasks of step two."
    ),
    json: bool = typer.Option(False, "--json", help="Print what was written and lost as JSON."),
) -> None:
    """Write data in the form of another tool, and say what that form cannot hold."""
    from palate.data import open_data
    from palate.data.export import export_data

    opened = open_data(data)
    made = export_data(opened, out, to, _asker(opened, to, view, retriever, with_keys), with_keys=with_keys)
    if made.lost:
        told = ", ".join(f"{name} ({count})" for name, count in made.lost.items())
        typer.echo(f"left behind, with the number of items that had it: {told}", err=True)
    if json:
        print_json({"count": made.count, "files": [str(p) for p in made.files], "lost": dict(made.lost)})
    else:
        typer.echo(f"{made.count} records written to {' and '.join(map(str, made.files))}")


def _asker(data: "Dataset", form: str, view: str | None, retriever: str, with_keys: bool) -> "Callable[[str], Query]":
    """Return what makes an item's query under the view that an export's prompts are written with."""
    from palate.errors import PalateError, SpecError
    from palate.retrieval import make_retriever
    from palate.views import Looker, NoContext, View

    shows_history = form == "label-studio" and not with_keys
    seen = View.parse(view or ("history" if shows_history else "question"))
    if seen.name not in ("question", "history") or seen.user != "own":
        raise SpecError(f"--view '{view}': an export knows question and history.")
    if view and form == "label-studio" and with_keys and seen.name == "history":
        raise SpecError("--view history: step two shows the rubric instead of the history.")
    looker = Looker(data, make_retriever(retriever))

    def asked(item_id: str) -> "Query":
        query = looker.query(item_id, seen)
        if isinstance(query, NoContext):
            raise PalateError(f"item '{item_id}' under '{seen}': {query.reason}.")
        return query

    return asked
