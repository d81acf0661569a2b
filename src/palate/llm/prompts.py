"""Prompts are files. Placeholders `{{name}}` are filled in one pass, so a value that looks like one stays text."""

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files

_HOLE = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's text and the names it has to be filled with."""

    name: str
    text: str
    holes: frozenset[str]

    @property
    def digest(self) -> str:
        """The first 16 hex digits of the text's SHA-256, which runs record."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def fill(self, **values: str) -> str:
        """Return the text with every placeholder replaced; all other braces stay as they are.

        Raises:
            KeyError: a value is missing or has no place.
        """
        if values.keys() != self.holes:
            raise KeyError(f"prompt '{self.name}' needs {sorted(self.holes)}, got {sorted(values)}")
        return _HOLE.sub(lambda hole: values[hole[1]], self.text)


def load_prompt(package: str, name: str, holes: tuple[str, ...]) -> Prompt:
    """Return the prompt in `package`'s folder `prompts`.

    Raises:
        ValueError: its placeholders are not exactly `holes`.
    """
    text = (files(package) / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip("\n")
    found = frozenset(_HOLE.findall(text))
    if found != frozenset(holes):
        raise ValueError(f"prompt '{name}' has the placeholders {sorted(found)}, not {sorted(holes)}")
    return Prompt(name, text, found)
