"""`--config FILE`: a recipe sets the options that the command line does not."""

from pathlib import Path
from typing import Any

import typer

from palate.recipes import read_recipe

CONFIG = "config"


def from_recipe(context: typer.Context, path: Path | None) -> Path | None:
    """Make a recipe's values the defaults of a command. Use as callback of an eager option.

    Raises:
        PalateError: a recipe that cannot be used.
    """
    if path is not None:
        names = {_long(p): p for p in context.command.params if p.name != CONFIG and p.param_type_name == "option"}
        found = read_recipe(path, names)
        context.default_map = {**(context.default_map or {}), **{_name(names[k]): v for k, v in found.items()}}
    return path


def _long(option: Any) -> str:
    return str(next(o for o in option.opts if o.startswith("--"))).removeprefix("--")


def _name(option: Any) -> str:
    return str(option.name)
