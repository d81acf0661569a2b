"""`judge/<model>`: a language model compares the two answers, in both orders unless asked otherwise."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from palate.errors import SpecError
from palate.llm import load_prompt
from palate.llm.client import Ask, Client, Spending
from palate.llm.replies import PAIR_PARSERS, Parsed
from palate.llm.secrets import masked_spec
from palate.llm.served import ask_key, endpoint_of, temperature_of
from palate.llm.transport import Told
from palate.records import STATUSES, Answer, Call, Group, Message, Outcome, Status, Verdict
from palate.rewards.judge import forms
from palate.rewards.judge.asked import COMMON, Settled, served_options
from palate.spec import Spec

PROMPT = load_prompt("palate.rewards.judge", "pair", ("conversation", "answer_a", "answer_b", "mark", "form"))
ORDERS = ("chosen-first", "rejected-first")
TOP = 20
Order = Literal["chosen-first", "rejected-first"]


class PairJudge:
    """Asks for a verdict on every order × repeat; preferences are averaged over repeats, then over orders."""

    probe = False
    needs_context = False

    def __init__(self, spec: Spec, base_url: str | None, spending: Spending, told: Told | None) -> None:
        what = "model"
        self.client = Client(endpoint_of(spec, base_url, what), spending, told)
        spec = masked_spec(spec).only((*COMMON, "mode", "orders", "seed", "tie"), what)
        self.name = spec.head
        self._given = served_options(spec)
        self._orders = spec.choice("orders", ("both", "one"), "both", what)
        self._seed = spec.whole("seed", 0, what)
        self._repeats = spec.whole("repeats", 1, what, least=1)
        self._logprob = spec.choice("mode", ("text", "logprob"), "text", what) == "logprob"
        self._parser = spec.choice("parser", PAIR_PARSERS, "verdict", what)
        self._max_tokens = spec.whole("max_tokens", 1 if self._logprob else 1024, what, least=1)
        self._temperature = temperature_of(spec, what)
        self._tie = _tie_rule(spec)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model, prompt and sampling; not the server's address."""
        family, _, rest = self.name.partition("/")
        return {
            "family": family,
            "id": rest,
            "parameters": None,
            "options": self._given,
            "probe": self.probe,
            "prompt": PROMPT.digest,
            "max_tokens": self._max_tokens,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions and the server, its address without secrets."""
        return {**{name: version(name) for name in ("palate", "openai")}, "base_url": self.client.endpoint.shown}

    @property
    def grade(self) -> Mapping[str, Any]:
        """How a reply is read and a pair decided."""
        parser = "log-probabilities of A and B" if self._logprob else self._parser
        rule = "mean over orders of the mean over repeats; above ½ correct"
        return {"parser": parser, "tie": self._tie, "ties": "half", "rule": rule}

    def asks(self, group: Group) -> Sequence[Ask]:
        """Return an ask for each order and repeat."""
        return [
            self._ask(group, order, repeat)
            for order in self._orders_of(group.query.item_id)
            for repeat in range(self._repeats)
        ]

    def settle(self, groups: Sequence[Group], calls: Mapping[str, Call]) -> Settled:
        """Return the verdict: an order without one gives the item its status; draws are averaged within an order."""
        item_id = groups[0].query.item_id
        notes = forms.flags(groups[0].answers)
        means: dict[str, float] = {}
        failed: list[Status] = []
        firsts: list[float] = []
        for order in self._orders_of(item_id):
            reads = [self._reads(group, order, calls) for group in groups]
            values = [v for read in reads for v in read if isinstance(v, float)]
            bad = [v for read in reads for v in read if not isinstance(v, float)]
            firsts += values
            failed += [status for status, _ in bad]
            notes += [note for _, note in bad if note]
            if not bad:
                mean = sum(values) / len(values)
                means[order] = mean if order == ORDERS[0] else 1 - mean
                if any(len({_side(v) for v in read if isinstance(v, float)}) > 1 for read in reads):
                    notes.append(forms.UNSTABLE)
        judge = {"orders": means, "first_seat": firsts}
        told = tuple(dict.fromkeys(notes))
        if failed:
            return Settled(Verdict(item_id, max(failed, key=STATUSES.index), None, notes=told), judge)
        value = sum(means.values()) / len(means)
        outcome = self._outcome(value, list(means.values()))
        value = 0.5 if outcome == "tie" else value
        return Settled(Verdict(item_id, "ok", outcome, value, 1 - value, notes=told), judge)

    def _reads(self, group: Group, order: Order, calls: Mapping[str, Call]) -> list[float | tuple[Status, str | None]]:
        return [self._preference(calls[self._ask(group, order, k).key]) for k in range(self._repeats)]

    def readable(self, call: Call) -> bool:
        """Whether the reply holds a verdict."""
        return isinstance(self._preference(call), float)

    def _outcome(self, value: float, means: Sequence[float]) -> Outcome:
        if self._tie == "agree":
            return "correct" if min(means) > 0.5 else "wrong" if max(means) < 0.5 else "tie"
        margin = 0.0 if self._tie == "exact" else float(self._tie)
        return "tie" if abs(value - 0.5) <= margin else "correct" if value > 0.5 else "wrong"

    def _orders_of(self, item_id: str) -> Sequence[Order]:
        if self._orders == "both":
            return ("chosen-first", "rejected-first")
        coin = hashlib.sha256(f"{self._seed}\0{item_id}".encode()).digest()[0] % 2
        return ("chosen-first",) if coin else ("rejected-first",)

    def _ask(self, group: Group, order: Order, repeat: int) -> Ask:
        chosen, rejected = group.answers
        first, second = (chosen, rejected) if order == ORDERS[0] else (rejected, chosen)
        messages = (Message("user", self._text(group, first, second)),)
        settings = {
            "model": self.client.endpoint.model,
            "max": self._max_tokens,
            "t": self._temperature,
            "lp": self._logprob,
        }
        return Ask(
            key=ask_key(group.query.item_id, f"{chosen.id}|{order}|{repeat}", messages, settings),
            item_id=group.query.item_id,
            messages=messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            schema=None if self._logprob or self._parser != "verdict" else forms.VERDICT_SCHEMA,
            top_logprobs=TOP if self._logprob else 0,
        )

    def _text(self, group: Group, first: Answer, second: Answer) -> str:
        a, b = forms.defused(first.text), forms.defused(second.text)
        return PROMPT.fill(
            conversation=forms.conversation(group.query.messages),
            answer_a=a,
            answer_b=b,
            mark=forms.mark(a, b),
            form=forms.LETTER_FORM if self._logprob else forms.VERDICT_FORM,
        )

    def _preference(self, call: Call) -> float | tuple[Status, str | None]:
        """Return how much the reply prefers the first seat, 0 to 1, or a status and why."""
        if call.status != "ok":
            return call.status, call.note
        if self._logprob:
            return _from_logprobs(call)
        found = PAIR_PARSERS[self._parser](call.text or "")
        if isinstance(found, Parsed):
            return {"A": 1.0, "B": 0.0, "tie": 0.5}[found.value]
        return ("truncated" if found.reason == "open thought" else "unparsed"), found.reason


def _side(preference: float) -> int:
    return (preference > 0.5) - (preference < 0.5)


def _tie_rule(spec: Spec) -> str:
    """Return the option `tie`: `exact` (½ alone), `agree` (both orders must agree), or a margin around ½."""
    text = spec.options.get("tie", "exact")
    if text in ("exact", "agree"):
        return text
    try:
        margin = float(text)
    except ValueError:
        margin = -1.0
    if not 0 <= margin < 0.5:
        raise SpecError(f"model '{spec}': tie must be exact, agree or a margin from 0 to 0.5, not {text!r}.")
    return text


def _from_logprobs(call: Call) -> float | tuple[Status, str | None]:
    mass = {"A": 0.0, "B": 0.0}
    for token, logprob in (call.logprobs or {}).items():
        letter = token.strip().strip("\"'").upper()
        if letter in mass:
            mass[letter] += math.exp(logprob)
    whole = mass["A"] + mass["B"]
    if whole < 0.01:
        return "unparsed", "neither A nor B among the likely first tokens"
    return mass["A"] / whole
