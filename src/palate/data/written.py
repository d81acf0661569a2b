"""New files: never over an old one, and whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from palate.errors import DataError


@contextmanager
def new_file(out: Path, ending: str) -> Iterator[Path]:
    """Yield the path to write to; `out` is there when the block has ended well, and nothing is left if it has not.

    Raises:
        DataError: `out` exists, ends otherwise or lies in no folder.
    """
    if out.exists():
        raise DataError(f"{out}: exists already; nothing was written.")
    if out.suffix != ending:
        raise DataError(f"{out}: the output must end in {ending}.")
    if not out.parent.is_dir():
        raise DataError(f"{out}: the folder {out.parent} is not there.")
    temporary = out.with_name(f".{out.stem}.new{ending}")
    try:
        yield temporary
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
