"""Recipes: a TOML file whose keys are the long option names of one command."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from palate.errors import SpecError, did_you_mean


def read_recipe(path: Path, allowed: Iterable[str]) -> dict[str, Any]:
    """Return the settings in a recipe; `-` and `_` in names are the same, and names come back with `_`.

    Args:
        path: the file.
        allowed: the names it may hold.

    Raises:
        SpecError: no such file, not TOML, or a name that is not allowed.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"recipe {path}: no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise SpecError(f"recipe {path}: not TOML: {bad}.") from None
    names = {name.replace("-", "_") for name in allowed}
    for name in found:
        if name.replace("-", "_") not in names:
            raise SpecError(f"recipe {path}: unknown '{name}'.{did_you_mean(name, names)}")
    return {name.replace("-", "_"): value for name, value in found.items()}
