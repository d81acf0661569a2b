"""Servers of rewards for tests: Palate's own, vLLM's and SGLang's wire on real sockets, scored by a rule."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from llm.stub import Asked, Reply, Stub

Route = Callable[[Asked], Reply] | Reply
Rule = Callable[[str], Any]
LONGER = (
    "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens. "
    "Please reduce the length of the input prompt."
)


class Site(Stub):
    """A server with some paths, each a reply or a function of what was asked; all else is 404."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        super().__init__()
        self.routes = routes

    @property
    def address(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://").removesuffix("/v1")

    def answer(self, asked: Asked) -> Reply:
        """Go by the path."""
        route = self.routes.get(asked.path.partition("?")[0], Reply(status=404, error="no such path"))
        return route if isinstance(route, Reply) else route(asked)

    def at(self, path: str) -> list[Asked]:
        """What was asked at a path."""
        return [a for a in self.asked if a.path.partition("?")[0] == path]


def sent(value: Any, **more: Any) -> Reply:
    """A reply of JSON, which may hold NaN."""
    return Reply(raw=json.dumps(value).encode(), **more)


def length(text: str) -> float:
    """The rule of builtin/length."""
    return float(len(text))


def palate(
    score: Callable[[Asked], Reply] | None = None, *, window: int | None = None, room: int | None = None
) -> dict[str, Route]:
    """Palate's own server; without a window it holds anything, with one it counts characters as tokens."""
    health = {
        "status": "ok",
        "server": "palate",
        "version": "0.1.0",
        "model": {"family": "builtin", "id": "length"},
        "window": window,
        "room": room,
    }

    def count(asked: Asked) -> Reply:
        return sent({"tokens": [sum(len(turn["content"]) for turn in p) for p in asked.body["prompts"]]})

    return {
        "/health": sent(health),
        "/score": score or results(lambda i: ok(i, length(i["response"]))),
        "/count": count,
    }


def ok(item: dict[str, Any], value: float) -> dict[str, Any]:
    """A result with a score."""
    return {"id": item["id"], "status": "ok", "score": value}


def results(rule: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Asked], Reply]:
    """Answer `/score` item by item."""
    return lambda asked: sent({"results": [rule(item) for item in asked.body["items"]]})


def answer_of(asked: Asked) -> str:
    """The answer that was sent as the last turn."""
    return str(asked.body["messages"][-1]["content"])


def vllm(
    rule: Callable[[Asked], Any] = lambda asked: [length(answer_of(asked))],
    *,
    path: str = "/classify",
    schema: bool = True,
    switch: str | None = "use_activation",
    window: int = 100_000,
    messages: bool = True,
) -> dict[str, Route]:
    """A vLLM server with one endpoint of rewards, whose tokens are characters."""
    names = ["model", *(["messages"] if messages else ["input"]), *([switch] if switch else [])]
    names += ["task"] if path == "/pooling" else []
    body = {"$ref": "#/components/schemas/Request"}
    found = {
        "paths": {path: {"post": {"requestBody": {"content": {"application/json": {"schema": {"anyOf": [body]}}}}}}},
        "components": {"schemas": {"Request": {"properties": {name: {"type": "string"} for name in names}}}},
    }

    def reply(asked: Asked) -> Reply:
        if not asked.body:
            return Reply(status=400, error="Field required")
        given = rule(asked)
        if isinstance(given, Reply):
            return given
        field = {"/classify": "probs", "/pooling": "data"}[path]
        return sent({"data": [{"index": 0, field: given}], "usage": {"prompt_tokens": 7}})

    def tokens(asked: Asked) -> Reply:
        texts = (
            [asked.body["prompt"]] if "prompt" in asked.body else [m["content"] for m in asked.body.get("messages", [])]
        )
        return sent({"count": sum(map(len, texts))})

    return {
        "/version": sent({"version": "0.32.0"}),
        "/v1/models": sent({"data": [{"id": "rm", "root": "/srv/models/rm", "max_model_len": window}]}),
        path: reply,
        "/tokenize": tokens,
        **({"/openapi.json": sent(found)} if schema else {}),
    }


def sglang(rule: Callable[[list[int]], Any], **about: Any) -> dict[str, Route]:
    """An SGLang server."""
    info = {"model_path": "/srv/models/rm", "is_generation": False, "weight_version": "3", **about}
    return {
        "/get_model_info": sent(info),
        "/get_server_info": sent({"version": "0.5.4", "context_length": 4096, "api_key": "sk-SERVER-secret"}),
        "/classify": lambda asked: sent([{"embedding": rule(ids), "meta_info": {}} for ids in asked.body["input_ids"]]),
    }
