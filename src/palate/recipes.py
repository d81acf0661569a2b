"""Recipes: TOML files whose keys are the long option names of one command."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from palate.errors import SpecError, did_you_mean


def read_recipe(path: Path, allowed: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a recipe.

    Raises:
        SpecError: not TOML, or a key that the command does not know.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise SpecError(f"{path}: not a readable TOML file ({bad}).") from None
    names = list(allowed)
    for name in found:
        if name not in names:
            raise SpecError(f"{path}: unknown key '{name}'.{did_you_mean(name, names)}")
    return found
