"""What all tests share: small data files, and the real public data if it lies beside the project."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from places import SHARED

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two test processes on two cores; more threads would only wait

settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture
def shared() -> Path:
    """The folder of real public data; tests that use it carry the mark `shared`."""
    if not SHARED.is_dir():
        pytest.skip("the shared data does not lie beside the project")
    return SHARED


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write rows (or raw lines) to a JSONL file and return its path."""

    def to(*rows: dict[str, Any] | str, name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        text = "".join((r if isinstance(r, str) else json.dumps(r, ensure_ascii=False)) + "\n" for r in rows)
        path.write_bytes(text.encode())
        return path

    return to
