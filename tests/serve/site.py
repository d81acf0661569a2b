"""A real server of rewards for tests, and a family `fake/` that counts letters unless its answers tell it otherwise."""

import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from palate.records import Group, Score
from palate.rewards import families, register
from palate.rewards.registry import Setting
from palate.serve import RewardServer, Settings
from palate.spec import Spec

CALLS: list[list[Group]] = []


class Fake:
    """Scores an answer by its letters. `sleep 2` sleeps, `nan` gives NaN, `boom` raises, `lost` gives nothing."""

    name = "fake/letters"
    probe = False
    needs_context = False
    budget = None
    environment: Mapping[str, Any] = {}

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self.identity = {"family": "fake", "id": "letters", "folder": "/home/somebody/models/letters"}

    def prepare(self) -> None:
        """Nothing to load."""

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield scores in order."""
        groups = list(groups)
        CALLS.append(groups)
        time.sleep(self._pause)
        for group in groups:
            for answer in group.answers:
                what, _, more = answer.text.partition(" ")
                if what == "sleep":
                    time.sleep(float(more))
                if what == "boom":
                    raise RuntimeError("the model fell over")
                if what != "lost":
                    yield Score(answer.id, "ok", float("nan") if what == "nan" else float(len(answer.text)))


def known() -> None:
    """Make the family known in this process."""
    if "fake" not in families():
        register("fake", _fake)


def _fake(spec: Spec, setting: Setting) -> Any:
    return Fake(float(spec.options.get("pause", "0")))


@dataclass
class Reply:
    """What came back; the names of headers are in small letters."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The results by id."""
        return {r["id"]: r for r in self.body["results"]}

    @property
    def fields(self) -> dict[str, str]:
        """What is wrong with which field."""
        return {f["field"]: f["fault"] for f in self.body["error"]["fields"]}


@dataclass
class Client:
    """Speaks to one server, a connection for each request."""

    address: str
    token: str | None = None

    def get(self, path: str) -> Reply:
        """Ask for a path."""
        return self._ask("GET", path, None, {})

    def score(self, *items: dict[str, Any]) -> Reply:
        """Ask for scores."""
        return self.post("/score", {"items": list(items)})

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        """Send JSON, or bytes as they are."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._ask("POST", path, raw, {"Content-Type": "application/json", **headers})

    def _ask(self, method: str, path: str, raw: bytes | None, headers: dict[str, str]) -> Reply:
        link = http.client.HTTPConnection(self.address, timeout=60)
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            link.request(method, path, raw, headers | bearer)
            found = link.getresponse()
            text = found.read().decode()
            kind = found.headers.get("Content-Type", "")
            body = json.loads(text, parse_constant=_strict) if kind == "application/json" else text
            return Reply(found.status, body, {k.lower(): v for k, v in found.headers.items()})
        finally:
            link.close()

    def meter(self, name: str) -> float:
        """Return a counter's value."""
        lines = self.get("/metrics").body.splitlines()
        return float(next(li for li in lines if li.startswith(name + " ")).rpartition(" ")[2])


def _strict(name: str) -> Any:
    raise AssertionError(name)


def item(name: str, response: str, **more: Any) -> dict[str, Any]:
    """An item with a question."""
    return {"id": name, "response": response, **({} if "messages" in more else {"question": "Which way?"}), **more}


@contextmanager
def running(model: str = "fake/letters", view: str | None = None, **settings: Any) -> Iterator[Client]:
    """Run a server in a thread on a free port."""
    known()
    made = Settings(port=0, **settings)
    server = RewardServer(model, view, made)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Client(server.address, made.token)
    finally:
        server.drain()
        thread.join(timeout=30)
        assert not thread.is_alive()
