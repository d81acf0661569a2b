"""An append-only JSONL log keyed by id: the last line of an id wins, a torn tail is cut when opened."""

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from palate.errors import RunError


def dump(value: Any, *, indent: int | None = None) -> str:
    """Return strict JSON: no NaN, no Infinity."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


class RowLog:
    """The rows of a run by id. Every append reaches the operating system before it returns.

    Args:
        path: the file; need not exist.
        mend: cut a torn tail off the file; without it the tail is only left unread, as for a run somebody else writes.
        forget: fields that are written but not held in memory.

    Raises:
        RunError: a line in the middle that is not a row, which no crash of ours can leave behind.
    """

    def __init__(self, path: Path, *, mend: bool = True, forget: Collection[str] = ()) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self.tries: Counter[str] = Counter()
        self._forget = frozenset(forget)
        self._handle: BinaryIO | None = None
        if path.exists():
            self._read(mend)

    def __len__(self) -> int:
        return len(self.rows)

    def __enter__(self) -> "RowLog":
        self._handle = self.path.open("ab")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._handle:
            self._handle.flush()
            os.fsync(self._handle.fileno())
            self._handle.close()
            self._handle = None

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row, which must have an `id`."""
        assert self._handle is not None, "the log is not open for writing"
        self._handle.write(dump(row).encode() + b"\n")
        self._handle.flush()
        self._keep(dict(row))

    def _keep(self, row: dict[str, Any]) -> None:
        self.rows[row["id"]] = {k: v for k, v in row.items() if k not in self._forget} if self._forget else row
        self.tries[row["id"]] += row.get("tries", 1)

    def _read(self, mend: bool) -> None:
        good = 0
        for number, raw, ended in _lines(self.path):
            row = _row(raw)
            if row is None or not ended:
                if good + len(raw) + int(ended) < self.path.stat().st_size:
                    raise RunError(
                        f"{self.path}, line {number}: not a row. The file is damaged; use --fresh to start anew."
                    )
                break
            self._keep(row)
            good += len(raw) + 1
        if mend and good < self.path.stat().st_size:
            with self.path.open("r+b") as handle:
                handle.truncate(good)


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    with path.open("rb") as handle:
        for number, raw in enumerate(handle, 1):
            yield number, raw.rstrip(b"\n"), raw.endswith(b"\n")


def _row(raw: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(raw)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("id"), str) else None
