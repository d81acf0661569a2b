"""`palate ppo prepare` and `palate ppo verl`."""

import os
import sys
from pathlib import Path

import typer

from palate.cli.output import print_json, print_table


def prepare(
    data: str = typer.Option("sample:train", help="A data string, as for eval."),
    view: str = typer.Option("history", help="What policy and reward model see of the user; never oracle."),
    k: int | None = typer.Option(None, min=1, help="Posts of the view; short for ?k= in it."),
    retriever: str = typer.Option("bm25", help="bm25, recency, dense[/model], stored/<folder>."),
    tokenizer: str | None = typer.Option(None, help="The policy's folder or hub id: prompts are fitted with it."),
    max_prompt_tokens: int | None = typer.Option(None, min=1, help="Room for a prompt (8192); needs --tokenizer."),
    out: Path = typer.Option(..., help="The .parquet file."),
    limit: int | None = typer.Option(None, min=1, help="Only the first N items."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Write questions and what is shown of their users as verl's Parquet file; a rubric never goes into it."""
    from palate.ppo.prepare import prepare as write

    full = view if k is None else f"{view}{'&' if '?' in view else '?'}k={k}"
    found = write(
        data, full, out, retriever=retriever, limit=limit, tokenizer=tokenizer, max_prompt_tokens=max_prompt_tokens
    )
    if json:
        print_json(found.as_dict())
        return
    rows = [["prompts", str(found.rows)], ["entries dropped to fit", str(found.dropped)]]
    rows += [[f"left out: {status}", str(n)] for status, n in found.left_out.items()]
    rows += [[name, str(found.about[name])] for name in ("view", "k", "max_prompt_tokens")]
    print_table(str(out), [("", "left"), ("", "left")], rows)
    if tokenizer is None:
        typer.echo("Not fitted to a policy: verl leaves out what is longer than its max_prompt_length.", err=True)


def verl(
    train: Path | None = typer.Option(None, help="Prompts to train on, from ppo prepare."),
    val: Path | None = typer.Option(None, help="Prompts to validate on, prepared in the same way."),
    reward_url: str | None = typer.Option(None, help="The reward server: palate serve."),
    policy: str | None = typer.Option(None, help="Folder or hub id (Qwen/Qwen2.5-0.5B-Instruct)."),
    critic: str | None = typer.Option(None, help="Folder or hub id (the same)."),
    out: Path | None = typer.Option(None, help="Folder for checkpoints and logs (verl)."),
    gpus: int | None = typer.Option(None, min=1, help="GPUs of a machine (1)."),
    nodes: int | None = typer.Option(None, min=1, help="Machines of the Ray cluster (1)."),
    on_failure: str | None = typer.Option(None, help="A failed reward: stop (default), or mask the answer."),
    config: Path | None = typer.Option(None, help="A recipe: batch, learning rates and the rest, as TOML."),
    python: str | None = typer.Option(None, help="The interpreter of verl's environment; else VERL_PYTHON."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print verl's command; start nothing."),
    more: list[str] = typer.Argument(None, help="Any of verl's own settings after --, as name=value."),
) -> None:
    """Train a policy by verl's PPO with the paper's settings. Needs GPUs and an environment with verl."""
    from palate.ppo.verl import SETTINGS, VerlTraining, check_data, command, script, start
    from palate.recipes import read_recipe

    recipe = read_recipe(config, SETTINGS) if config else {}
    options = {
        **{"train": train, "val": val, "reward_url": reward_url, "policy": policy, "critic": critic},
        **{"out": out, "gpus": gpus, "nodes": nodes, "on_failure": on_failure},
    }
    given = {name.replace("-", "_"): value for name, value in recipe.items()}
    training = VerlTraining.of(given | {name: value for name, value in options.items() if value is not None})
    interpreter = python or os.environ.get("VERL_PYTHON") or sys.executable
    if not dry_run:
        start(training, interpreter, more or (), lambda text: typer.echo(text, err=True))
        return
    check_data(training)
    typer.echo(script(command(training, interpreter, more or ())), nl=False)
