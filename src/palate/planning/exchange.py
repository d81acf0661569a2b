"""Servers and exchanges, as planners need them: where the model is, and how an exchange is kept."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from palate.errors import SpecError
from palate.llm.client import Ask, Endpoint
from palate.records import Call
from palate.spec import Spec


def endpoint_of(spec: Spec, base_url: str | None) -> Endpoint:
    """Return the server of `llm/<model>?base_url=…`; the option goes before `base_url`, the variable comes last."""
    model = spec.head.partition("/")[2] + (f"@{spec.revision}" if spec.revision else "")
    return Endpoint(
        model=model,
        base_url=spec.options.get("base_url") or base_url or os.environ.get("OPENAI_BASE_URL") or None,
        key_env=spec.options.get("key_env", "OPENAI_API_KEY"),
        connections=spec.whole("connections", 16, "planner", least=1) or 16,
        read_seconds=float(spec.whole("read_seconds", 120, "planner", least=1) or 120),
    )


def temperature_of(spec: Spec) -> float:
    """Return the option `temperature`, default 0."""
    try:
        value = float(spec.options.get("temperature", "0"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2:
        raise SpecError(f"planner '{spec.head}': temperature must be a number from 0 to 2.")
    return value


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
