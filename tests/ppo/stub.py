"""A server that speaks the wire of `palate serve`, checked with its own records, and behaves as told."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from palate.rewards.wire import ScoreItem, ScoreReply, ScoreRequest, ScoreResult, read


@dataclass(frozen=True)
class Reply:
    """What the server does with one request; the body is that of good scores unless it is given."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    raw: bytes | None = None
    cut: bool = False


@dataclass
class RewardStub:
    """Its address, what it was asked and with which headers."""

    url: str
    items: list[ScoreItem] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    requests: int = 0


def reward_of(text: str) -> float:
    """The stub's reward: the answer's length."""
    return float(len(text))


def good(asked: ScoreRequest) -> list[dict[str, Any]]:
    """Return the rows of good scores."""
    rows = [ScoreResult(id=i.id, status="ok", score=reward_of(i.response)) for i in asked.items]
    return ScoreReply(results=rows).model_dump(exclude_none=True)["results"]  # type: ignore[no-any-return]


Behave = Callable[[int, ScoreRequest], Reply | None]


@contextmanager
def reward_server(behave: Behave = lambda number, asked: None) -> Iterator[RewardStub]:
    """Serve until the block ends. `behave` gets the number of the request, from 0 on, and the request."""
    lock = threading.Lock()
    leave = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            self._send(Reply(), {"status": "ok", "server": "palate"})

        def do_POST(self) -> None:
            found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = read(ScoreRequest, found)
            with lock:
                number, stub.requests = stub.requests, stub.requests + 1
                stub.items += asked.items
                stub.headers.append(dict(self.headers))
            reply = behave(number, asked) or Reply()
            until = time.monotonic() + reply.delay
            while time.monotonic() < until and not leave.wait(0.02):
                pass
            self._send(reply, {"results": good(asked)})

        def _send(self, reply: Reply, body: Any) -> None:
            raw = reply.raw if reply.raw is not None else json.dumps(body).encode()
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw) + (10 if reply.cut else 0)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                pass  # the client has left

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub = RewardStub(f"http://127.0.0.1:{server.server_address[1]}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield stub
    finally:
        leave.set()
        server.shutdown()
        server.server_close()
