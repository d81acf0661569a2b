"""What every request meets before a page does: a limit on what it may send, where it may come from, safe headers.

Plain ASGI, so that it also holds for error pages and for bodies that tell no length.
"""

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 64 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# The link is the password: it must reach neither another site (referrer) nor a cache.
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}


class TooLarge(Exception):
    """A body over the limit."""


class Guard:
    """Wraps an application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD") and not _same_origin(headers):
            await PlainTextResponse("This form was sent from another site.", 403)(scope, receive, sent)
            return
        try:
            await self._app(scope, _limited(receive), sent)
        except TooLarge:
            await PlainTextResponse("That is more than a form of this study can hold.", 413)(scope, receive, sent)


def _limited(receive: Receive) -> Receive:
    size = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise TooLarge
        return message

    return limited


def _same_origin(headers: Headers) -> bool:
    """Return whether a browser may send this form.

    Under `no-referrer` browsers send `Origin: null` with a plain form; then Sec-Fetch-Site tells, where there is one.
    The form's own token is asked for in any case.
    """
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin", "null")
    return origin == "null" or urlsplit(origin).netloc == headers.get("host")
