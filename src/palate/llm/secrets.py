"""Keeping secrets out of everything that is written or shown."""

import re
from dataclasses import replace
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from palate.spec import SERVED, Spec, server_address

MASK = "***"
_KEY_LIKE = re.compile(r"\b(?:(?:sk|pk|key|hf|gsk|xai)[-_][A-Za-z0-9_\-]{6,}|AIza[A-Za-z0-9_\-]{16,})")
_BEARER = re.compile(r"(?i)(bearer\s+)[A-Za-z0-9._\-]+")
_SHORTEST = 4


def mask(text: str, *secrets: str | None) -> str:
    """Return `text` without the given secrets and without anything that looks like a key."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        if len(secret) >= _SHORTEST and secret != "none":
            text = text.replace(secret, MASK)
    return _BEARER.sub(rf"\1{MASK}", _KEY_LIKE.sub(MASK, text))


def masked_url(url: str) -> str:
    """Return an address without user, password, query and fragment, and without parts that look like keys."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, f"{MASK if user else ''}{at}{host}", mask(parts.path), "", "")) + (
        f"?{MASK}" if parts.query else ""
    )


def url_secrets(url: str | None) -> tuple[str, ...]:
    """Return what of an address must not be shown: user, password, values of its query."""
    parts = urlsplit(url or "")
    user = [parts.username or "", parts.password or ""]
    return tuple({*user, *map(unquote, user), *(value for _, value in parse_qsl(parts.query))} - {""})


def masked_spec(spec: Spec) -> Spec:
    """Return a model's string as it may be written down: the server's address without secrets."""
    family = spec.head.partition("/")[0]
    if family == SERVED:
        return replace(spec, head=f"{SERVED}/{bare_address(server_address(spec))}", revision=None)
    if "base_url" not in spec.options:
        return spec
    return replace(spec, options={**spec.options, "base_url": masked_url(spec.options["base_url"])})


def bare_address(address: str) -> str:
    """Return host, port and path of an address, and its scheme if it is not plain HTTP; nothing secret."""
    parts = urlsplit(address if "://" in address else f"http://{address}")
    scheme = "" if parts.scheme == "http" else f"{parts.scheme}://"
    return f"{scheme}{parts.netloc.rpartition('@')[2]}{mask(parts.path).rstrip('/')}"
