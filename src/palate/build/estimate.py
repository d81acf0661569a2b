"""How many calls a build would take: at least, if every pair passes at once, and at most, if each takes every try."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from palate.build import twins
from palate.build.making import Making
from palate.build.rounds import Missing
from palate.build.units import SIDES, Unit, answer_ask
from palate.grading.judged import aspect_ask, quality_ask
from palate.llm.client import Ask
from palate.store import unfinished

ANSWER = "word " * 95
PER_TOKEN = 4


@dataclass(slots=True)
class Count:
    """Calls, and about how many tokens they send."""

    least: int = 0
    most: int = 0
    characters: int = 0

    def add(self, asks: Iterable[Ask], times: int = 1) -> None:
        """Count asks, each of which is asked once at least and `times` at most."""
        for ask in asks:
            self.least += 1
            self.most += times
            self.characters += sum(len(m.content) for m in ask.messages)

    def as_dict(self) -> dict[str, int]:
        """Return it for JSON."""
        return {"calls_least": self.least, "calls_most": self.most, "tokens_least": self.characters // PER_TOKEN}


@dataclass(slots=True)
class Counts:
    """The counts of the stages."""

    keys: Count = field(default_factory=Count)
    matching: Count = field(default_factory=Count)
    answers: Count = field(default_factory=Count)
    judging: Count = field(default_factory=Count)

    def as_dict(self) -> dict[str, Any]:
        """Return them, and their sums."""
        stages = {name: getattr(self, name).as_dict() for name in ("keys", "matching", "answers", "judging")}
        sums = {name: sum(stage[name] for stage in stages.values()) for name in Count().as_dict()}
        return {**sums, "stages": stages}


def count_calls(making: Making) -> dict[str, Any]:
    """Return the calls that are still to be made, by stage, and what they rest on.

    What is not known before models have replied is told under `notes`: rubrics still to be derived, twins to be found.
    """
    setup, counts, notes = making.setup, Counts(), []
    keys = unfinished(making.keys, making.wanted.to_derive(setup.ids))
    counts.keys.add(making.wanted.ask(i, setup.writer) for i in keys)
    if keys:
        notes.append(f"{len(keys)} items have no aspects yet; what their pairs will take is not counted")
    units: Iterable[Unit]
    if setup.twins:
        couples = {c.name: c for c in making.couples}
        open_ = unfinished(making.matches, list(couples))
        asks = (twins.ask(setup.data, couples[n], making.key_of, setup.writer) for n in open_)
        counts.matching.add(asks)
        if open_:
            notes.append("which candidates are opposed is not known yet; pairs are counted as if all were")
        names = _as_if(making, open_)
        units = (making.unit(n) for n in names)
    else:
        names = making.unmade
        units = (making.unit(n) for n in names)
    for unit in units:
        _count(making, unit, counts)
    usable = sum(w.key is not None for w in making.usable.values())
    found = {"items": len(setup.ids), "usable": usable, "pairs": len(names), "tries": setup.tries}
    return {**found, **counts.as_dict(), "notes": notes}


def _as_if(making: Making, open_: list[str]) -> list[str]:
    """Return the pairs that would have to be made if every open candidate were opposed."""
    rows = {**making.matches.rows, **{name: {"opposed": "opposed"} for name in open_}}
    unmade = set(making.unmade)
    known = set(making.pairs.rows)
    return [c.name for c in twins.matched(making.couples, rows) if c.name in unmade or c.name not in known]


def _count(making: Making, unit: Unit, counts: Counts) -> None:
    """Count one pair: two answers a try, and with a judge two scores and one question an aspect and answer."""
    setup = making.setup
    asks = [answer_ask(unit, side, 1, (), setup.writer) for side in SIDES]
    try:
        making.book.take(setup.writer.role, asks, more_room=False)
        missing = []
    except Missing as found:
        missing = found.asks
    counts.answers.add(missing)
    counts.answers.most += len(asks) * (setup.tries - 1)
    if setup.judge is None:
        return
    how = setup.judge.how
    counts.judging.add((quality_ask(how, "", s, unit.question, ANSWER) for s in SIDES), setup.tries)
    about = (aspect_ask(how, "", "", unit.question, ANSWER, d.aspect) for d in unit.demands)
    counts.judging.add(about, setup.tries)
