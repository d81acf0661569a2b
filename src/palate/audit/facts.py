"""One pass over the data: each item is read once, and only what the checks need of it is kept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from palate.audit.base import excerpt
from palate.audit.duplicates import nearness
from palate.audit.inferability import Member, Support, blocks, supports
from palate.audit.leakage import Leak, find_leaks
from palate.audit.repetition import Repeat, find_repeats
from palate.audit.splits import Elsewhere
from palate.audit.surface import Surface, probe
from palate.audit.words import Words
from palate.data import Dataset
from palate.data.check import date_of
from palate.records import Answer
from palate.rewards import Scorer
from palate.views.look import post_text

ASKED = 80
Seen = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the checks need of one item; None where it has no pair, no key, or nothing to compare with."""

    question: str
    surface: Surface | None
    nearness: float | None
    leaks: tuple[Leak, ...] | None
    repeats: tuple[Repeat, ...]
    dated: bool
    shared: tuple[tuple[str, str], ...]
    support: Support | None = None


def gather(
    data: Dataset, scorers: Mapping[str, Scorer], elsewhere: Elsewhere, seed: int, seen: Seen | None = None
) -> dict[str, Facts]:
    """Return the facts of each item, in the order of the data.

    Args:
        data: the audited data.
        scorers: the probes `length` and `lexical`.
        elsewhere: other data, for what is shared.
        seed: of the blocks in which histories are compared.
        seen: told how many items of how many are done.
    """
    found: dict[str, Facts] = {}
    if seen:
        seen(0, len(data))
    for block in blocks(data.entries, seed):
        members = []
        for name in block:
            facts, member = _look_at(name, data, scorers, elsewhere)
            found[name] = facts
            members.append(member)
        for name, support in supports(members, data.entries).items():
            found[name] = replace(found[name], support=support)
        if seen:
            seen(len(found), len(data))
    return {name: found[name] for name in data.ids}


def _look_at(name: str, data: Dataset, scorers: Mapping[str, Scorer], elsewhere: Elsewhere) -> tuple[Facts, Member]:
    item, answers, key = data.get(name), data.answers(name), data.key(name)
    history = Words.of([post_text(p) for p in item.posts])
    pair = in_pair(answers)
    facts = Facts(
        excerpt(item.question, ASKED),
        probe(item, pair, scorers) if pair else None,
        nearness(pair[0].text, pair[1].text) if pair else None,
        find_leaks(item, answers, key, history) if key else None,
        find_repeats(item, answers, history),
        date_of(item) is not None and any(p.date for p in item.posts),
        elsewhere.shared(item, answers),
    )
    return facts, Member.of(data.entry(name), item, key, history)


def in_pair(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Return chosen and rejected, or nothing."""
    by_role = {a.role: a for a in answers}
    return (by_role["chosen"], by_role["rejected"]) if {"chosen", "rejected"} <= set(by_role) else ()
