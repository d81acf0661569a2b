"""How requests go out to any server: bounded in number and in time, patient with a busy server, nothing cut silently.

Retries, back-off and Retry-After are the official library's; what is asked, and what a reply means, is the caller's.
"""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from palate.errors import ModelError
from palate.llm.secrets import masked_url, url_secrets

LOCAL_KEY = "none"
Told = Callable[[str, str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is and how to treat the server. The key is named, never held: `key_env` is a variable's name."""

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    connections: int = 16
    connect_seconds: float = 10.0
    read_seconds: float = 120.0
    retries: int = 8

    @property
    def key(self) -> str:
        """The key itself; servers of one's own need none.

        Raises:
            ModelError: no server is named and there is no key for OpenAI's.
        """
        found = os.environ.get(self.key_env)
        if not found and not self.base_url:
            raise ModelError(
                f"model '{self.model}': no server. Set {self.key_env}, or name a server of your own: "
                "--base-url http://localhost:8000/v1"
            )
        return found or LOCAL_KEY

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not stand in any message or file."""
        return (os.environ.get(self.key_env) or LOCAL_KEY, *url_secrets(self.base_url))

    @property
    def shown(self) -> str:
        """The server without anything secret in its address."""
        return masked_url(self.base_url) if self.base_url else "OpenAI"


@dataclass(slots=True)
class Attempts:
    """How one request goes: retries, and how long it may still wait for replies; waiting for a retry is not counted."""

    limit: asyncio.Timeout
    left: float
    tell: Callable[[str], None]
    began: float | None = None
    ended: float | None = None
    cause: str = ""
    retries: int = 0
    waited: float = 0.0

    def begin(self, retry: bool) -> None:
        """Note that a request goes out."""
        now = asyncio.get_running_loop().time()
        if self.began is not None:
            self.left -= now - self.began
        if self.ended is not None:
            self.waited += now - self.ended
        if retry:
            self.retries += 1
            self.tell(f"tried again after {self.cause}")
        self.began, self.ended, self.cause = now, None, "no reply"
        self.limit.reschedule(now + max(0.0, self.left))

    def turned_away(self, cause: str) -> None:
        """Note that the server is busy or broken; what comes next is a wait."""
        now = asyncio.get_running_loop().time()
        self.left -= now - (self.began or now)
        self.began, self.ended, self.cause = None, now, cause
        self.limit.reschedule(None)

    @property
    def told(self) -> str | None:
        """What had to be done to get a reply."""
        waited = f" and {self.waited:.1f} s of waiting" if self.waited >= 0.05 else ""
        return f"after {self.retries} retries{waited}" if self.retries else None


_ATTEMPTS: ContextVar[Attempts | None] = ContextVar("attempts", default=None)


@asynccontextmanager
async def patience(seconds: float, tell: Callable[[str], None]) -> AsyncIterator[Attempts]:
    """Give the requests inside `seconds` altogether, silent or slow; waits between retries come on top of that.

    Raises:
        TimeoutError: the time is up.
    """
    async with asyncio.timeout(None) as limit:
        attempts = Attempts(limit, seconds, tell)
        _ATTEMPTS.set(attempts)
        yield attempts


def open_client(endpoint: Endpoint, key: str) -> Any:
    """Return the library's client for use in an event loop."""
    import openai

    hooks: dict[str, Any] = {"request": [_goes_out], "response": [_came_back]}
    return openai.AsyncOpenAI(**_settings(endpoint, key), http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks))


def open_plain_client(endpoint: Endpoint, key: str) -> Any:
    """Return the library's client for single questions."""
    import openai

    return openai.OpenAI(**_settings(endpoint, key))


def _settings(endpoint: Endpoint, key: str) -> dict[str, Any]:
    import openai

    url = urlsplit(endpoint.base_url or "")
    return {
        "api_key": key,
        "base_url": urlunsplit(url._replace(query="", fragment="")) or None,
        "default_query": dict(parse_qsl(url.query)),
        "max_retries": endpoint.retries,
        "timeout": openai.Timeout(endpoint.read_seconds, connect=endpoint.connect_seconds),
    }


async def _goes_out(request: Any) -> None:
    if (attempts := _ATTEMPTS.get()) is not None:
        attempts.begin(retry=request.headers.get("x-stainless-retry-count", "0") != "0")


async def _came_back(response: Any) -> None:
    attempts, code = _ATTEMPTS.get(), response.status_code
    if attempts is not None and (code in (408, 409, 429) or code >= 500):
        wait = response.headers.get("retry-after")
        attempts.turned_away(f"HTTP {code}" + (f" (Retry-After {wait})" if wait else ""))


class Loop:
    """An event loop in a thread of its own, with the library's client in it."""

    def __init__(self, endpoint: Endpoint, key: str) -> None:
        self.client = open_client(endpoint, key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="palate-llm")

    def __enter__(self) -> "Loop":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    def each(self, take: Callable[[], Coroutine[Any, Any, T] | None], at_once: int) -> Iterator[T]:
        """Yield the results of works as they come, in any order; an exception of one is raised.

        Args:
            take: gives the next work, or None if there is none now; results may bring more, so it is asked again after
                each. Called as places get free, in the caller's thread.
            at_once: works in the loop at any time.
        """
        results: queue.Queue[T | BaseException] = queue.Queue()
        waiting = 0
        while True:
            while waiting < at_once and (work := take()) is not None:
                self._submit(work, results)
                waiting += 1
            if waiting == 0:
                return
            found = results.get()
            waiting -= 1
            if isinstance(found, BaseException):
                raise found
            yield found

    def _submit(self, work: Coroutine[Any, Any, T], results: "queue.Queue[T | BaseException]") -> None:
        def done(task: "asyncio.Future[T]") -> None:
            if not task.cancelled():
                results.put(task.exception() or task.result())

        def start() -> None:
            self._loop.create_task(work).add_done_callback(done)

        self._loop.call_soon_threadsafe(start)

    async def _end(self) -> None:
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.close()
