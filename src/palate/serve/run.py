"""Starting and stopping: the model first, then the socket; a stop lets what is in flight finish."""

import logging
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

from palate.errors import MissingExtra, PalateError
from palate.serve.served import open_served
from palate.serve.settings import Settings

GRACE = 5
KEEP_ALIVE = 75
BACKLOG = 2048
Told = Callable[[str], None]


class RewardServer:
    """A loaded model at an address. `run` returns when it was drained.

    Raises:
        PalateError: (when made) a model, view, host, port or token that cannot be used.
        MissingExtra: without the extra `web`.
    """

    def __init__(self, model: str, view: str | None = None, settings: Settings | None = None) -> None:
        try:
            import fastapi  # noqa: F401
            import prometheus_client  # noqa: F401
            import uvicorn
        except ImportError:
            raise MissingExtra("a reward server", "web") from None
        from palate.serve.app import make_app
        from palate.serve.desk import Desk
        from palate.serve.meters import Meters

        self.settings = settings or Settings()
        token = self.settings.token
        served = open_served(model, view)
        self._desk = Desk(served, self.settings, Meters())
        self._socket = _bound(self.settings)
        config = uvicorn.Config(
            make_app(self._desk, token),
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
        )
        self._server = _draining(self, config)

    @property
    def address(self) -> str:
        """Host and port."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def idle(self) -> bool:
        """Whether no request is open."""
        return self._desk.open_requests == 0

    @property
    def draining(self) -> bool:
        """Whether it is about to stop."""
        return self._desk.draining

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or `drain`."""
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self._server.run(sockets=[self._socket])

    def drain(self) -> None:
        """Take no new work, finish what is in flight, then stop. From any thread."""
        self._desk.draining = True


def serve(model: str, view: str | None = None, settings: Settings | None = None, *, told: Told | None = None) -> None:
    """Serve a reward model until a signal ends it.

    Args:
        model: a model string of a scorer.
        view: what items with a `question` have to bring: `question`, `history` or `plan`; None takes each as sent.
        settings: where and how.
        told: gets a line when it can be asked, and one when it stops.

    Raises:
        PalateError: a model, view, host, port or token that cannot be used.
        MissingExtra: without the extra `web`.
    """
    server = RewardServer(model, view, settings)
    say = told or (lambda line: None)
    say(f"{model} at http://{server.address} ({'view ' + view if view else 'questions as they are sent'})")
    server.run()
    say("stopped; what was in flight has been answered.")


def _draining(owner: RewardServer, config: Any) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """Stops only when no request is open; a second signal does not wait."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if owner.draining:
                self.should_exit = self.force_exit = True
            owner.drain()

        async def on_tick(self, counter: int) -> bool:
            if owner.draining and owner.idle:
                self.should_exit = True
            return await super().on_tick(counter)

    return Server(config)


def _bound(settings: Settings) -> socket.socket:
    host, port = settings.host, settings.port
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except (OSError, OverflowError) as bad:
        why = getattr(bad, "strerror", None) or bad
        raise PalateError(f"cannot listen at {host}:{port}: {why}.\nChoose another --port or --host.") from None
    return found
