"""`palate ppo train | evaluate`, and what `ppo_verl` adds."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from palate.cli import ppo_verl
from palate.cli.output import interval, points, print_json, print_table, progress_bar, share

app = typer.Typer(
    help="Train a policy by a reward model, and see whether its answers got better.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("prepare")(ppo_verl.prepare)
app.command("verl")(ppo_verl.verl)
RECIPE = "A TOML file with any of these options and rarer ones; what is given here wins."


@app.command()
def train(
    method: str | None = typer.Option(None, help="ppo, rloo or grpo."),
    policy: str | None = typer.Option(None, help="A folder or hub id[@revision][?template=…&dtype=…&window=…]."),
    reward: str | None = typer.Option(None, help="hf/…, likelihood/…, dpo/…, http/<host:port>, builtin/…."),
    data: str | None = typer.Option(None, help="A data string; its questions are the prompts."),
    view: str | None = typer.Option(None, help="history (default), question, plan, each with its options."),
    out: Path = typer.Option(..., help="Folder of the training; the same command goes on from its checkpoints."),
    steps: int | None = typer.Option(None, help="Updates; default is one pass over the questions."),
    batch: int | None = typer.Option(None, help="Answers a step (32)."),
    lr: float | None = typer.Option(None, help="Learning rate (1e-6)."),
    kl: float | None = typer.Option(None, help="Weight of the divergence from the untrained policy (0.05)."),
    lora: int | None = typer.Option(None, help="Rank of LoRA; 0, the default, trains all weights."),
    seed: int | None = typer.Option(None, help="Of everything (0)."),
    config: Path | None = typer.Option(None, help=RECIPE),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Train a policy with TRL; reward, KL and length of each step go to curve.jsonl and curve.svg."""
    from palate.ppo import Training
    from palate.ppo import train as run

    given = {
        **{"method": method, "policy": policy, "reward": reward, "data": data, "view": view, "steps": steps},
        **{"batch": batch, "lr": lr, "kl": kl, "lora": lora, "seed": seed},
    }
    settings = Training.of(_settled(config, given, [f.name for f in fields(Training)]))
    record = run(settings, out, seen=_step, told=lambda item, text: typer.echo(f"{item}: {text}", err=True))
    if json:
        print_json(record)
    else:
        _print_training(record, out)


@app.command()
def evaluate(
    policy_before: str | None = typer.Option(None, help="The untrained policy, as for train."),
    policy_after: str | None = typer.Option(None, help="The folder of a training (best), or a policy."),
    data: str | None = typer.Option(None, help="Test questions with rubrics."),
    grader: str | None = typer.Option(None, help="llm/<model>[?form=per-aspect|per-answer&…]."),
    out: Path = typer.Option(..., help="Folder of the comparison; what is in it is not done again."),
    view: str | None = typer.Option(None, help="What the policies see; a training's own if that is given."),
    limit: int | None = typer.Option(None, min=1, help="Only the first N items."),
    base_url: str | None = typer.Option(None, help="The grader's server; else OPENAI_BASE_URL."),
    max_calls: int | None = typer.Option(None, min=1, help="Stop cleanly after so many calls to a server."),
    config: Path | None = typer.Option(None, help=RECIPE),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Compare a policy before and after training: both answer test questions, a grader marks them."""
    from palate.llm.client import Spending
    from palate.ppo import Judging
    from palate.ppo import evaluate as run

    given = {
        **{"policy_before": policy_before, "policy_after": policy_after, "data": data, "grader": grader},
        **{"view": view, "limit": limit, "base_url": base_url, "max_calls": max_calls},
    }
    rest = ("retriever", "response", "temperature", "batch", "seed", "max_tokens")
    found = _settled(config, given, (*given, *rest))
    spending = Spending(found.pop("max_calls", None), found.pop("max_tokens", None))
    server = found.pop("base_url", None)
    with progress_bar() as seen:
        figures = run(
            Judging.of(found),
            out,
            base_url=server,
            spending=spending,
            seen=_progress(seen),
            told=lambda item, text: typer.echo(f"{item}: {text}", err=True),
        )
    print_json(figures) if json else _print_comparison(figures)


def _settled(config: Path | None, given: Mapping[str, Any], allowed: Any) -> dict[str, Any]:
    """Return what a recipe says with what the command line says in its place."""
    from palate.recipes import read_recipe

    recipe = read_recipe(config, allowed) if config else {}
    return recipe | {name: value for name, value in given.items() if value is not None}


def _step(step: int, steps: int, row: Mapping[str, Any]) -> None:
    parts = [f"reward {_number(row['reward'])}", f"KL {_number(row['kl'])}", f"length {row['length']:.1f}"]
    failed = sum(row["failures"].values())
    if failed:
        parts.append(f"{failed} of {row['n']} rewards failed")
    typer.echo(f"step {step}/{steps}: {', '.join(parts)}", err=True)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _progress(seen: Any) -> Any:
    from palate.evaluation import Progress

    return lambda *now: seen(Progress(*now))


def _print_training(record: Mapping[str, Any], out: Path) -> None:
    found = record["result"]
    error = "" if found["se"] is None else f" ± {found['se']:.4g}"
    rows = [
        ["steps", str(record["steps"])],
        ["questions", f"{record['prompts']['n']}, left out {sum(record['prompts']['left_out'].values())}"],
        ["answers", f"{found['answers']}, rewards failed {share(found['failure_rate'])}"],
        ["reward, last steps − first", f"{_number(found['value'])}{error} (standard error)"],
    ]
    print_table(f"Training in {out}", [("", "left"), ("", "left")], rows)
    typer.echo(f"The trained policy: {out / 'policy'}; the curve: {out / 'curve.svg'}")


def _print_comparison(figures: Mapping[str, Any]) -> None:
    columns = [("policy", "left"), ("", "left"), ("graded", "right"), ("of", "right"), ("grade", "right")]
    columns += [("tokens", "right"), ("cut", "right")]
    rows = [
        [
            *(side["policy"], name, str(side["graded"]), str(figures["n"]), share(side["mean"])),
            *(f"{side['mean_tokens']:.0f}", str(side["cut"])),
        ]
        for name, side in (("before", figures["before"]), ("after", figures["after"]))
    ]
    print_table("Grades of the answers", columns, rows)
    gap = figures["difference"]
    span = interval(gap["ci95"], signed=True)
    p = "" if gap["p"] is None else f", p = {gap['p']:.3g}"
    typer.echo(f"after − before: {points(gap['value'])} ({span}), {gap['common']} items{p}; {gap['method']}")
