"""vLLM: `/classify`, else `/pooling`, with the activation off where its version has a switch for that.

Nothing is ever cut by the server: `truncate_prompt_tokens` is not sent, so a text that is too long is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from palate.errors import ModelError, did_you_mean
from palate.records import Message, Score
from palate.rewards.http.dialect import START, TESTED, Facts, Piece, in_order, score_of, turns, value_of
from palate.rewards.http.options import Options
from palate.rewards.http.questions import Questions
from palate.rewards.local.encode import STAND_IN

ENDPOINTS = {"/classify": "probs", "/pooling": "data"}
SWITCHES = ("use_activation", "activation", "softmax")
TOKENIZE = "/tokenize"


@dataclass(frozen=True, slots=True)
class Form:
    """What an endpoint takes: chat turns, token ids, and of which names; an unknown schema has no names."""

    path: str
    known: bool
    messages: bool
    tokens: bool
    names: frozenset[str]

    @property
    def switch(self) -> str | None:
        """The field that turns the activation off, if there is one."""
        if not self.known:
            return SWITCHES[0]
        return next((name for name in SWITCHES if name in self.names), None)


@dataclass(frozen=True, slots=True)
class Vllm:
    """One answer a request as chat turns, or the answers of a query together as token ids."""

    facts: Facts
    form: Form
    label: int | None
    questions: Questions
    takes_tokens: bool
    at_once: int = 1
    parallel: int = 16
    checks_room: bool = False

    def body(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """Return the request."""
        text: dict[str, Any] = {"input": [p.ids for p in pieces]}
        if not self.takes_tokens:
            (piece,) = pieces
            text = {"messages": piece.turns, "add_generation_prompt": False}
        task = {"task": "classify"} if "task" in self.form.names else {}
        switch = {self.form.switch: False} if self.form.switch else {}
        return {"model": self.facts.model, **text, **task, **switch}

    def read(self, reply: Any, pieces: Sequence[Piece]) -> list[Score]:
        """Return the scores, each at the answer that its `index` names."""
        rows = in_order(reply.get("data") if isinstance(reply, dict) else None, pieces)
        field, name = ENDPOINTS[self.form.path], self.questions.name
        return [score_of(name, p.answer_id, value_of(r, field), self.label) for p, r in zip(pieces, rows, strict=True)]

    def count(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a prompt and the frame around an answer."""
        return self._tokens(
            {"messages": turns([*messages, Message("assistant", STAND_IN)]), "add_generation_prompt": False}
        )

    def answer_tokens(self, text: str) -> int:
        """Return the tokens of an answer by itself."""
        return self._tokens({"prompt": text, "add_special_tokens": False})

    def _tokens(self, what: dict[str, Any]) -> int:
        reply = self.questions.post(TOKENIZE, {"model": self.facts.model, **what})
        count = reply.get("count") if isinstance(reply, dict) else None
        if not isinstance(count, int):
            raise ModelError(f"model '{self.questions.name}': {TOKENIZE} tells no count: {str(reply)[:200]}")
        return count


def find_vllm(options: Options, questions: Questions) -> Vllm | None:
    """Return the dialect if this is a vLLM server, or one that speaks like it.

    Raises:
        ModelError: it is, but no endpoint gives rewards, or none that fits what is asked for.
    """
    version, models = questions.get("/version"), questions.get("/v1/models")
    schema = questions.get("/openapi.json")
    forms = list(_forms(schema if isinstance(schema, dict) else None, questions))
    if version is None and models is None and not forms:
        return None
    if not forms:
        raise ModelError(
            f"model '{questions.name}': the server has neither {' nor '.join(ENDPOINTS)}, so it gives no rewards. "
            f"Found: {questions.told}.\nStart it for them. {START}.\nTested with {TESTED}."
        )
    local = options.tokenizer is not None
    form = next((f for f in forms if (f.tokens if local else f.messages)), None)
    if form is None:
        paths = ", ".join(f.path for f in forms)
        wanted = "token ids" if local else "chat turns; ?tokenizer=<folder or hub id> makes the tokens here"
        raise ModelError(f"model '{questions.name}': {paths} takes no {wanted}.\nTested with {TESTED}.")
    chosen = _chosen(models, options, questions.name)
    return _with_window(Vllm(_facts(version, chosen, form), form, options.label, questions, local), chosen)


def _facts(version: Any, chosen: dict[str, Any], form: Form) -> Facts:
    number = version.get("version") if isinstance(version, dict) else None
    off = f"off ({form.switch}=false)" if form.known else f"off, if the server knows {form.switch}"
    note = "the server cannot turn its activation off, so scores may be probabilities, and close ones equal"
    return Facts(
        server="vllm",
        version=number if isinstance(number, str) else None,
        endpoint=form.path,
        model=chosen.get("id"),
        weights={"root": root} if isinstance(root := chosen.get("root"), str) else {},
        activation=off if form.switch else "on (no switch)",
        notes=() if form.switch else (note,),
    )


def _with_window(found: Vllm, chosen: dict[str, Any]) -> Vllm:
    window = chosen.get("max_model_len")
    facts = replace(found.facts, window=window if isinstance(window, int) and window > 0 else None)
    return replace(found, facts=facts, at_once=8 if found.takes_tokens else 1)


def _chosen(models: Any, options: Options, name: str) -> dict[str, Any]:
    """Return the served model that is asked for, or the only one."""
    rows = models.get("data") if isinstance(models, dict) else None
    served = {r["id"]: r for r in rows or [] if isinstance(r, dict) and isinstance(r.get("id"), str)}
    if options.model is not None:
        if served and options.model not in served:
            raise ModelError(f"model '{name}': it serves no '{options.model}'.{did_you_mean(options.model, served)}")
        return served.get(options.model, {"id": options.model})
    if len(served) > 1:
        raise ModelError(f"model '{name}': it serves {', '.join(served)}; choose one with ?model=.")
    return next(iter(served.values()), {})


def _forms(schema: dict[str, Any] | None, questions: Questions) -> Iterator[Form]:
    """Yield the endpoints that there are, best first; without a schema each is tried with an empty request."""
    for path in ENDPOINTS:
        if schema is None:
            if questions.offers(path):
                yield Form(path, False, True, True, frozenset())
        elif path in schema.get("paths", {}):
            yield _form(path, schema)


def _form(path: str, schema: dict[str, Any]) -> Form:
    fields: dict[str, Any] = {}
    for properties in _properties(schema["paths"][path], schema):
        fields |= properties
    kinds = [k for k in _kinds(fields.get("input", {})) if k.get("type") == "array"]
    lists = [k for one in kinds for k in _kinds(one.get("items", {}))]
    tokens = any(i.get("type") == "integer" for k in lists for i in _kinds(k.get("items", {})))
    return Form(path, bool(fields), "messages" in fields or not fields, tokens or not fields, frozenset(fields))


def _properties(path: Any, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        body = path["post"]["requestBody"]["content"]["application/json"]["schema"]
    except (KeyError, TypeError):
        return
    for kind in _kinds(body):
        named = str(kind.get("$ref", "")).rpartition("/")[2]
        found = schema.get("components", {}).get("schemas", {}).get(named, kind) if named else kind
        yield found.get("properties", {})


def _kinds(schema: Any) -> list[dict[str, Any]]:
    """Return the alternatives of a schema."""
    found = schema.get("anyOf") or schema.get("oneOf") or [schema] if isinstance(schema, dict) else []
    return [k for k in found if isinstance(k, dict)]
