"""`palate bon`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from palate.cli.output import interval, points, print_json, print_table, progress_bar, share
from palate.cli.recipe import from_recipe

if TYPE_CHECKING:
    from palate.bon import BestOfN


def command(
    data: str = typer.Option("sample", help="A data string, as for eval; or best-of-N data, which holds samples."),
    policy: str | None = typer.Option(
        None, help="llm/<model>: writes the samples; ?temperature=1.0&top_p=0.9&max_tokens=512&view=history&k=10&seed=0"
    ),
    samples: Path | None = typer.Option(None, help="A file of samples in place of a policy."),
    model: list[str] = typer.Option(..., help="Reward models that choose, as for eval; no judge/. Repeatable."),
    view: list[str] = typer.Option(["history"], help="What they see of the user. Repeatable."),
    n: int = typer.Option(16, min=1, help="Samples an item; raising it adds some."),
    best_of: list[int] = typer.Option([], help="A k of the curve; default the powers of two up to --n. Repeatable."),
    grader: str | None = typer.Option(
        None, help="llm/<model>: grades on the true aspects; ?form=per-answer. Without one the work ends with scores."
    ),
    out: Path = typer.Option(Path("bon"), help="Folder for samples, scores, grades and the curve; work goes on there."),
    unbiased: bool = typer.Option(
        True, "--unbiased/--first-k", help="Grade all samples for the exact curve, or only the picks of the first k."
    ),
    repeats: int = typer.Option(1, min=1, help="Separate gradings of each answer; from 2 on the oracle is fair."),
    retriever: str = typer.Option("bm25", help="bm25, recency, dense[/model], stored/<folder>."),
    limit: int | None = typer.Option(None, min=1, help="Only the first N items; raising it extends the work."),
    retry: list[str] = typer.Option([], help="A status to try again besides error. Repeatable."),
    base_url: str | None = typer.Option(None, help="The policy's server; else OPENAI_BASE_URL."),
    grader_base_url: str | None = typer.Option(None, help="The server of grader and rate/; else as for the policy."),
    max_calls: int | None = typer.Option(None, min=1, help="Stop cleanly after so many calls to servers."),
    config: Path | None = typer.Option(
        None, is_eager=True, callback=from_recipe, help="A TOML file that sets options by their long names."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Tell the calls that it would take; send nothing."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Let reward models choose among N answers of a policy, and grade what they choose by the user's true wishes."""
    from palate.bon import Request, best_of_n, estimate_best_of_n
    from palate.llm.client import Spending

    request = Request(
        data,
        model,
        view,
        out,
        policy=policy,
        samples=samples,
        grader=grader,
        n=n,
        best_of=best_of,
        unbiased=unbiased,
        repeats=repeats,
        retriever=retriever,
        limit=limit,
        retry=retry,
        base_url=base_url,
        grader_base_url=grader_base_url,
        spending=Spending(max_calls),
        told=lambda item, text: typer.echo(f"{item}: {text}", err=True),
    )
    if dry_run:
        told = estimate_best_of_n(request)
        print_json(told) if json else _print_estimate(told)
        return
    with progress_bar() as seen:
        result = best_of_n(request, seen)
    if json:
        print_json({"folder": str(result.folder), "record": result.record, "curve": result.curve})
    elif result.curve is None:
        _print_scores(result)
    else:
        _print_curve(result.curve, result.folder)


def _print_estimate(told: Mapping[str, Any]) -> None:
    rows = [[s["stage"], s["what"], f"{s['todo']:,}", f"{s['calls']:,}"] for s in told["stages"]]
    columns = [("step", "left"), ("by", "left"), ("answers", "right"), ("calls", "right")]
    print_table("Nothing was sent", columns, rows)
    typer.echo(f"at most {told['calls']:,} calls; cost: unknown (prices are the server's)")


def _print_scores(result: "BestOfN") -> None:
    columns = [("reward model", "left"), ("view", "left"), ("samples an item", "right"), ("least", "right")]
    columns += [("highest score tied", "right"), ("scores", "left")]
    rows = []
    for one in result.record["systems"]:
        scores = one["scores"]
        effective = f"{scores['effective']['mean']:.1f} of {result.record['n']}"
        counts = ", ".join(f"{n} {status}" for status, n in scores["status"].items())
        tied = f"{scores['tied_items']} items"
        rows.append([one["system"], one["view"], effective, str(scores["effective"]["least"]), tied, counts])
    print_table("Scored", columns, rows)
    typer.echo(f"No grader, so no curve: add --grader llm/<model>. Scores: {result.folder}/scores")


def _print_curve(curve: Mapping[str, Any], folder: Path) -> None:
    ks = curve["ks"]
    columns = [("choice", "left"), ("view", "left"), *((f"k = {k}", "right") for k in ks), ("95 %", "right")]
    columns += [("over random", "right"), ("gap closed, %", "right"), ("n", "right"), ("graded", "right")]
    rows = []
    for one in curve["systems"]:
        last = one["points"][-1]
        row = [one["system"] + ("*" if one["probe"] else ""), one["view"]]
        row += [*(share(p["value"]) for p in one["points"]), interval(last["ci95"])]
        row += [points(last["over_random"]["value"]), points(last["gap_closed"]["value"])]
        rows.append([*row, f"{last['n']}/{last['of']}", share(last["coverage"])])
    if curve["oracle"]:
        found = curve["oracle"]["points"]
        rows.append(["oracle choice", "", *(share(p["value"]) for p in found), interval(found[-1]["ci95"]), *[""] * 4])
    random = curve["random"]
    rows.append(["random choice", "", *[share(random["value"])] * len(ks), interval(random["ci95"]), *[""] * 4])
    how = f"all choices of k from {curve['n']}" if curve["mode"] == "unbiased" else "the first k samples"
    print_table(f"{curve['data']['name']}: mean grade of the choice, {how}", columns, rows)
    for line in _notes(curve):
        typer.echo(f"  {line}")
    typer.echo(f"Curve, page and board: {folder}/")


def _notes(curve: Mapping[str, Any]) -> list[str]:
    samples = curve["samples"]
    counts = ", ".join(f"{n} {status}" for status, n in samples["status"].items())
    lines = [f"samples: {counts}; {samples['effective']['mean']:.1f} of {curve['n']} an item have a text"]
    lines += [f"warning: {text}" for text in curve["warnings"]]
    if curve["without_rubric"]:
        lines.append(f"{curve['without_rubric']} items have no rubric and do not count")
    lines.append("grades: " + ", ".join(f"{n} {status}" for status, n in curve["grades"].items()))
    for one in curve["systems"]:
        scores, last = one["scores"], one["points"][-1]
        failed = {s: n for s, n in scores["status"].items() if s != "ok"}
        told = [f"{n} {status}" for status, n in failed.items()]
        told += [f"highest score shared in {scores['tied_items']} items"] if scores["tied_items"] else []
        told += [f"gap closed: {last['gap_closed']['reason']}"] if last["gap_closed"]["reason"] else []
        if told:
            lines.append(f"{one['system']} {one['view']}: {'; '.join(told)}")
    if curve["oracle"]:
        lines.append(f"oracle: {curve['oracle']['how']}")
    if any(one["probe"] for one in curve["systems"]):
        lines.append("* a probe: shows what a surface feature alone achieves; not a reward model")
    return lines
