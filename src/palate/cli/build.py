"""`palate build`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from palate.cli.output import print_json, print_table, progress_bar

if TYPE_CHECKING:
    from palate.build import Built


def command(
    data: str = typer.Option(..., help="Items with a rubric (or a narrative): a data string, as for eval."),
    llm: str = typer.Option(..., help="The generator: <model>[?max_tokens=…&temperature=…&base_url=…]."),
    out: Path = typer.Option(..., help="A folder of its own for the data set; the same command goes on in it."),
    judge: str | None = typer.Option(None, help="Another model, for the judged gates; without it they are not run."),
    twins: bool = typer.Option(False, "--twins", help="Match users with opposed rubrics; answers swap their roles."),
    keys_from_narratives: bool = typer.Option(
        False, "--keys-from-narratives", help="Derive aspects, with literal evidence, where an item has none."
    ),
    retriever: str = typer.Option("bm25", help="bm25, recency, dense[/model], stored/<folder>."),
    k: int = typer.Option(10, min=1, help="Posts that the generator reads."),
    tries: int = typer.Option(3, min=1, help="How often a pair is made before it is dropped."),
    limit: int | None = typer.Option(None, min=1, help="Only the first N items; raising it extends the build."),
    licence: str | None = typer.Option(None, help="Of the resulting data, as the hub names it; else unknown."),
    base_url: str | None = typer.Option(None, help="The server; else OPENAI_BASE_URL."),
    judge_base_url: str | None = typer.Option(None, help="The judge's server, if it is another one."),
    max_calls: int | None = typer.Option(None, min=1, help="Stop cleanly after so many calls to a server."),
    max_tokens: int | None = typer.Option(None, min=1, help="Stop cleanly after so many tokens, in and out."),
    fresh: bool = typer.Option(False, "--fresh", help="Start anew; the old work is kept aside."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Tell calls and tokens that it would take; send nothing."),
    push: str | None = typer.Option(None, help="owner/name: upload the result to the hub; a new data set is private."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Turn users' questions, histories and rubrics into a benchmark: pairs that differ in what one user wants."""
    from palate.build import build, check_push, estimate
    from palate.build import push as push_to
    from palate.llm.client import Spending

    check_push(push, licence)
    same: dict[str, Any] = {"twins": twins, "keys_from_narratives": keys_from_narratives, "k": k}
    same |= {"retriever": retriever, "limit": limit, "tries": tries}
    if dry_run:
        found = estimate(data, out, llm, judge, **same)
        print_json(found) if json else _print_estimate(found)
        return
    with progress_bar() as seen:
        built = build(
            data,
            out,
            llm,
            judge,
            **same,
            base_url=base_url,
            judge_base_url=judge_base_url,
            licence=licence,
            fresh=fresh,
            spending=Spending(max_calls, max_tokens),
            seen=_progress(seen),
            told=lambda item, text: typer.echo(f"{item}: {text}", err=True),
        )
    if built.items:
        _audit(out)
    address = push_to(out, push) if push and built.items else None
    print_json({**built.record, "pushed": address}) if json else _print(built, address)
    if not built.items:
        raise typer.Exit(1)


def _audit(out: Path) -> None:
    """Put the audit's verdict into the card."""
    from palate.audit import audit, card_text
    from palate.build import write_card

    write_card(out, card_text(audit(str(out))))


def _progress(seen: Any) -> Any:
    from palate.evaluation import Progress

    return lambda *now: seen(Progress(*now))


def _print_estimate(found: dict[str, Any]) -> None:
    columns = [("stage", "left"), ("calls, least", "right"), ("most", "right"), ("tokens in, about", "right")]
    rows = [
        [name, f"{s['calls_least']:,}", f"{s['calls_most']:,}", f"{s['tokens_least']:,}"]
        for name, s in found["stages"].items()
    ]
    print_table("Nothing was sent", columns, rows)
    typer.echo(f"{found['usable']} of {found['items']} items have a usable rubric; {found['pairs']} pairs to make")
    told = f"{found['calls_least']:,} to {found['calls_most']:,} calls, from about {found['tokens_least']:,} tokens in"
    typer.echo(f"{told}; cost: unknown (prices are the server's)")
    for note in (*found["notes"], *(f"warning: {w}" for w in found["warnings"])):
        typer.echo(f"  {note}")


def _print(built: "Built", address: str | None) -> None:
    record = built.record
    print_table("Pairs", [("", "left"), ("", "right")], [[name, str(n)] for name, n in record["counts"].items()])
    statuses = list(dict.fromkeys(s for found in record["gates"].values() for s in found))
    columns = [("gate", "left"), *((s, "right") for s in statuses)]
    rows = [[gate, *(str(found.get(s, 0)) for s in statuses)] for gate, found in record["gates"].items()]
    if rows:
        print_table("Gates, over all tries", columns, rows)
    for warning in record["warnings"]:
        typer.echo(f"  warning: {warning}")
    if record["licence"] is None:
        typer.echo("  licence: unknown; state it with --licence")
    failed = record["counts"]["pairs with an error"]
    if failed:
        typer.echo(
            f"  the server failed on {failed} of {record['counts']['pairs tried']} pairs, first: {built.failure}"
        )
        typer.echo("  the same command makes those pairs again")
    typer.echo(f"  what is missing, and why: {built.dropped}")
    if built.items:
        typer.echo(f"{built.items} items. Look at them: palate data audit {built.folder}")
    elif failed == record["counts"]["pairs tried"]:
        typer.echo("no pair could be made, so there is no data set")
    else:
        typer.echo("no pair passed the gates, so there is no data set")
    if address:
        typer.echo(f"pushed: {address}")
