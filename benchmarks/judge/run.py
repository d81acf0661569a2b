"""How fast a judge is asked: 500 pairs × 2 orders against a server that takes 100 ms for every reply, 16 connections.

    python benchmarks/judge/run.py [--quick] [--json]

The ideal is connections / latency = 160 calls a second. The server is a process of its own on the same machine.
"""

import argparse
import asyncio
import json
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LATENCY, CONNECTIONS, PAIRS = 0.1, 16, 500
BODY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": '{"reason": "r", "verdict": "A"}'},
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(sizes[0].split(b":")[1]))
            await asyncio.sleep(LATENCY)
            writer.write(HEAD + BODY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def data(folder: Path, pairs: int) -> Path:
    path = folder / "pairs.jsonl"
    with path.open("w") as handle:
        for k in range(pairs):
            posts = [{"id": str(n), "text": f"Post {n} of {k}: " + "word " * 60} for n in range(10)]
            row = {"id": str(k), "user_id": f"u{k}", "question": f"What about {k}?", "profile": posts}
            handle.write(
                json.dumps(row | {"chosen": f"Yes {k}. " + "yes " * 80, "rejected": f"No {k}. " + "no " * 80}) + "\n"
            )
    return path


def measure(pairs: int) -> dict[str, Any]:
    import palate

    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    try:
        with TemporaryDirectory() as folder:
            warm = data(Path(folder), 16)
            palate.evaluate(str(warm), "judge/m", "question", Path(folder) / "warm", base_url=url)
            path = data(Path(folder), pairs)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start = time.perf_counter()
            run = palate.evaluate(str(path), "judge/m", "history", Path(folder) / "runs", base_url=url).runs[0]
            seconds = time.perf_counter() - start
            assert run.metrics["scored"] == pairs
    finally:
        server.kill()
        server.wait()
    rate, ideal = 2 * pairs / seconds, CONNECTIONS / LATENCY
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "calls": 2 * pairs,
        "seconds": round(seconds, 2),
        "calls_per_second": round(rate, 1),
        "share_of_ideal": round(rate / ideal, 3),
        "peak_mb": round(peak / 1024),
        "grown_mb": round((peak - before) / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the pairs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve())
        return
    result = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        **measure(PAIRS // 5 if args.quick else PAIRS),
    }
    print(json.dumps(result, indent=2) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
