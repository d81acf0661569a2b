"""One pair: written, put through the gates, and written anew until it passes or the tries are used up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from palate.build.models import JUDGE, WRITER, Model
from palate.build.rounds import Book, Row
from palate.build.units import SIDES, Unit, answer_ask
from palate.grading import Around, Check, check_answer, check_pair
from palate.grading.gates import CheckStatus
from palate.grading.judged import GATES, aspect_ask, aspect_checks, quality_ask, quality_checks
from palate.grading.texts import Near
from palate.llm.replies import Unparsed, without_thoughts
from palate.records import Call

NOT_RUN = "no judge was named"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a pair: the two texts, as far as there are any, what the gates said, and the exchanges it rests on."""

    number: int
    texts: Mapping[str, str]
    checks: tuple[Check, ...]
    calls: tuple[str, ...]

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that reject it."""
        return tuple(c for c in self.checks if not c.passed)

    def why(self, side: str) -> list[str]:
        """Return what to do better about one answer, in words for its author."""
        return [f"{c.reason or c.status}" for c in self.failures if c.side in (side, None)]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        told = [c.as_dict() for c in self.checks]
        return {"attempt": self.number, "texts": dict(self.texts), "checks": told, "calls": list(self.calls)}


@dataclass(slots=True)
class Pairs:
    """Makes the row of a pair out of stored replies; raises `Missing` for those that it lacks.

    `passed` holds the answers of pairs that passed, so that a later one that repeats them is found.
    """

    unit_of: Callable[[str], Unit]
    book: Book
    writer: Model
    judge: Model | None
    tries: int
    passed: Near = field(default_factory=Near)

    def row(self, name: str) -> Row:
        """Return the row of a pair: `ok` with its answers, or `dropped` with the reasons of the last try."""
        unit = self.unit_of(name)
        attempts: list[Attempt] = []
        while len(attempts) < self.tries:
            attempts.append(self._attempt(unit, attempts))
            if not attempts[-1].failures:
                texts = attempts[-1].texts
                self.passed.add(name, texts.values())
                return _row(name, "ok", attempts) | {"answers": dict(texts), "reason": None}
        last = "; ".join(_told(c) for c in attempts[-1].failures)
        return _row(name, "dropped", attempts) | {"answers": None, "reason": last}

    def _attempt(self, unit: Unit, before: list[Attempt]) -> Attempt:
        number = len(before) + 1
        asks = [answer_ask(unit, s, number, before[-1].why(s) if before else (), self.writer) for s in SIDES]
        calls = self.book.take(WRITER, asks, more_room=False)
        names = [a.key for a in asks]
        read = {side: _text(side, call) for side, call in zip(SIDES, calls, strict=True)}
        texts = {side: text for side, text in read.items() if isinstance(text, str)}
        checks = [found for found in read.values() if isinstance(found, Check)]
        checks += self._unjudged(unit, texts)
        if all(c.passed for c in checks):
            checks += self._judged(unit, number, texts, names)
        return Attempt(number, texts, tuple(checks), tuple(names))

    def _unjudged(self, unit: Unit, texts: Mapping[str, str]) -> list[Check]:
        posts = tuple(p for user in unit.users for p in user.posts)
        keys = tuple(user.key for user in unit.users)
        around = Around(unit.id, unit.question, posts, keys, unit.instructions, self.passed)
        checks = [check for side, text in texts.items() for check in check_answer(side, text, around)]
        return checks + (check_pair(*(texts[s] for s in SIDES)) if len(texts) == len(SIDES) else [])

    def _judged(self, unit: Unit, number: int, texts: Mapping[str, str], names: list[str]) -> list[Check]:
        """Return what the judge says; the aspects are asked about only if the general quality is in order."""
        if self.judge is None:
            return [Check(gate, None, "not run", NOT_RUN) for gate in GATES]
        how = self.judge.how
        asks = [quality_ask(how, unit.item_id, f"{unit.id}|{s}|{number}", unit.question, texts[s]) for s in SIDES]
        calls = self.book.take(JUDGE, asks)
        names += [a.key for a in asks]
        checks = quality_checks(dict(zip(SIDES, calls, strict=True)))
        if not all(c.passed for c in checks):
            return checks
        asks = [
            aspect_ask(how, unit.item_id, f"{unit.id}|{d.side}|{number}|{k}", unit.question, texts[d.side], d.aspect)
            for k, d in enumerate(unit.demands)
        ]
        calls = self.book.take(JUDGE, asks)
        names += [a.key for a in asks]
        return checks + aspect_checks(unit.demands, calls)


def _text(side: str, call: Call) -> str | Check:
    """Return the answer that a reply is, or the status of a reply that is none."""
    if call.status != "ok":
        return Check("reply", side, cast(CheckStatus, call.status), call.note)
    plain = without_thoughts(call.text or "")
    if isinstance(plain, Unparsed):
        return Check("reply", side, "truncated", plain.reason)
    text = plain.replace("\r\n", "\n").strip()
    return text or Check("reply", side, "unparsed", "the reply is empty")


def _row(name: str, status: str, attempts: list[Attempt]) -> Row:
    return {"id": name, "status": status, "attempts": [a.as_dict() for a in attempts]}


def _told(check: Check) -> str:
    where = f"{check.gate} ({check.side})" if check.side else check.gate
    return f"{where}: {check.reason or check.status}"
