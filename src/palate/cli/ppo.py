"""`palate ppo`."""

import typer

from palate.cli import ppo_verl

app = typer.Typer(help="Train a policy by a reward model.", no_args_is_help=True, rich_markup_mode=None)
app.command("prepare")(ppo_verl.prepare)
app.command("verl")(ppo_verl.verl)
