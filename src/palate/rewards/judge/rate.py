"""`rate/<model>`: a language model scores each answer alone, on a stated scale; equal scores are a tie."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from palate.errors import SpecError
from palate.llm import load_prompt
from palate.llm.client import Ask, Client, Spending
from palate.llm.replies import SCORE_PARSERS, Parsed
from palate.llm.secrets import masked_spec
from palate.llm.served import ask_key, endpoint_of, temperature_of
from palate.llm.transport import Told
from palate.records import Answer, Call, Group, Message, Score
from palate.rewards.decide import decide
from palate.rewards.judge import forms
from palate.rewards.judge.asked import COMMON, Settled, served_options
from palate.spec import Spec

PROMPT = load_prompt("palate.rewards.judge", "rate", ("conversation", "answer", "mark", "low", "high", "form"))


class Rater:
    """Asks for a score for every answer × repeat; scores are averaged over repeats."""

    probe = False
    needs_context = False

    def __init__(self, spec: Spec, base_url: str | None, spending: Spending, told: Told | None) -> None:
        what = "model"
        self.client = Client(endpoint_of(spec, base_url, what), spending, told)
        spec = masked_spec(spec).only((*COMMON, "scale"), what)
        self.name = spec.head
        self._given = served_options(spec)
        self._low, self._high = _scale(spec)
        self._repeats = spec.whole("repeats", 1, what, least=1)
        self._parser = spec.choice("parser", SCORE_PARSERS, "score", what)
        self._max_tokens = spec.whole("max_tokens", 1024, what, least=1)
        self._temperature = temperature_of(spec, what)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model, prompt, scale and sampling; not the server's address."""
        family, _, rest = self.name.partition("/")
        return {
            "family": family,
            "id": rest,
            "parameters": None,
            "options": self._given,
            "probe": self.probe,
            "prompt": PROMPT.digest,
            "scale": [self._low, self._high],
            "max_tokens": self._max_tokens,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions and the server, its address without secrets."""
        return {**{name: version(name) for name in ("palate", "openai")}, "base_url": self.client.endpoint.shown}

    @property
    def grade(self) -> Mapping[str, Any]:
        """How a reply is read and a pair decided."""
        return {"parser": self._parser, "ties": "half", "rule": "mean over repeats; the higher score wins"}

    def asks(self, group: Group) -> Sequence[Ask]:
        """Return an ask for each answer and repeat."""
        return [self._ask(group, a, r) for a in group.answers for r in range(self._repeats)]

    def settle(self, groups: Sequence[Group], calls: Mapping[str, Call]) -> Settled:
        """Return the verdict on the two answers' mean scores over draws and repeats."""
        chosen, rejected = ([self._scores(g, g.answers[seat], calls) for g in groups] for seat in (0, 1))
        verdict = decide(groups[0].query.item_id, *([s for one in both for s in one] for both in (chosen, rejected)))
        unstable = any(len({s.value for s in one if s.value is not None}) > 1 for one in (*chosen, *rejected))
        notes = (*forms.flags(groups[0].answers), *verdict.notes, *([forms.UNSTABLE] if unstable else []))
        return Settled(replace(verdict, notes=notes))

    def scores(self, group: Group, calls: Mapping[str, Call]) -> Sequence[Score]:
        """Return a score for each answer and repeat."""
        return [score for answer in group.answers for score in self._scores(group, answer, calls)]

    def readable(self, call: Call) -> bool:
        """Whether the reply holds a score."""
        return self._score(call, "").status == "ok"

    def _scores(self, group: Group, answer: Answer, calls: Mapping[str, Call]) -> list[Score]:
        return [self._score(calls[self._ask(group, answer, k).key], answer.id) for k in range(self._repeats)]

    def _ask(self, group: Group, answer: Answer, repeat: int) -> Ask:
        text = forms.defused(answer.text)
        filled = PROMPT.fill(
            conversation=forms.conversation(group.query.messages),
            answer=text,
            mark=forms.mark(text),
            low=f"{self._low:g}",
            high=f"{self._high:g}",
            form=forms.SCORE_FORM,
        )
        messages = (Message("user", filled),)
        settings = {"model": self.client.endpoint.model, "max": self._max_tokens, "t": self._temperature}
        return Ask(
            key=ask_key(group.query.item_id, f"{answer.id}|{repeat}", messages, settings),
            item_id=group.query.item_id,
            messages=messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            schema=forms.SCORE_SCHEMA if self._parser == "score" else None,
        )

    def _score(self, call: Call, answer_id: str) -> Score:
        if call.status != "ok":
            return Score(answer_id, call.status, None, call.note)
        found = SCORE_PARSERS[self._parser](call.text or "", self._low, self._high)
        if isinstance(found, Parsed):
            return Score(answer_id, "ok", found.value)
        return Score(answer_id, "truncated" if found.reason == "open thought" else "unparsed", None, found.reason)


def _scale(spec: Spec) -> tuple[float, float]:
    text = spec.options.get("scale", "1-10")
    low, dash, high = text.partition("-")
    if not (dash and low.isdigit() and high.isdigit() and int(low) < int(high)):
        raise SpecError(f"model '{spec}': scale must look like 1-10, not {text!r}.")
    return float(low), float(high)
