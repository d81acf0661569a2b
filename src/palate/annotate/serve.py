"""Puts a study's pages on a socket and keeps serving until stopped."""

import ipaddress
import os
import socket
from collections.abc import Callable

from palate.annotate.study import Study
from palate.errors import MissingExtra, PalateError


def need_web() -> None:
    """Raise `MissingExtra` unless the web part is installed."""
    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("palate annotate serve", "web") from None


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def links_of(study: Study, host: str, port: int) -> dict[str, str]:
    """Return each annotator's link; where `host` means every address, under this machine's name."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    shown = f"[{name}]" if ":" in name else name
    return {who: f"http://{shown}:{port}/a/{study.links.token(who)}" for who in study.book.annotators()}


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; port 0 takes any free one.

    Raises:
        PalateError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, port), family=family)
    except OSError as bad:
        why = os.strerror(bad.errno) if bad.errno is not None and bad.errno > 0 else bad.strerror or bad
        raise PalateError(f"{host}:{port}: cannot be served on ({why}). Choose another --host or --port.") from None
    # Connections inherit it; asyncio sets it only where a socket names its protocol. Without it a reply waits 40 ms.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def serve(study: Study, host: str, port: int, ready: Callable[[dict[str, str]], None]) -> None:
    """Serve until a signal ends it; `ready` is told the links once the socket is open.

    Addresses are not logged, since they hold the links.

    Raises:
        PalateError: the address cannot be used.
        MissingExtra: without the extra `web`.
    """
    need_web()
    import uvicorn

    from palate.annotate.web import create_app

    with listen(host, port) as opened:
        ready(links_of(study, host, opened.getsockname()[1]))
        config = uvicorn.Config(
            create_app(study), access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=5
        )
        uvicorn.Server(config).run(sockets=[opened])
