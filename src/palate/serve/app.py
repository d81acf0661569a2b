"""The paths of the server."""

import asyncio
import contextlib
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from palate import records
from palate.errors import PalateError
from palate.rewards.wire import CountRequest, Health, ScoreReply, ScoreRequest, Turn, WireError
from palate.serve.bodies import Refusal, body_of, read_as, reply
from palate.serve.desk import RETRY_AFTER, Desk, Entry
from palate.serve.openrlhf import RewardRequest, rewards, split
from palate.serve.served import as_sent

SCORE, COUNT, HEALTH, METRICS, REWARD = "/score", "/count", "/health", "/metrics", "/get_reward"
PATHS = (SCORE, COUNT, HEALTH, METRICS, REWARD)
log = logging.getLogger("palate.serve")
Handler = Callable[[Request], Awaitable[Response]]


class Routes:
    """What each path does."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def score(self, request: Request) -> Response:
        """Score items."""
        asked = read_as(ScoreRequest, await self._body(request))
        entries: list[Entry] = []
        faults: dict[str, str] = {}
        for k, item in enumerate(asked.items):
            try:
                entries.append(Entry(item.id, self._desk.served.query(item, f"items.{k}"), item.response))
            except WireError as bad:
                faults |= bad.fields
        if faults:
            raise Refusal(422, "; ".join(f"{name}: {fault}" for name, fault in list(faults.items())[:3]), faults)
        results = await self._desk.score(entries)
        return reply(ScoreReply(results=results).model_dump(exclude_defaults=True))

    async def reward(self, request: Request) -> Response:
        """Score in OpenRLHF's form."""
        asked = read_as(RewardRequest, await self._body(request))
        try:
            parts = split(asked)
        except WireError as bad:
            raise Refusal(422, str(bad), bad.fields) from None
        entries = [Entry(f"query.{k}", as_sent(turns), text) for k, (turns, text) in enumerate(parts)]
        found = rewards(await self._desk.score(entries))
        if isinstance(found, str):
            raise Refusal(500, found)
        return reply(found)

    async def count(self, request: Request) -> Response:
        """Count the tokens of prompts."""
        asked = read_as(CountRequest, await self._body(request))
        try:
            tokens = await self._desk.count([_messages(p) for p in asked.prompts])
        except PalateError as bad:
            raise Refusal(422, str(bad)) from None
        return reply({"tokens": tokens})

    async def health(self, request: Request) -> Response:
        """Say what is served, and whether it is."""
        if trouble := self._desk.trouble:
            raise Refusal(503, trouble, headers=RETRY_AFTER)
        budget = self._desk.served.budget
        found = Health(
            status="ok",
            server="palate",
            version=version("palate"),
            model=self._desk.served.identity,
            window=budget.prompt + budget.answer if budget else None,
            room=budget.answer if budget else None,
        )
        return reply(found.model_dump())

    async def metrics(self, request: Request) -> Response:
        """Give the counters."""
        text, kind = self._desk.meters.page
        return Response(text, media_type=kind)

    async def _body(self, request: Request) -> Any:
        if self._desk.draining:
            raise Refusal(503, "draining: this server is about to stop", headers={**RETRY_AFTER, "Connection": "close"})
        return await body_of(request, self._desk.settings.body, self._desk.settings.seconds)


class Guard:
    """Around all paths: the token, the count of replies, and the last place where anything is caught."""

    def __init__(self, app: ASGIApp, desk: Desk, token: str | None) -> None:
        self._app, self._desk = app, desk
        self._wanted = f"Bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in PATHS else "other"

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._desk.meters.request(path, message["status"])
            await send(message)

        self._desk.open_requests += 1
        try:
            if self._known(scope):
                await self._app(scope, receive, counted)
            else:
                refusal = Refusal(
                    401, "a token is needed: Authorization: Bearer …", headers={"WWW-Authenticate": "Bearer"}
                )
                await refusal.response(scope, receive, counted)
        except Exception as bad:  # noqa: BLE001 - a reply was sent; its words may hold texts, so only its kind is logged
            log.error("%s: %s", path, type(bad).__name__)
        finally:
            self._desk.open_requests -= 1

    def _known(self, scope: Scope) -> bool:
        given = next((v for k, v in scope["headers"] if k == b"authorization"), b"")
        return self._wanted is None or hmac.compare_digest(given, self._wanted)


def make_app(desk: Desk, token: str | None) -> ASGIApp:
    """Return the application; no page of it loads anything from elsewhere."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watch = asyncio.create_task(desk.watch())
        yield
        watch.cancel()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    routes = Routes(desk)
    posts: dict[str, Handler] = {SCORE: routes.score, COUNT: routes.count, REWARD: routes.reward}
    gets: dict[str, Handler] = {HEALTH: routes.health, METRICS: routes.metrics}
    for path, handler in posts.items():
        app.add_route(path, handler, methods=["POST"])
    for path, handler in gets.items():
        app.add_route(path, handler, methods=["GET"])
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _failed)
    return Guard(app, desk, token)


def _refused(request: Request, bad: Exception) -> Response:
    assert isinstance(bad, Refusal)
    return bad.response


def _http(request: Request, bad: Exception) -> Response:
    assert isinstance(bad, HTTPException)
    return Refusal(bad.status_code, bad.detail, headers=bad.headers or {}).response


def _failed(request: Request, bad: Exception) -> Response:
    return Refusal(500, f"a defect of the server: {type(bad).__name__}").response


def _messages(turns: list[Turn]) -> tuple[records.Message, ...]:
    return tuple(records.Message(t.role, t.content) for t in turns)
