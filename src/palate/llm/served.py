"""What every user of a served model needs: where it is, how it samples, and how an exchange is named and kept."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from palate.errors import SpecError
from palate.llm.client import Ask
from palate.llm.replies import Unparsed, without_thoughts
from palate.llm.transport import Endpoint
from palate.records import Call, Message
from palate.spec import Spec

MORE_ROOM = 4
SERVER_OPTIONS = ("base_url", "connections", "key_env", "read_seconds")


def endpoint_of(spec: Spec, base_url: str | None, what: str) -> Endpoint:
    """Return the server of `<family>/<model>?base_url=…`; the option goes before `base_url`, the variable comes last.

    Args:
        spec: the parsed string.
        base_url: the server that the command names.
        what: the kind of string, for errors.
    """
    model = spec.head.partition("/")[2] + (f"@{spec.revision}" if spec.revision else "")
    return Endpoint(
        model=model,
        base_url=spec.options.get("base_url") or base_url or os.environ.get("OPENAI_BASE_URL") or None,
        key_env=spec.options.get("key_env", "OPENAI_API_KEY"),
        connections=spec.whole("connections", 16, what, least=1),
        read_seconds=float(spec.whole("read_seconds", 120, what, least=1)),
    )


def temperature_of(spec: Spec, what: str) -> float:
    """Return the option `temperature`, default 0."""
    text = spec.options.get("temperature", "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2:
        raise SpecError(f"{what} '{spec.head}': temperature must be a number from 0 to 2, not {text!r}.")
    return value


def ask_key(item_id: str, name: str, messages: Sequence[Message], settings: Mapping[str, Any]) -> str:
    """Return the name of an ask in the cache: what it is about, and a hash of all that decides the reply."""
    parts = [repr(sorted(settings.items())), *(f"{m.role}\0{m.content}" for m in messages)]
    digest = hashlib.sha256("\1".join(parts).encode()).hexdigest()[:16]
    return f"{item_id}|{name}|{digest}"


def with_room(ask: Ask) -> Ask:
    """Return the second try of an ask whose reply was cut: the same question with more room."""
    return replace(ask, attempt=2, max_tokens=ask.max_tokens * MORE_ROOM)


def was_cut(call: Call) -> bool:
    """Whether a first try was cut: at the limit, or inside a thought."""
    open_thought = call.status == "ok" and isinstance(without_thoughts(call.text or ""), Unparsed)
    return call.attempt == 1 and (call.status == "truncated" or open_thought)


def cut_for_good(ask: Ask, call: Call) -> Call:
    """Return a second try that the server had no room for as what it is: a reply that stays cut."""
    if ask.attempt > 1 and call.status == "overlong":
        return replace(call, status="truncated", note=f"cut, and no room for more: {call.note}")
    return call


def call_row(ask: Ask, call: Call) -> dict[str, Any]:
    """Return the line of `calls.jsonl`: the exchange whole, prompt and reply."""
    prompt = [{"role": m.role, "content": m.content} for m in ask.messages]
    return {"id": call.key, "item": ask.item_id, "prompt": prompt, "max_tokens": ask.max_tokens, **asdict(call)}


def stored_call(row: Mapping[str, Any] | None) -> Call | None:
    """Return a call as it stands in `calls.jsonl`."""
    if row is None:
        return None
    fields: dict[str, Any] = {name: row.get(name) for name in Call.__dataclass_fields__}
    return Call(**fields)
