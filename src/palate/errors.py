"""What can go wrong and what the user is told. Lowest floor: everything may raise these.

A `PalateError` is the user's to mend: the command line prints its message without a traceback.
Anything else that escapes is a defect of ours.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class PalateError(ValueError):
    """Bad usage or input. The message says what, where and what to do."""

    exit_code = 2


class SpecError(PalateError):
    """A model, view or data string that cannot be read."""


class DataError(PalateError):
    """A data file that breaks the contract; `problems` lists every line shown to the user."""

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class MissingExtra(PalateError):
    """An optional part that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra '{extra}', which is not installed.\nInstall it: pip install 'palate[{extra}]'"
        )


class ModelError(PalateError):
    """A reward model that cannot be trusted to give one meaningful number for an answer."""


class ClusterError(PalateError):
    """A cluster that cannot be joined, or cannot do the work."""


class ItemError(PalateError):
    """One item that cannot be put to a model; the run goes on and the item's status is `error`."""


class RunError(PalateError):
    """A run folder that cannot be used: locked, foreign or damaged."""


class Stopped(PalateError):
    """Work that was interrupted and can go on when the same command is given again."""

    exit_code = 3


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest known name, else the list of known names."""
    names = sorted(set(known))
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f" Did you mean '{near[0]}'?"
    return f" Known: {', '.join(names)}." if names else ""
