"""Twins: how much of the data they cover, whether each pair is opposed, and that no probe leaves one half on them."""

from collections.abc import Mapping, Sequence

from palate.audit.base import WORST, Check, Figure, Worst, counted, excerpt, undefined
from palate.data import Entry
from palate.data.index import twin_fault
from palate.metrics import CREDIT

NO_TWINS = "no item names a twin"
WHY_OPPOSED = (
    "Only two users with one question, the same two answers and opposite labels hold everything but the user fixed; "
    "opposed items of two users that are not named as twins lend each other their histories."
)
WHY_HALF = (
    "Whoever does not read the user is right for exactly one of two twins; any distance from one half is a fault."
)


def twins(
    entries: Mapping[str, Entry],
    strangers: Sequence[tuple[str, str]],
    said: Mapping[str, Mapping[str, str | None]],
) -> list[Check]:
    """Return the checks of opposition and of the probes on twins.

    Args:
        entries: the items by id.
        strangers: opposed items of two users that are not named as twins.
        said: outcomes of each probe by item.
    """
    named = [e for e in entries.values() if e.twin is not None]
    return [_opposed(entries, named, strangers), _half(named, said)]


def _opposed(entries: Mapping[str, Entry], named: Sequence[Entry], strangers: Sequence[tuple[str, str]]) -> Check:
    title = "Twins that are not opposed"
    faults = {e.id: fault for e in named if (fault := twin_fault(e, entries)) is not None}
    faults |= {second: f"opposed to {first}, but neither names the other" for first, second in strangers}
    known = bool(named or strangers)
    whole = counted("items", faults, len(entries)) if known else undefined("items", NO_TWINS)
    parts = (
        (Figure("covered by twins", len(entries), len(named) / len(entries), judged=False, unit="share"),)
        if known
        else ()
    )
    worst = tuple(Worst(i, excerpt(text)) for i, text in list(faults.items())[:WORST])
    return Check("twins", "twins", title, "count", whole, WHY_OPPOSED, None, 0, parts, worst)


def _half(named: Sequence[Entry], said: Mapping[str, Mapping[str, str | None]]) -> Check:
    title = "Probes on twins, farthest from one half"
    parts = []
    for name, outcomes in said.items():
        credits = [c for e in named if (c := CREDIT[outcomes.get(e.id)]) is not None]
        if credits:
            parts.append(Figure(name, len(credits), sum(credits) / len(credits)))
    whole = undefined("twins", NO_TWINS)
    if parts:
        farthest = max(parts, key=lambda f: abs((f.value or 0.0) - 0.5))
        whole = Figure(farthest.name, farthest.n, farthest.value)
    return Check("twin_probes", "twins", title, "share", whole, WHY_HALF, 0.5, 0.5, tuple(parts))
