"""`palate eval`."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from palate.cli.output import cell, figures, interval, points, print_json, print_table, progress_bar, share

if TYPE_CHECKING:
    from palate.evaluation import Evaluation, Run


def command(
    data: str = typer.Option("sample", help="sample, a .jsonl/.json/.parquet file, a folder, or hub:<id>@rev."),
    model: list[str] = typer.Option(
        ...,
        help="builtin/random|length|lexical|style, hf/<folder or hub id>, http/<host:port>, judge/<model>, "
        "rate/<model>. Repeatable.",
    ),
    view: list[str] = typer.Option(
        ["question", "history"], help="question, history, swapped, oracle; ?user=own|other|none. Repeatable."
    ),
    out: Path = typer.Option(Path("runs"), help="Folder for the run folders."),
    retriever: str | None = typer.Option(None, help="bm25 (default), recency, dense[/model], stored/<folder>."),
    protocol: str = typer.Option("palate", help="palate, or paper: Contriever, k = 10, strict accuracy."),
    limit: int | None = typer.Option(None, help="Only the first N items; raising it extends the run."),
    by: list[str] = typer.Option([], help="A column to split the figures by. Repeatable."),
    retry: list[str] = typer.Option([], help="A status to try again besides error. Repeatable."),
    fresh: bool = typer.Option(False, "--fresh", help="Start anew; old rows are kept aside."),
    min_coverage: float = typer.Option(
        0.0, min=0.0, max=1.0, help="Leave with code 1 if a run scored a smaller share."
    ),
    base_url: str | None = typer.Option(None, help="The server of judge/ and rate/; else OPENAI_BASE_URL."),
    ray: str | None = typer.Option(
        None, help="Score on the workers of a Ray cluster: local, auto, <host:port>; ?workers=N&gpus=N&cpus=N."
    ),
    max_calls: int | None = typer.Option(None, min=1, help="Stop cleanly after so many calls to a server."),
    max_tokens: int | None = typer.Option(None, min=1, help="Stop cleanly after so many tokens, in and out."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Tell calls and tokens that it would take; send nothing."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Evaluate reward models on personal preferences, one run folder per model and view."""
    from palate.evaluation import estimate, evaluate
    from palate.llm.client import Spending

    if dry_run:
        told = estimate(data, model, view, out, retriever=retriever, protocol=protocol, limit=limit, base_url=base_url)
        print_json(told) if json else _print_estimate(told)
        return
    spending = Spending(max_calls, max_tokens)
    with progress_bar() as seen:
        result = evaluate(
            data,
            model,
            view,
            out,
            retriever=retriever,
            protocol=protocol,
            limit=limit,
            by=by,
            retry=retry,
            fresh=fresh,
            base_url=base_url,
            ray=ray,
            spending=spending,
            seen=seen,
            told=lambda item, text: typer.echo(f"{item}: {text}", err=True),
        )
    if json:
        print_json(as_json(result))
    else:
        _print(result, protocol, out)
    thin = [f"{r.model} {r.view}: {share(r.metrics['coverage'])}" for r in result if _under(r, min_coverage)]
    if thin:
        typer.echo(f"coverage under {share(min_coverage)}: {'; '.join(thin)}", err=True)
        raise typer.Exit(1)


def as_json(result: "Evaluation") -> dict[str, Any]:
    """Return an evaluation as one JSON object."""
    return {
        "data": {"name": result.data.name, "digest": result.data.digest, "notes": list(result.data.notes)},
        "runs": [
            {
                "model": r.model,
                "view": r.view,
                "probe": r.probe,
                "folder": str(r.folder),
                "metrics": r.metrics,
            }
            for r in result
        ],
        "contrasts": [c.as_dict() for c in result.contrasts],
    }


def _under(run: "Run", least: float) -> bool:
    return (run.metrics["coverage"] or 0.0) < least


def _print(result: "Evaluation", protocol: str, out: Path) -> None:
    from palate.evaluation.protocol import find_protocol

    _main_table(result, find_protocol(protocol).headline == "strict_accuracy")
    _views_table(result)
    _models_table(result)
    for column in result.runs[0].metrics["by"]:
        _group_tables(result, f"by {column}", lambda m, c=column: m["by"][c])
    if len(result.runs[0].metrics["by_history_size"]) > 1:
        _group_tables(result, "by number of posts in the history", lambda m: m["by_history_size"])
    _position_table(result)
    _notes(result)
    typer.echo(f"Run folders: {out}/")


def _main_table(result: "Evaluation", strict: bool) -> None:
    names = _names(result)
    twins = any(r.metrics["both_right"] is not None for r in result)
    columns = [("model", "left"), ("view", "left"), ("n", "right"), ("coverage", "right"), ("accuracy", "right")]
    columns += [("95 %", "right")]
    columns += [("strict", "right"), ("macro strict", "right")] if strict else [("ties", "right")]
    columns += [("both right", "right")] if twins else []
    rows = []
    for run in result:
        m = run.metrics
        row = [names[run.model], run.view, *figures(m)]
        row += [share(m["strict_accuracy"]), share(m["macro_strict_accuracy"])] if strict else [str(m["ties"])]
        rows.append(row + ([share(m["both_right"])] if twins else []))
    print_table(f"{result.data.name}: {result.runs[0].metrics['n']} of {len(result.data)} items", columns, rows)


def _names(result: "Evaluation") -> dict[str, str]:
    """Return a short name for each model string, with options where two would else be alike; probes have a star."""
    from palate.spec import short_model

    short = {run.model: short_model(run.model) for run in result}
    probes = {run.model for run in result if run.probe}
    alike = {name for name in short.values() if list(short.values()).count(name) > 1}
    full = {m: name + m[m.index("?") :] if name in alike and "?" in m else name for m, name in short.items()}
    return {m: name + ("*" if m in probes else "") for m, name in full.items()}


def _views_table(result: "Evaluation") -> None:
    names = {"lift": "lift", "swap_drop": "swap drop", "gain": "over question"}
    models = _names(result)
    rows = []
    for c in result.contrasts:
        if c.kind in names:
            rows.append([names[c.kind], models[c.model], f"{c.view} - {c.other_view}", *_difference(c.difference)])
    if rows:
        columns = [("what reading adds", "left"), ("model", "left"), ("views", "left")]
        print_table(
            "Points of accuracy on the same items (lift and swap drop: of those with a history)",
            columns + DIFFERENCE,
            rows,
        )


DIFFERENCE = [("common", "right"), ("points", "right"), ("95 %", "right"), ("p", "right"), ("bounds", "right")]


def _models_table(result: "Evaluation") -> None:
    from palate.views import View

    models = _names(result)
    rows = [
        [f"{models[c.model]} - {models[c.other_model]}", c.view, *_difference(c.difference)]
        for c in result.contrasts
        if c.kind == "model" and View.parse(c.view).user == "own"
    ]
    if len(rows) > 12:
        typer.echo(f"{len(rows)} comparisons of models are in the output of --json.\n")
    elif rows:
        print_table("Models compared on the same items", [("models", "left"), ("view", "left"), *DIFFERENCE], rows)


def _difference(d: Any) -> list[str]:
    p = "–" if d.p is None else f"{d.p:.3f}" if d.p >= 0.001 else "<0.001"
    bounds = interval(d.bounds, signed=True) if d.common < d.n else ""
    return [str(d.common), points(d.value), interval(d.ci95, signed=True), p, bounds]


def _group_tables(result: "Evaluation", title: str, groups: Any) -> None:
    """Print one table a model: a row a group, a column a view."""
    for model in dict.fromkeys(run.model for run in result):
        runs = [run for run in result if run.model == model]
        names = dict.fromkeys(name for run in runs for name in groups(run.metrics))
        columns = [("group", "left"), ("n", "right"), *((run.view, "right") for run in runs)]
        rows = []
        for name in names:
            found = [groups(run.metrics).get(name) for run in runs]
            n = next(f["n"] for f in found if f)
            rows.append([name, str(n), *(cell(f) for f in found)])
        print_table(f"{_names(result)[model]} {title}", columns, rows)


def _position_table(result: "Evaluation") -> None:
    """Say how far judges' verdicts depend on the seat."""
    names, rows = _names(result), []
    for run in result:
        if (p := run.metrics.get("position")) is not None:
            orders = [share(p["by_order"].get(o, {}).get("accuracy")) for o in ("chosen-first", "rejected-first")]
            rows.append([names[run.model], run.view, share(p["first_seat_rate"]), share(p["flip_rate"]), *orders])
    if rows:
        columns = [("judge", "left"), ("view", "left"), ("first seat wins", "right"), ("verdict flips", "right")]
        columns += [("accuracy, chosen first", "right"), ("chosen last", "right")]
        print_table("Position", columns, rows)


def _print_estimate(told: dict[str, Any]) -> None:
    rows = [[r["model"], r["view"], str(r["items"]), str(r["calls"]), f"{r['tokens']:,}"] for r in told["runs"]]
    columns = [("model", "left"), ("view", "left"), ("items", "right"), ("calls", "right"), ("tokens, about", "right")]
    print_table("Nothing was sent", columns, rows)
    typer.echo(f"{told['calls']:,} calls, about {told['tokens']:,} tokens in; cost: unknown (prices are the server's)")


def _notes(result: "Evaluation") -> None:
    names, first = _names(result), result.runs[0].metrics
    lines = list(result.data.notes)
    lines += dict.fromkeys(f"warning: {w}" for run in result for w in run.record.get("warnings", []))
    if first["cold_start"]:
        lines.append(f"cold start: {first['cold_start']} of {first['n']} items have an empty history; they are scored")
    lines += [f"{names[r.model]} {r.view}: {_failures(r)}" for r in result if _failures(r)]
    dropped = [r for r in result if r.metrics["dropped_posts"]["items"]]
    lines += [
        f"{names[r.model]} {r.view}: {r.metrics['lost_posts']['posts']} posts had no finite similarity and came last"
        for r in result
        if r.metrics["lost_posts"]["posts"]
    ]
    lines += [
        f"{names[r.model]} {r.view}: posts dropped to fit in {r.metrics['dropped_posts']['items']} items"
        for r in dropped
    ]
    lines += _users(result)
    if any(r.probe for r in result):
        lines.append("* a probe: shows what a surface feature alone achieves; not a reward model")
    for line in lines:
        typer.echo(f"  {line}")


def _users(result: "Evaluation") -> list[str]:
    """Say how accuracy spreads over users: for each run, or with many runs for those under `history`."""
    found, names = [], _names(result)
    views = [run.view for run in result]
    few = len(views) <= 6 or "history" not in views
    for run in (r for r in result if few or r.view == "history"):
        if (u := run.metrics["users"]) is not None:
            middle = f"median {share(u['median'])}, quartiles {interval([u['q1'], u['q3']])}"
            found.append(f"{names[run.model]} {run.view}: over {u['users']} users {middle}, sd {points(u['sd'])[1:]}")
    return found


def _failures(run: "Run") -> str:
    """Say how many items failed in which way, with the most frequent reason of each."""
    reasons: dict[str, Counter[str]] = {}
    for row in run.rows.values():
        if row["status"] != "ok":
            reasons.setdefault(row["status"], Counter()).update(row["notes"][:1])
    told = []
    for status, n in run.metrics["status"].items():
        if status != "ok":
            common = reasons.get(status, Counter()).most_common(1)
            told.append(f"{n} {status}" + (f" (as in: {common[0][0]})" if common else ""))
    return ", ".join(told)
