"""How a server is run: where it listens, who may ask, and its limits."""

import os
from dataclasses import dataclass
from ipaddress import ip_address

from palate.errors import PalateError
from palate.rewards.http.options import KEY

SHORTEST_TOKEN = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen, and limits.

    `token_env` names the variable that holds the token. `seconds` is what an item may take from its arrival on;
    `queue` bounds the items that wait or are scored; `body` is in bytes. `gather` is how long, in seconds, an idle
    server waits for more answers to the same query before it scores the first.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token_env: str = KEY
    seconds: float = 60.0
    queue: int = 4096
    body: int = 32 * 2**20
    gather: float = 0.005

    @property
    def token(self) -> str | None:
        """The token that every request has to bring, or None if none is asked for.

        Raises:
            PalateError: other machines can reach the server and there is no token, or it is too short to be one.
        """
        found = os.environ.get(self.token_env) or None
        if found is None and not self.local:
            raise PalateError(
                f"host '{self.host}' can be reached by other machines, so a token is needed.\n"
                f"Set {self.token_env} (clients send it as 'Authorization: Bearer …'), or keep to --host 127.0.0.1."
            )
        if found is not None and (len(found) < SHORTEST_TOKEN or not found.isascii() or not found.isprintable()):
            raise PalateError(
                f"the token in {self.token_env} has to be {SHORTEST_TOKEN} or more printable ASCII characters."
            )
        return found

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
