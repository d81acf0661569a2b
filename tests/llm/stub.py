"""A server that speaks chat completions and behaves as told, well or badly, and remembers all that it was asked."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LONG = 30.0


@dataclass(frozen=True)
class Asked:
    """One request: its place in the order of arrival, its body and its headers, and where it went."""

    number: int
    body: dict[str, Any]
    headers: dict[str, str]
    path: str = ""
    method: str = "POST"

    @property
    def prompt(self) -> str:
        """All messages' texts."""
        return "\n".join(m["content"] for m in self.body["messages"])

    @property
    def day(self) -> int:
        """The number of the item, which questions of `make_row` name."""
        found = re.search(r"on day (\d+)\?", self.prompt)
        return int(found[1]) if found else -1

    @property
    def first(self) -> str:
        """The answer in seat A, or the only one."""
        found = re.search(r"===== ANSWER (?:A )?\w{8} =====\n(.*?)\n===== END", self.prompt, re.DOTALL)
        return found[1] if found else ""


@dataclass(frozen=True)
class Reply:
    """What the server does with one request."""

    text: str | None = None
    finish: str = "stop"
    status: int = 200
    error: str = ""
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    usage: bool = True
    thoughts: str | None = None
    logprobs: dict[str, float] | None = None
    raw: bytes | None = None
    kind: str = "application/json"
    cut: bool = False
    hung: bool = False
    drops: float = 0.0

    @property
    def body(self) -> bytes:
        """The bytes that are sent."""
        if self.raw is not None:
            return self.raw
        if self.status != 200:
            return json.dumps({"error": {"message": self.error, "type": "error", "code": self.code}}).encode()
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.thoughts is not None:
            message["reasoning_content"] = self.thoughts
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self.finish}
        if self.logprobs is not None:
            top = [{"token": t, "logprob": p, "bytes": None} for t, p in self.logprobs.items()]
            choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}] if top else []}
        found: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        if self.usage:
            found["usage"] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return json.dumps(found).encode()


Rule = Callable[[Asked], Reply]


def verdict(choice: str) -> Reply:
    """A reply in the agreed form."""
    return Reply(json.dumps({"reason": "It suits them.", "verdict": choice}))


def score(value: float) -> Reply:
    """A score in the agreed form."""
    return Reply(json.dumps({"reason": "It suits them.", "score": value}))


def right(asked: Asked) -> Reply:
    """Prefer the answer of `make_row` that is chosen, wherever it sits."""
    return verdict("A" if "bean stew" in asked.first else "B")


def always(reply: Reply) -> Rule:
    """Reply the same to everything."""
    return lambda asked: reply


def script(*replies: Reply) -> Rule:
    """Reply in turn; the last one for ever."""
    return lambda asked: replies[min(asked.number, len(replies) - 1)]


def first_for(day: int, *replies: Reply, then: Rule = right) -> Rule:
    """Give an item these replies in turn; all else, and what comes after, goes by `then`."""
    left = list(replies)
    lock = threading.Lock()

    def rule(asked: Asked) -> Reply:
        with lock:
            return left.pop(0) if asked.day == day and left else then(asked)

    return rule


def for_item(day: int, reply: Reply, then: Rule = right) -> Rule:
    """Give an item always the same reply; all else goes by `then`."""
    return lambda asked: reply if asked.day == day else then(asked)


def refusing(field_name: str, message: str, then: Rule = right) -> Rule:
    """Refuse every request that has a field."""
    return lambda asked: Reply(status=400, error=message) if field_name in asked.body else then(asked)


BUSY = Reply(status=429, error="slow down", headers={"Retry-After": "0.2"})
BROKEN = Reply(status=500, error="internal error", headers={"Retry-After": "0.01"})
TOO_LONG = Reply(
    status=400, error="This model's maximum context length is 4096 tokens.", code="context_length_exceeded"
)
HUNG = Reply(hung=True)
CUT = Reply('{"verdict": "A"}', cut=True)


class Stub:
    """The server while the block lasts: `with Stub(rule) as server: … server.url … server.asked`."""

    def __init__(self, rule: Rule = right) -> None:
        self.rule = rule
        self.asked: list[Asked] = []
        self.busy = self.busiest = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, asked: Asked) -> Reply:
        """Go by the rule."""
        return self.rule(asked) if asked.path.startswith("/v1/chat/completions") else Reply(status=404)

    def of(self, day: int) -> list[Asked]:
        """What was asked about one item."""
        return [a for a in self.asked if a.day == day]

    def __enter__(self) -> "Stub":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    stub: Stub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may leave at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        stub = self.server.stub
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        with stub.lock:
            asked = Asked(
                len(stub.asked), body, {k.lower(): v for k, v in self.headers.items()}, self.path, self.command
            )
            stub.asked.append(asked)
            stub.busy += 1
            stub.busiest = max(stub.busiest, stub.busy)
        try:
            self._send(stub.answer(asked))
        finally:
            with stub.lock:
                stub.busy -= 1

    def _send(self, reply: Reply) -> None:
        if self.server.stub.closing.wait(LONG if reply.hung else reply.delay) or reply.hung:
            self.close_connection = True
            return
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in self._pieces(reply):
            self.wfile.write(piece)
            self.wfile.flush()
        self.close_connection = self.close_connection or reply.cut

    def _pieces(self, reply: Reply) -> Iterator[bytes]:
        """Yield the body: whole, half, or in drops of a byte."""
        if not reply.drops:
            yield reply.body[: len(reply.body) // 2] if reply.cut else reply.body
            return
        for k in range(len(reply.body)):
            if self.server.stub.closing.wait(reply.drops):
                return
            yield reply.body[k : k + 1]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
