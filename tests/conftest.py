"""What all tests share: small data files, and the real public data if it lies beside the project."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
Row = dict[str, Any]


@pytest.fixture
def shared() -> Path:
    """The folder of real public data; tests that use it carry the mark `shared`."""
    if not SHARED.is_dir():
        pytest.skip("the shared data does not lie beside the project")
    return SHARED


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write rows (or raw lines) to a JSONL file and return its path."""

    def to(*rows: Row | str, name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        text = "".join((r if isinstance(r, str) else json.dumps(r, ensure_ascii=False)) + "\n" for r in rows)
        path.write_bytes(text.encode())
        return path

    return to


def make_row(number: int = 1, **changes: Any) -> Row:
    """Return a complete row in Palate's own form; a value of None removes a field."""
    row: Row = {
        "id": f"q{number}",
        "user_id": f"u{number}",
        "domain": "food",
        "question": f"What should I cook on day {number}?",
        "profile": [
            {"id": f"p{number}-1", "category": "food", "text": f"I grow beans number {number} on my roof."},
            {"id": f"p{number}-2", "category": "sport", "text": "I train for a long race in the hills."},
        ],
        "rubric_aspects": [{"aspect": "Beans", "evidence": "I eat beans", "reason": "They have plenty."}],
        "narrative": f"I eat beans and I have many of them, number {number}.",
        "chosen": f"Cook a bean stew with herbs, variant {number}.",
        "rejected": f"Roast a chicken with potatoes and gravy, variant {number}.",
    }
    return {k: v for k, v in (row | changes).items() if v is not None}
