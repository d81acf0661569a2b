"""From the bytes of a request to something strict, and from anything back to bytes that are strict JSON."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from palate.rewards.wire import WireError, read

M = TypeVar("M", bound=BaseModel)
DEEP = "nested too deeply"


@dataclass
class Refusal(Exception):
    """A request that gets an HTTP error. `fields` says what is wrong with which field."""

    status: int
    message: str
    fields: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def response(self) -> Response:
        """The reply."""
        found = [{"field": name, "fault": fault} for name, fault in self.fields.items()]
        return reply({"error": {"message": self.message, "fields": found}}, self.status, self.headers)


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return strict JSON, in ASCII, so that broken Unicode of a request can be named in the reply to it."""
    text = json.dumps(value, allow_nan=False)
    return Response(text.encode(), status, dict(headers or {}), media_type="application/json")


async def body_of(request: Request, most: int, seconds: float) -> Any:
    """Return the JSON of a request.

    Args:
        request: from anybody.
        most: bytes.
        seconds: how long it may take to arrive.

    Raises:
        Refusal: 413, 415, 408, or 422 for what is not strict JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the content type has to be application/json")
    large = Refusal(413, f"the body has more than {most} bytes", headers={"Connection": "close"})
    if int(request.headers.get("content-length") or 0) > most:
        raise large
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise large
                parts.append(part)
    except TimeoutError:
        raise Refusal(408, f"the body did not arrive within {seconds:g} s", headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refusal(400, "the connection was closed before the body had arrived") from None
    return _decoded(b"".join(parts))


def read_as(kind: type[M], found: Any) -> M:
    """Return decoded JSON as a request.

    Raises:
        Refusal: 422, with the fields.
    """
    try:
        return read(kind, found)
    except WireError as bad:
        raise Refusal(422, str(bad), bad.fields) from None
    except RecursionError:
        raise Refusal(422, DEEP) from None


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode(), parse_constant=_no_number, object_pairs_hook=_once)
    except RecursionError:
        raise Refusal(422, f"the body is {DEEP}") from None
    except ValueError as bad:
        raise Refusal(422, f"the body is no strict JSON: {str(bad)[:300]}") from None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(n for n in names if names.count(n) > 1)[:80]!r} is there twice")
    return found
