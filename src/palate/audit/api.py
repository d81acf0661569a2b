"""`audit`: is a benchmark strictly personal, and is it sound?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from palate.audit.balance import balance
from palate.audit.base import LEVEL, Check, Verdict, settle
from palate.audit.duplicates import duplicates
from palate.audit.facts import Facts, Seen, gather
from palate.audit.inferability import inferability
from palate.audit.leakage import leakage
from palate.audit.repetition import repetition
from palate.audit.runs import SeenRun, read_runs
from palate.audit.solved import solved
from palate.audit.splits import Elsewhere, splits
from palate.audit.surface import Pairs, outcome, probe_gaps, surface
from palate.audit.twins import twins
from palate.data import Dataset, open_data
from palate.data.check import find_repeated, open_leniently
from palate.data.problems import Problems
from palate.rewards import AskedModel, Scorer, open_model
from palate.rewards.style import components


@dataclass(frozen=True, slots=True)
class Audit:
    """What was audited, and every check with its verdict.

    `support` has for each item with a rubric and a history how well the own history supports the rubric, 0 to 1.
    """

    name: str
    digest: str
    items: int
    seed: int
    runs: int
    against: tuple[str, ...]
    notes: tuple[str, ...]
    checks: tuple[Check, ...]
    support: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def flagged(self) -> tuple[Check, ...]:
        """The checks that are flagged."""
        return tuple(c for c in self.checks if c.verdict == "flagged")

    @property
    def verdict(self) -> Verdict:
        """`flagged` if any check is, else `ok`; what is undefined could not be looked at and is in the checks."""
        return "flagged" if self.flagged else "ok"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        verdicts = [c.verdict for c in self.checks]
        return {
            "format": 1,
            "data": {"name": self.name, "digest": self.digest, "items": self.items},
            "verdict": self.verdict,
            "counts": {v: verdicts.count(v) for v in ("ok", "flagged", "undefined")},
            "seed": self.seed,
            "false_discovery_rate": LEVEL,
            "runs": self.runs,
            "against": list(self.against),
            "notes": list(self.notes),
            "checks": [c.as_dict() for c in self.checks],
            "support": dict(self.support),
        }


def audit(
    data: str | Path | Dataset,
    runs: str | Path | None = None,
    seed: int = 0,
    *,
    against: Sequence[str | Path] = (),
    seen: Seen | None = None,
) -> Audit:
    """Audit a benchmark: surface, leakage, repetition, duplicates, splits, balance, inferability, twins, solved.

    Args:
        data: a data string or an open data set. Of a data string, records with faults are counted and told; of a data
            set, those that were left out.
        runs: a folder of runs on these data, for what is solved without the user and accuracy by inferability.
        seed: of resampling, Monte Carlo flips and the choice of other users.
        against: data strings of other splits, with which users and texts should not be shared.
        seen: told how many items of how many are done.

    Raises:
        DataError: no record can be used.
        RunError: no run on these data in `runs`, or one that cannot be read.
    """
    opened, problems = (data, data.skipped) if isinstance(data, Dataset) else open_leniently(str(data))
    read, notes = read_runs(Path(runs), opened) if runs is not None else ((), ())
    elsewhere = Elsewhere()
    for other in against:
        elsewhere.add(open_data(str(other)))
    facts = gather(opened, {n: _scorer(f"builtin/{n}") for n in ("length", "lexical")}, elsewhere, seed, seen)
    drafts = _checks(opened, problems, facts, elsewhere, read, seed)
    checks = tuple(_with_questions(c, facts) for c in settle(drafts))
    return Audit(
        name=opened.name,
        digest=opened.digest,
        items=len(opened),
        seed=seed,
        runs=len(read),
        against=tuple(elsewhere.names),
        notes=(*opened.notes, *notes),
        checks=checks,
        support={i: f.support.mean for i, f in facts.items() if f.support is not None},
    )


def _checks(
    data: Dataset,
    problems: Problems | int,
    facts: Mapping[str, Facts],
    elsewhere: Elsewhere,
    runs: Sequence[SeenRun],
    seed: int,
) -> Iterable[Check]:
    linked = components(data)
    units = {i: linked[i] for i in facts}
    entries = data.entries
    paired = {i: f.surface for i, f in facts.items() if f.surface is not None}
    pairs = Pairs(list(paired), [units[i] for i in paired], [entries[i].domain for i in paired], list(paired.values()))
    gaps = probe_gaps(pairs)
    repeated = find_repeated(data)
    near = [(i, f.nearness) for i, f in facts.items() if f.nearness is not None]
    said = {name: {i: outcome(g) for i, g in zip(pairs.ids, each, strict=True)} for name, each in gaps.items()}
    support = {i: f.support for i, f in facts.items() if f.support is not None}
    return chain(
        surface(pairs, gaps, seed),
        solved(data, runs, list(units.values()), seed),
        leakage([(i, f.leaks) for i, f in facts.items()]),
        repetition(
            [(i, f.repeats) for i, f in facts.items()],
            sum(e.posts > 0 for e in entries.values()),
            sum(f.dated for f in facts.values()),
        ),
        duplicates(problems, len(data), repeated, near),
        splits([(i, f.shared) for i, f in facts.items()], elsewhere),
        balance(entries.values()),
        inferability(support, units, runs, seed),
        twins(entries, repeated.strangers, said),
    )


def _with_questions(check: Check, facts: Mapping[str, Facts]) -> Check:
    """Return a check whose worst items tell their question, where nothing else shows what they are about."""
    if check.kind not in ("surface", "solved", "duplicates", "twins") and check.id != "cold_start":
        return check
    told = [replace(w, text=f"{w.text} · {facts[w.item_id].question}") for w in check.worst if w.item_id in facts]
    return replace(check, worst=tuple(told) or check.worst)


def _scorer(name: str) -> Scorer:
    found = open_model(name)
    assert not isinstance(found, AskedModel)
    return found


def card_text(found: Audit) -> str:
    """Return what a data set's card says of its audit, as Markdown."""
    verdicts = [c.verdict for c in found.checks]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("ok", "flagged", "undefined"))
    lines = [f"{len(verdicts)} checks by `palate data audit`: {counts}."]
    lines += [f"- flagged: {c.title}" + (f" ({c.reason})" if c.reason else "") for c in found.flagged]
    return "\n".join(lines)
