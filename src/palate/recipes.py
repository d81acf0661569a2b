"""Recipes: a command's options in a TOML file. Keys are the long names of its options; the command line wins."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from palate.errors import DataError, SpecError, did_you_mean


def read_recipe(path: Path, allowed: Iterable[str]) -> dict[str, Any]:
    """Return the options that a recipe sets, by their names in `allowed`; `-` and `_` in a name are the same.

    Args:
        path: a TOML file of plain values and lists of them; it has no tables.
        allowed: the long names of the command's options.

    Raises:
        DataError: no such file, or not TOML.
        SpecError: a key that is no option, or a table.
    """
    names = {name.replace("_", "-"): name for name in allowed}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"recipe '{path}': no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as bad:
        raise DataError(f"recipe '{path}': not TOML ({bad}).") from None
    for key, value in found.items():
        if key.replace("_", "-") not in names:
            raise SpecError(f"recipe '{path}': unknown option '{key}'.{did_you_mean(key, names)}")
        plain = value if isinstance(value, list) else [value]
        if not all(isinstance(v, str | int | float | bool) for v in plain):
            raise SpecError(f"recipe '{path}': '{key}' must be a text, a number, true or false, or a list of them.")
    return {names[key.replace("_", "-")]: value for key, value in found.items()}
