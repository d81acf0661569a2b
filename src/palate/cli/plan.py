"""`palate plan`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from palate.cli.output import interval, points, print_json, print_table, progress_bar, share

if TYPE_CHECKING:
    from palate.planning.scorecard import Scorecard


def command(
    data: str = typer.Option("sample", help="A data string, as for eval."),
    planner: str = typer.Option("keyphrase", help="keyphrase, question-only, llm/<model>."),
    retriever: str = typer.Option("bm25", help="bm25, recency, dense[/model], stored/<folder>."),
    k: int = typer.Option(10, min=1, help="Posts that the planner reads for each item."),
    user: str = typer.Option("own", help="own, or other: another user's posts are planned for the item's question."),
    seed: int = typer.Option(0, min=0, help="Chooses the donors of --user other and of the scorecard's control."),
    out: Path = typer.Option(Path("plans"), help="Folder for the plans; use it as plan?planner=stored/<folder>."),
    limit: int | None = typer.Option(None, min=1, help="Only the first N items; raising it extends the plans."),
    retry: list[str] = typer.Option([], help="A status to try again besides error. Repeatable."),
    base_url: str | None = typer.Option(None, help="The server of llm/; else OPENAI_BASE_URL."),
    max_calls: int | None = typer.Option(None, min=1, help="Stop cleanly after so many calls to a server."),
    max_tokens: int | None = typer.Option(None, min=1, help="Stop cleanly after so many tokens, in and out."),
    score: bool = typer.Option(False, "--score", help="Compare plans and two controls with the true rubrics."),
    encoder: str | None = typer.Option(None, help="A folder or hub id: the scorecard matches by embedding too."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Infer what users want from question and posts once, for reuse; say how well that meets their rubrics."""
    from palate.llm.client import Spending
    from palate.planning.made import plan_all

    with progress_bar() as seen:
        record, card = plan_all(
            data,
            planner,
            out,
            retriever=retriever,
            k=k,
            user=user,
            seed=seed,
            limit=limit,
            retry=retry,
            base_url=base_url,
            spending=Spending(max_calls, max_tokens),
            score=score,
            encoder=encoder,
            seen=_progress(seen),
            told=lambda item, text: typer.echo(f"{item}: {text}", err=True),
        )
    if json:
        print_json({**record, "scorecard": card.as_dict() if card else None})
        return
    _print(record, out)
    if card:
        _print_card(card)


def _progress(seen: Any) -> Any:
    from palate.evaluation import Progress

    return lambda *now: seen(Progress(*now))


def _print(record: dict[str, Any], out: Path) -> None:
    from palate.retrieval.base import K
    from palate.views.view import View

    told = record["planner"]
    rows = [[name, str(told[name])] for name in ("name", "prompt") if name in told]
    rows += [[name, str(record[name])] for name in ("k", "user") if record[name] is not None]
    rows += [[f"plans: {status}", str(n)] for status, n in record["plans"].items()]
    print_table(f"Plans for {record['data']}", [("", "left"), ("", "left")], rows)
    view = View("plan", record["user"], record["k"] or K, record["seed"] or 0, planner=f"stored/{out}")
    typer.echo(f"Use them: palate eval --view '{view}'")


def _print_card(card: "Scorecard") -> None:
    columns = [("plans", "left"), ("domain", "left"), ("n", "right"), ("scored", "right")]
    columns += [("true aspects met", "right"), ("95 %", "right"), ("beside the point", "right"), ("95 %", "right")]
    for matcher in card.matchers:
        rows = [
            [
                *(line.plans, line.domain, str(line.n), str(line.scored)),
                *(share(line.coverage), interval(line.coverage_ci95)),
                *(share(line.beside), interval(line.beside_ci95)),
            ]
            for line in card.lines
            if line.matcher == matcher.name
        ]
        print_table(f"{matcher.name}: match from {matcher.threshold:.3f}", columns, rows)
        typer.echo(f"  balanced accuracy of the match on labelled pairs: {share(matcher.balanced_accuracy)}")
        for (name, control, figure), found in card.differences.items():
            if name == matcher.name:
                span = interval(found.ci95, signed=True)
                typer.echo(f"  {figure}, plan − {control}: {points(found.value)} ({span}), {found.common} items")
    if card.without_rubric:
        typer.echo(f"  {card.without_rubric} items have no rubric and do not count")
