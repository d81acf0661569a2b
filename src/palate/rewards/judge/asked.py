"""What evaluation needs of a model that is asked: its questions about a pair, and what the replies come to."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from palate.errors import SpecError
from palate.llm.client import Ask, Client, Endpoint
from palate.records import Call, Group, Message, Verdict
from palate.spec import Spec

MORE_ROOM = 4
COMMON = ("base_url", "connections", "key_env", "max_tokens", "parser", "read_seconds", "repeats", "temperature")
OUTSIDE = ("base_url", "connections", "key_env", "read_seconds")
GRADING = ("parser", "tie")


@dataclass(frozen=True, slots=True)
class Settled:
    """A verdict and what the row records of how it came about."""

    verdict: Verdict
    judge: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class AskedModel(Protocol):
    """A reward model behind a server."""

    @property
    def name(self) -> str:
        """The model string before `?`."""
        ...

    @property
    def probe(self) -> bool:
        """Always False: it is a reward model."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the replies: model, prompt, sampling."""
        ...

    @property
    def environment(self) -> Mapping[str, Any]:
        """Server and versions."""
        ...

    @property
    def grade(self) -> Mapping[str, Any]:
        """How replies are read and decided; another one needs no other reply."""
        ...

    @property
    def client(self) -> Client:
        """What sends the asks."""
        ...

    def asks(self, group: Group) -> Sequence[Ask]:
        """Return all questions about one pair under one query."""
        ...

    def settle(self, groups: Sequence[Group], calls: Mapping[str, Call]) -> Settled:
        """Return what the replies (by key of their asks) about a pair come to, one group a draw. Pure."""
        ...

    def readable(self, call: Call) -> bool:
        """Whether a reply holds what was asked for."""
        ...


def endpoint_of(spec: Spec, base_url: str | None) -> Endpoint:
    """Return the server of `judge/<model>?base_url=…`; the option goes before `base_url`, the variable comes last."""
    import os

    what = "model"
    model = spec.head.partition("/")[2] + (f"@{spec.revision}" if spec.revision else "")
    return Endpoint(
        model=model,
        base_url=spec.options.get("base_url") or base_url or os.environ.get("OPENAI_BASE_URL") or None,
        key_env=spec.options.get("key_env", "OPENAI_API_KEY"),
        connections=spec.whole("connections", 16, what, least=1) or 16,
        read_seconds=float(spec.whole("read_seconds", 120, what, least=1) or 120),
    )


def temperature_of(spec: Spec) -> float:
    """Return the option `temperature`, default 0."""
    text = spec.options.get("temperature", "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2:
        raise SpecError(f"model '{spec}': temperature must be a number from 0 to 2, not {text!r}.")
    return value


def ask_key(item_id: str, name: str, messages: Sequence[Message], settings: Mapping[str, Any]) -> str:
    """Return the name of an ask in the cache: what it is about, and a hash of all that decides the reply."""
    parts = [repr(sorted(settings.items())), *(f"{m.role}\0{m.content}" for m in messages)]
    digest = hashlib.sha256("\1".join(parts).encode()).hexdigest()[:16]
    return f"{item_id}|{name}|{digest}"


def served_options(spec: Spec) -> dict[str, str]:
    """Return the options that decide replies: not where the server is, nor how replies are graded."""
    return {k: v for k, v in spec.options.items() if k not in (*OUTSIDE, *GRADING)}
