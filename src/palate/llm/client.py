"""One client for every server that speaks OpenAI's chat completions: bounded, patient, and honest about failures.

An ask may spend twice the endpoint's `read_seconds` in requests. A failure becomes a `Call` with a status and the real
cause; only what makes every call fail (a wrong key, a model that is not there) ends the work.
"""

from collections.abc import Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from palate.errors import MissingExtra, ModelError, Stopped
from palate.llm.failures import HEAD, Habits, about_form, cause_of, is_fatal, learn, status_of
from palate.llm.secrets import mask
from palate.llm.transport import Endpoint, Loop, Told, patience
from palate.records import Call, Message, Status

ASKED_FOR = 2
FORMS = 6


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to a model. `key` is its name in the cache, `attempt` counts from 1; what is None is not sent."""

    key: str
    item_id: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float = 0.0
    schema: Mapping[str, Any] | None = None
    top_logprobs: int = 0
    attempt: int = 1
    top_p: float | None = None
    seed: int | None = None


@dataclass(slots=True)
class Spending:
    """What was used, and how much may be. Shared by all models of one command."""

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unknown: int = 0

    @property
    def left(self) -> bool:
        """Whether another call may be made."""
        tokens = self.prompt_tokens + self.completion_tokens
        return (self.max_calls is None or self.calls < self.max_calls) and (
            self.max_tokens is None or tokens < self.max_tokens
        )

    def add(self, usage: Mapping[str, int] | None) -> None:
        """Count one call's tokens; a server that does not tell them is counted as unknown."""
        if usage is None:
            self.unknown += 1
            return
        self.prompt_tokens += usage.get("prompt_tokens", 0)
        self.completion_tokens += usage.get("completion_tokens", 0)


@dataclass(slots=True)
class Client:
    """Sends asks and yields calls as they come back, in any order.

    Args:
        endpoint: the server.
        spending: limits and counts.
        told: gets (item id, what happened) for every retry, in a thread of the client's.

    Raises:
        MissingExtra: the library is not installed.
    """

    endpoint: Endpoint
    spending: Spending = field(default_factory=Spending)
    told: Told | None = None
    _habits: Habits = field(default_factory=Habits)

    def __post_init__(self) -> None:
        if find_spec("openai") is None:
            raise MissingExtra("a language model", "llm")

    @property
    def left_out(self) -> list[str]:
        """What this server would not take, so that it is sent no more."""
        taken = {"seed": self._habits.seed, "temperature": self._habits.temperature, "schema": self._habits.schema}
        return [name for name, takes in taken.items() if not takes]

    def ask(self, asks: Iterable[Ask]) -> Iterator[Call]:
        """Yield one call an ask.

        Asks are taken from the iterable only as connections get free, in the caller's thread.

        Raises:
            ModelError: the server refuses every call.
            Stopped: a limit of calls or tokens is reached; what was asked before has been yielded.
        """
        stream = iter(asks)
        with Loop(self.endpoint, self.endpoint.key) as loop:
            yield from loop.each(lambda: self._next(stream, loop.client), self.endpoint.connections)
        if not self.spending.left and next(stream, None) is not None:
            raise Stopped(
                "the limit of calls or tokens is reached. The same command with a higher one goes on from here."
            )

    def _next(self, asks: Iterator[Ask], client: Any) -> Coroutine[Any, Any, Call] | None:
        ask = next(asks, None) if self.spending.left else None
        if ask is None:
            return None
        self.spending.calls += 1
        return self._one(client, ask)

    async def _one(self, client: Any, ask: Ask) -> Call:
        seconds = ASKED_FOR * self.endpoint.read_seconds
        try:
            async with patience(seconds, lambda text: self.told and self.told(ask.item_id, text)) as attempts:
                call = await self._exchange(client, ask)
        except TimeoutError:
            call = _failed(ask, "error", f"no whole reply within {seconds:g} s")
        self.spending.add(call.usage)
        return replace(call, note="; ".join(filter(None, (call.note, attempts.told))) or None)

    async def _exchange(self, client: Any, ask: Ask) -> Call:
        """Send one ask until it has a reply; a form of request that the server does not take is changed once."""
        for _ in range(FORMS):
            request = self._request(ask)
            try:
                reply = await client.chat.completions.create(**request)
                call = read_reply(ask, reply)
            except Exception as bad:  # noqa: BLE001  (whatever a server does becomes a call with its cause)
                if about_form(bad):
                    learn(self._habits, bad)
                    if self._request(ask) != request:
                        continue
                cause = mask(cause_of(bad), *self.endpoint.secrets)
                if is_fatal(bad):
                    raise ModelError(f"model '{ask_name(self.endpoint)}': {cause}") from None
                if ask.top_logprobs and about_form(bad) and "logprobs" in cause:
                    raise ModelError(self._no_logprobs(cause)) from None
                return _failed(ask, status_of(bad), cause)
            if ask.top_logprobs and call.status == "ok" and call.logprobs is None:
                raise ModelError(self._no_logprobs("they are missing from its reply"))
            return call
        return _failed(ask, "error", "the server takes no form of this request")

    def _no_logprobs(self, why: str) -> str:
        return f"model '{ask_name(self.endpoint)}': the server sends no log-probabilities ({why}). Use ?mode=text."

    def _request(self, ask: Ask) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": [{"role": m.role, "content": m.content} for m in ask.messages],
            self._habits.token_field: ask.max_tokens,
        }
        if self._habits.temperature:
            request["temperature"] = ask.temperature
        if ask.top_p is not None:
            request["top_p"] = ask.top_p
        if ask.seed is not None and self._habits.seed:
            request["seed"] = ask.seed
        if ask.schema is not None and self._habits.schema:
            named = {"name": "reply", "schema": dict(ask.schema), "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        if ask.top_logprobs:
            request |= {"logprobs": True, "top_logprobs": min(ask.top_logprobs, self._habits.logprobs)}
        return request


def ask_name(endpoint: Endpoint) -> str:
    """Return model and server for messages."""
    return f"{endpoint.model} at {endpoint.shown}"


def read_reply(ask: Ask, reply: Any) -> Call:
    """Return what a server replied, kept whole; a reply that is cut, refused or empty has its own status."""
    if not getattr(reply, "choices", None):
        what = f": {_clean(reply)[:HEAD]!r}" if isinstance(reply, str) else ""
        return replace(_failed(ask, "error", f"the reply has no choices{what}"), usage=_usage(reply))
    choice = reply.choices[0]
    message, reason = getattr(choice, "message", None), getattr(choice, "finish_reason", None)
    if message is None:
        return replace(_failed(ask, "error", "the reply has no message"), usage=_usage(reply))
    text, refusal = _text(message, "content"), _text(message, "refusal")
    thoughts = _text(message, "reasoning_content") or _text(message, "reasoning")
    call = Call(ask.key, ask.attempt, "ok", text, reason, _usage(reply), None, _first_logprobs(choice), thoughts)
    if refusal or reason == "content_filter":
        return replace(call, status="refused", note=refusal or "content filter")
    if ask.top_logprobs:
        return call
    if reason == "length":
        return replace(call, status="truncated", note=f"cut at {ask.max_tokens} tokens")
    if not (text or "").strip():
        if thoughts:
            return replace(call, status="truncated", note="thoughts alone, no reply")
        return replace(call, status="unparsed", note="the reply is empty")
    return call


def _text(message: Any, name: str) -> str | None:
    found = getattr(message, name, None)
    return _clean(found) if isinstance(found, str) else None


def _clean(text: str) -> str:
    """Return the text without halves of characters, which some servers send where a reply is cut."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _usage(reply: Any) -> dict[str, int] | None:
    usage = getattr(reply, "usage", None)
    if not usage:
        return None
    return {name: int(getattr(usage, name, 0) or 0) for name in ("prompt_tokens", "completion_tokens")}


def _first_logprobs(choice: Any) -> dict[str, float] | None:
    """Return the candidates for the first token; none of them for an empty reply, None if the server tells nothing."""
    found = getattr(getattr(choice, "logprobs", None), "content", None)
    if found is None:
        return None
    first = found[:1]
    named = [t for place in first for t in (place, *reversed(place.top_logprobs or []))]
    return {_clean(t.token): float(t.logprob) for t in named}


def _failed(ask: Ask, status: Status, note: str) -> Call:
    return Call(ask.key, ask.attempt, status, None, None, None, note=_clean(note))
