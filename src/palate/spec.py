"""One grammar for the strings that name a model, a view, a retriever or data. Lowest floor.

    head[@revision][?key=value&key=value]

Values, and `@` or `?` inside a name, are percent-encoded. A string prints back to itself, and the part before
`?` gives the run its name.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import overload
from urllib.parse import quote, unquote

from palate.errors import SpecError, did_you_mean

LONGEST_SLUG = 60
SERVED = "http"
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed string: `head` without revision and options, decoded."""

    head: str
    revision: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, text: str, what: str = "string", *, revisions: bool = True) -> "Spec":
        """Read `text`; `what` names its kind in errors; `revisions=False` leaves `@` in the name.

        Raises:
            SpecError: empty head, an option without `=`, or one given twice.
        """
        head, mark, tail = text.strip().partition("?")
        name, at, revision = head.rpartition("@") if revisions else ("", "", "")
        if not at or "/" in revision:
            name, at, revision = head, "", ""
        if not name or (at and not revision):
            raise SpecError(f"{what} {text!r}: a name is needed before '@' and '?', and a revision after '@'.")
        return cls(unquote(name), unquote(revision) or None, _options(tail, text, what) if mark else {})

    def __str__(self) -> str:
        head = quote(self.head, safe="/:.-_~+= ,()")
        if self.head != self.head.strip():
            head = head.replace(" ", "%20")
        if self.revision:
            head += f"@{quote(self.revision, safe=':.-_~+')}"
        if not self.options:
            return head
        return head + "?" + "&".join(f"{k}={quote(v, safe='/:.-_~+')}" for k, v in self.options.items())

    def only(self, known: Iterable[str], what: str) -> "Spec":
        """Return self if every option is in `known`, else raise with the nearest name."""
        allowed = list(known)
        for key in self.options:
            if key not in allowed:
                hint = did_you_mean(key, allowed) or " It takes none."
                raise SpecError(f"{what} {str(self)!r}: unknown option '{key}'.{hint}")
        return self

    def choice(self, key: str, allowed: Iterable[str], default: str, what: str) -> str:
        """Return option `key`, which must be one of `allowed`."""
        value = self.options.get(key, default)
        names = list(allowed)
        if value not in names:
            raise SpecError(f"{what} {str(self)!r}: {key}={value} is not possible.{did_you_mean(value, names)}")
        return value

    @overload
    def whole(self, key: str, default: int, what: str, least: int = 0) -> int: ...

    @overload
    def whole(self, key: str, default: None, what: str, least: int = 0) -> int | None: ...

    def whole(self, key: str, default: int | None, what: str, least: int = 0) -> int | None:
        """Return option `key` as a whole number of at least `least`."""
        value = self.options.get(key)
        if value is None:
            return default
        if not re.fullmatch(r"\d+", value) or int(value) < least:
            raise SpecError(f"{what} {str(self)!r}: {key} must be a whole number from {least} up, not {value!r}.")
        return int(value)


def _options(tail: str, text: str, what: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, tail.split("&")):
        key, eq, value = part.partition("=")
        if not eq or not key or not value:
            raise SpecError(f"{what} {text!r}: option {part!r} must look like key=value.")
        if key in options:
            raise SpecError(f"{what} {text!r}: option '{key}' is given twice.")
        options[key] = unquote(value)
    return options


def slug(text: str) -> str:
    """Return `text` as one part of a folder name: letters, digits, dot, dash and underscore, at most 60 of them."""
    plain = _SLUG.sub("_", text).strip("._") or "unnamed"
    if len(plain) <= LONGEST_SLUG:
        return plain
    return f"{plain[: LONGEST_SLUG - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def server_address(spec: Spec) -> str:
    """Return the address in `http/<address>`; an `@` in it is no revision."""
    return spec.head.partition("/")[2] + (f"@{spec.revision}" if spec.revision else "")


def short_model(head: str) -> str:
    """Return a model's name for people: family and hub id or address, or family and the last part of a path."""
    family, _, rest = head.partition("?")[0].partition("/")
    is_path = family != SERVED and (rest.startswith(("/", ".", "~")) or rest.count("/") > 1)
    return f"{family}/{rest.rstrip('/').rpartition('/')[2]}" if is_path else f"{family}/{rest}"


def model_name(identity: Mapping[str, object]) -> str:
    """Return a model's name from what a run records of it: family, id, revision and options; no path of a machine."""
    options = identity.get("options")
    given = {str(k): str(v) for k, v in options.items()} if isinstance(options, Mapping) else {}
    revision = identity.get("revision")
    return str(Spec(f"{identity['family']}/{identity['id']}", str(revision) if revision else None, given))


def public_name(identity: Mapping[str, object]) -> str:
    """Return a model's name as it stands on boards: `model_name` with the last part alone of paths of a machine."""
    options = identity.get("options")
    given = {k: last_part(str(v)) for k, v in options.items()} if isinstance(options, Mapping) else {}
    return model_name({**identity, "id": last_part(str(identity["id"])), "options": given})


def last_part(text: str) -> str:
    """Return the last part of what looks like a path of a machine, anything else as it is."""
    is_path = text.startswith(("/", "~", ".")) or text[1:3] in (":\\", ":/")
    return PurePath(text.replace("\\", "/")).name or text if is_path else text
