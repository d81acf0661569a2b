"""Does the own history say more about what the user wants than other users' histories do?

For each aspect of the rubric its words (title and reason, without English stop words and without the question's own
words, which are about the topic and not the user) are searched by BM25 in the own posts and in those of up to
`BLOCK - 1` other users of the same domain, all posts in one collection. The support of a history is its best post's
score. The figure is the share of others whose support is lower, equal ones counting half: one half at chance.

Words are a lower bound: a history can tell a taste in other words than the rubric does.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from palate.audit.base import WORST, Check, Figure, Worst, accuracy, excerpt, mean, undefined
from palate.audit.runs import SeenRun
from palate.audit.words import Numbers, Words
from palate.data import Entry
from palate.metrics import sign_flip
from palate.metrics.intervals import cluster_sums
from palate.records import Item, Key
from palate.retrieval.bm25 import bm25_matrix, content_words

BLOCK = 8
STRATUM = 64
LEAST = 0.55
EARLY, LATE = 0.2, 0.8
THIRDS = ("lowest third", "middle third", "highest third")
WHY = (
    "One half is chance; under 55 % the own history says in effect no more about the rubric than a stranger's, "
    "so nobody could infer it from there, at least not by its words."
)
WHY_PLACE = "If the posts that matter always stand at one end, taking the newest or oldest solves what reading should."
NO_KEYS = "no rubric with histories to compare"


@dataclass(frozen=True, slots=True)
class Support:
    """How the own history supports an item's aspects: (aspect, share of others beaten), and where the best posts stand.

    A place is 0 for the first post of the history and 1 for the last.
    """

    aspects: tuple[tuple[str, float], ...]
    places: tuple[float, ...]
    others: int

    @property
    def mean(self) -> float:
        """The mean over aspects."""
        return sum(v for _, v in self.aspects) / len(self.aspects)


@dataclass(frozen=True, slots=True)
class Member:
    """One item of a block: its entry, the words of its posts, and for each aspect its title and words."""

    entry: Entry
    history: Words
    aspects: tuple[tuple[str, Numbers], ...]

    @classmethod
    def of(cls, entry: Entry, item: Item, key: Key | None, history: Words) -> "Member":
        """Return the member that an item makes."""
        asked = set(content_words(item.question))
        found = []
        for a in key.aspects if key else ():
            words = [w for w in content_words(f"{a.aspect}\n{a.reason}") if w not in asked]
            if words:
                found.append((a.aspect, Words.of([" ".join(words)]).numbers))
        return cls(entry, history, tuple(found))


def blocks(entries: Mapping[str, Entry], seed: int) -> Iterator[list[str]]:
    """Yield the items in blocks of about `BLOCK` of one domain and alike in size of history.

    Ordered by size, every `STRATUM` items are shuffled by a hash, so that a user's own items, alike in size, do not
    fill a block. Each history is read once and serves all of its block.
    """
    domains: dict[str, list[Entry]] = {}
    for entry in entries.values():
        domains.setdefault(entry.domain, []).append(entry)
    for found in domains.values():
        ordered = sorted(found, key=lambda e: (e.posts, _hash(seed, e.id)))
        strata = [ordered[k : k + STRATUM] for k in range(0, len(ordered), STRATUM)]
        mixed = [e.id for stratum in strata for e in sorted(stratum, key=lambda e: _hash(seed, e.id))]
        count = -(-len(mixed) // BLOCK)
        for k in range(count):
            yield mixed[k * len(mixed) // count : (k + 1) * len(mixed) // count]


def supports(members: Sequence[Member], entries: Mapping[str, Entry]) -> dict[str, Support]:
    """Return the support of each item of a block that has aspects, a history, and somebody to compare with."""
    first = np.concatenate([[0], np.cumsum([len(m.history.texts) for m in members])])
    words = np.concatenate([m.history.numbers for m in members])
    owner = np.concatenate([m.history.owner + at for m, at in zip(members, first, strict=False)])
    queries = [numbers for m in members for _, numbers in m.aspects]
    if not queries:
        return {}
    scores = bm25_matrix(queries, words, owner.astype(np.intp), int(first[-1]))
    best = np.array([_best(scores[:, a:b]) for a, b in pairwise(first)]).T
    found, row = {}, 0
    for k, member in enumerate(members):
        others = _others(k, members, entries)
        rows = range(row, row + len(member.aspects))
        row += len(member.aspects)
        if not others or not rows or not member.history.texts:
            continue
        values = [_beaten(best[r, k], best[r, others]) for r in rows]
        places = [_place(scores[r, first[k] : first[k + 1]]) for r in rows]
        aspects = tuple((excerpt(t, 80), v) for (t, _), v in zip(member.aspects, values, strict=True))
        found[member.entry.id] = Support(aspects, tuple(p for p in places if p is not None), len(others))
    return found


def inferability(
    found: Mapping[str, Support], units: Mapping[str, str], runs: Sequence[SeenRun], seed: int
) -> list[Check]:
    """Return the checks of support and of where the supporting posts stand.

    Args:
        found: support by item.
        units: what is resampled as a whole, by item.
        runs: their accuracy under `history` is split by thirds of support.
        seed: of the statistics.
    """
    title = "Own history supports the rubric better than others'"
    if not found:
        none = undefined("aspects", NO_KEYS)
        return [
            Check("inferability", "inferability", title, "share", none, WHY, LEAST),
            Check("key_place", "inferability", PLACE_TITLE, "share", none, WHY_PLACE, EARLY, LATE),
        ]
    values = [v for s in found.values() for _, v in s.aspects]
    clusters = [units[i] for i, s in found.items() for _ in s.aspects]
    whole = mean("aspects", values, clusters, seed, at_least=LEAST)
    first = sum(v == 1.0 for v in values) / len(values)
    others = sum(s.others for s in found.values()) / len(found)
    parts = (
        Figure(f"first of all ({others:.1f} others)", len(values), first, judged=False),
        *_thirds(found, units, runs, seed),
    )
    weak = sorted(((v, i, t) for i, s in found.items() for t, v in s.aspects), key=lambda x: x[0])[:WORST]
    worst = tuple(Worst(i, f"better than {100 * v:.0f} % of others: {t}") for v, i, t in weak if v < 0.5)
    check = Check("inferability", "inferability", title, "share", whole, WHY, LEAST, None, parts, worst)
    return [check, _places(found, units, seed)]


PLACE_TITLE = "Where the supporting posts stand (0 first, 100 % last)"


def _places(found: Mapping[str, Support], units: Mapping[str, str], seed: int) -> Check:
    places = [(p, units[i]) for i, s in found.items() for p in s.places]
    whole = undefined("aspects", "no post shares a word with the rubric")
    if places:
        whole = mean("aspects", [p for p, _ in places], [u for _, u in places], seed)
        sums, _ = cluster_sums([p - 0.5 for p, _ in places], [u for _, u in places])
        whole = Figure("aspects", whole.n, whole.value, whole.ci95, whole.method, sign_flip(sums, seed)[0])
    return Check("key_place", "inferability", PLACE_TITLE, "share", whole, WHY_PLACE, EARLY, LATE)


def _thirds(
    found: Mapping[str, Support], units: Mapping[str, str], runs: Sequence[SeenRun], seed: int
) -> Iterator[Figure]:
    """Yield the accuracy of each run under `history` on thirds of the items, by support of the own history."""
    ordered = sorted(found, key=lambda i: (found[i].mean, i))
    for run in (r for r in runs if r.view.partition("?")[0] == "history" and "user=" not in r.view):
        for k, name in enumerate(THIRDS):
            ids = ordered[k * len(ordered) // 3 : (k + 1) * len(ordered) // 3]
            outcomes = [run.rows[i]["outcome"] if i in run.rows else None for i in ids]
            label = f"accuracy of {run.model} under {run.view}, {name}"
            yield accuracy(label, outcomes, [units[i] for i in ids], seed, judged=False)


def _others(k: int, members: Sequence[Member], entries: Mapping[str, Entry]) -> list[int]:
    """Return the members whose histories item `k` is compared with: one a user, not its own, not its twin's."""
    own = members[k].entry
    twin = entries.get(own.twin) if own.twin is not None else None
    barred = {own.unit, (twin or own).unit}
    found: dict[str, int] = {}
    for j, other in enumerate(members):
        if other.entry.unit not in barred and other.history.texts:
            found.setdefault(other.entry.unit, j)
    return list(found.values())


def _best(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return scores.max(axis=1) if scores.shape[1] else np.zeros(scores.shape[0])


def _beaten(own: float, others: NDArray[np.float64]) -> float:
    return float(np.mean((others < own) + 0.5 * (others == own)))


def _place(scores: NDArray[np.float64]) -> float | None:
    """Return where the best post stands, the mean place of equal ones; None if no post has a word."""
    if len(scores) < 2 or scores.max() <= 0:
        return None
    return float(np.mean(np.flatnonzero(scores == scores.max()))) / (len(scores) - 1)


def _hash(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode()).digest()
