"""The links of annotators. One secret of the study makes them all; they are printed, and written nowhere."""

import hashlib
import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

from palate.errors import RunError

SECRET = "secret"
_BYTES = 32


class Links:
    """Makes an annotator's link token (192 bits) and the token that their forms carry.

    Args:
        folder: of the study; the secret is made there, for its owner's eyes only, if there is none. Who deletes it
            takes all links back.
    """

    def __init__(self, folder: Path) -> None:
        self._secret = _secret(folder / SECRET)
        self._names: dict[bytes, str] = {}

    def know(self, names: Iterable[str]) -> None:
        """Accept the links of these annotators from now on."""
        self._names.update({_hash(self.token(name)): name for name in names})

    def token(self, name: str) -> str:
        """Return the part of an annotator's link that cannot be guessed."""
        return self._made("link", name)

    def form_token(self, name: str) -> str:
        """Return what every form of this annotator must carry."""
        return self._made("form", name)

    def who(self, token: str) -> str | None:
        """Return whose link it is; compared by hash, so that the time tells nothing."""
        return self._names.get(_hash(token))

    def is_form_of(self, name: str, given: str) -> bool:
        """Return whether a form was made for this annotator."""
        return hmac.compare_digest(self.form_token(name).encode(), given.encode())

    def _made(self, purpose: str, name: str) -> str:
        digest = hmac.digest(self._secret, f"{purpose}:{name}".encode(), "sha256")
        return urlsafe_b64encode(digest[:24]).decode()


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def _secret(path: Path) -> bytes:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
            handle.write(secrets.token_bytes(_BYTES))
            handle.flush()
            os.fsync(handle.fileno())
    except FileExistsError:
        pass
    found = path.read_bytes()
    if len(found) != _BYTES:
        raise RunError(f"{path}: damaged. Delete it to get new links; the old ones are then void, no answer is lost.")
    return found
