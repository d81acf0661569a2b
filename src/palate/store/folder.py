"""The folder of one run: its name, its record `run.json`, its lock."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from palate.errors import RunError, SpecError
from palate.store.rows import dump

RUN, ROWS, CALLS, METRICS, LOCK = "run.json", "rows.jsonl", "calls.jsonl", "metrics.json", ".lock"


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces, the form that digests are made of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def refuse_file(out: Path) -> None:
    """Make sure that `out` can be a folder.

    Raises:
        SpecError: there is something else of that name.
    """
    if out.exists() and not out.is_dir():
        raise SpecError(f"--out {out}: there is a file of that name; a folder is needed.")


class RunFolder:
    """One run on disk. Use as a context manager to hold its lock, which the system frees when the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path / LOCK, timeout=0)

    def __enter__(self) -> "RunFolder":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout:
            raise RunError(f"{self.path}: another process is working in this folder. Wait for it or stop it.") from None
        except OSError as bad:
            raise RunError(
                f"{self.path}: cannot be written to ({bad.strerror or bad}). Choose another --out."
            ) from None
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    @property
    def rows(self) -> Path:
        """The path of the rows."""
        return self.path / ROWS

    @property
    def calls(self) -> Path:
        """The path of the exchanges with a language model."""
        return self.path / CALLS

    def record(self) -> dict[str, Any] | None:
        """Return `run.json`, or None if there is none yet.

        Raises:
            RunError: it cannot be read.
        """
        return self.read(RUN)

    def metrics(self) -> dict[str, Any] | None:
        """Return `metrics.json`, or None."""
        return self.read(METRICS)

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Replace `run.json` in one step."""
        self.write(RUN, record)

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Replace `metrics.json` in one step."""
        self.write(METRICS, metrics)

    def set_aside(self) -> None:
        """Rename rows, metrics and record to `old-<n>-…`, so that a fresh start loses nothing."""
        number = 1 + len(list(self.path.glob(f"old-*-{ROWS}")))
        for name in (ROWS, CALLS, METRICS, RUN):
            with suppress(FileNotFoundError):
                (self.path / name).rename(self.path / f"old-{number}-{name}")

    @contextmanager
    def gone_if(self, *kinds: type[Exception]) -> Iterator[None]:
        """Remove the folder if such an exception ends the block before anything is in it: a row, an exchange."""
        try:
            yield
        except kinds:
            if not any(p.exists() and p.stat().st_size for p in (self.rows, self.calls)):
                for name in (ROWS, CALLS, RUN, LOCK):
                    (self.path / name).unlink(missing_ok=True)
                with suppress(OSError):
                    self.path.rmdir()
            raise

    def replace_rows(self, rows: Iterable[Mapping[str, Any]], old_name: str) -> None:
        """Put other rows in place of the present ones in one step; these are kept under `old_name`."""
        temporary = self.path / ".rows.new"
        with temporary.open("w", encoding="utf-8") as handle:
            for row in rows:
                handle.write(dump(row) + "\n")
        if not (self.path / old_name).exists():
            os.link(self.rows, self.path / old_name)
        temporary.replace(self.rows)

    def read(self, name: str) -> dict[str, Any] | None:
        """Return the JSON object in file `name`, or None if there is no such file.

        Raises:
            RunError: it cannot be read.
        """
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as bad:
            raise RunError(f"{self.path / name}: not readable ({bad}). Use --fresh to start anew.") from None
        if not isinstance(found, dict):
            raise RunError(f"{self.path / name}: expected an object. Use --fresh to start anew.")
        return found

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Replace the JSON file `name` in one step."""
        temporary = self.path / f".{name}.new"
        with temporary.open("w", encoding="utf-8") as handle:
            handle.write(dump(value, indent=2) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(self.path / name)
