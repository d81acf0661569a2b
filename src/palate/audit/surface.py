"""How far does the surface of the answers get, without any look at the user?

The probes are the built-in reward models `builtin/length`, `builtin/lexical` and `builtin/style` under `question`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from palate.audit.base import WORST, Check, Figure, Worst, accuracy, undefined
from palate.metrics import sign_flip
from palate.metrics.intervals import cluster_sums, percentiles, resampled_means
from palate.records import Answer, Group, Item, Outcome
from palate.rewards import Scorer
from palate.rewards.style import cross_fit, features, fold_of
from palate.views import View, look

Array = NDArray[np.float64]
MARGIN = 0.05
LONGER = 1.10
FEW = 10
PROBES = {"length": "The longer answer is chosen", "style": "Style tells the chosen answer",
          "lexical": "Overlap with the question tells the chosen answer"}  # fmt: skip
WHY = (
    "Half is chance; within 5 points of it the surface decides too little to order reward models, beyond it a model "
    "can score without reading the user."
)
WHY_RATIO = "A tenth more text on one side is what readers and reward models start to notice."
NO_PAIRS = "no pairs of chosen and rejected answers"


@dataclass(frozen=True, slots=True)
class Surface:
    """What the surface of one pair says: chosen minus rejected by length and by question overlap, style features, and
    the log of the ratio of characters."""

    length: float
    lexical: float
    chosen: Array
    rejected: Array
    log_ratio: float


def probe(item: Item, answers: Sequence[Answer], scorers: Mapping[str, Scorer]) -> Surface:
    """Return what the surface of a pair says; `scorers` are those of `length` and `lexical`."""
    group = Group(look(item, View("question")), tuple(answers))
    gaps = {name: _gap(scorer, group) for name, scorer in scorers.items()}
    one, other = (a.text for a in answers)
    ratio = log(len(one) / len(other))
    return Surface(gaps["length"], gaps["lexical"], features(one), features(other), ratio)


def _gap(scorer: Scorer, group: Group) -> float:
    values = {s.answer_id: s.value for s in scorer.score([group]) if s.value is not None}
    chosen, rejected = group.answers
    return values[chosen.id] - values[rejected.id]


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of a data set as columns: id, linked group of users and twins, domain, surface."""

    ids: Sequence[str]
    units: Sequence[str]
    domains: Sequence[str]
    surfaces: Sequence[Surface]


def probe_gaps(pairs: Pairs) -> dict[str, list[float]]:
    """Return how much higher each probe scores chosen; style as `builtin/style` does, fitted on the other folds."""
    found = {"length": [s.length for s in pairs.surfaces], "lexical": [s.lexical for s in pairs.surfaces]}
    if not pairs.surfaces:
        return found | {"style": []}
    folds = np.array([fold_of(u) for u in pairs.units])
    weights = cross_fit(np.array([s.chosen - s.rejected for s in pairs.surfaces]), folds)
    style = [
        float(weights[fold] @ s.chosen) - float(weights[fold] @ s.rejected)
        for s, fold in zip(pairs.surfaces, folds, strict=True)
    ]
    return found | {"style": style}


def outcome(gap: float) -> Outcome:
    """Return what a probe makes of a pair."""
    return "tie" if gap == 0 else "correct" if gap > 0 else "wrong"


def surface(pairs: Pairs, gaps: Mapping[str, Sequence[float]], seed: int) -> list[Check]:
    """Return a check for each probe, with its figure in each domain, and one of the answers' lengths."""
    checks = [_probe_check(name, title, pairs, gaps[name], seed) for name, title in PROBES.items()]
    return [*checks, _ratio(pairs, seed)]


def _probe_check(name: str, title: str, pairs: Pairs, gaps: Sequence[float], seed: int) -> Check:
    said = [outcome(g) for g in gaps]
    whole = accuracy("pairs", said, pairs.units, seed) if said else undefined("pairs", NO_PAIRS)
    domains = list(dict.fromkeys(pairs.domains))
    parts = []
    for domain in domains if len(domains) > 1 else []:
        places = [k for k, d in enumerate(pairs.domains) if d == domain]
        if len(places) >= FEW:
            parts.append(accuracy(domain, [said[k] for k in places], [pairs.units[k] for k in places], seed))
    side = -1.0 if (whole.value or 0.5) < 0.5 else 1.0
    worst = _clearest(pairs.ids, gaps, side, "{:+,.0f} characters" if name == "length" else "{:+.2f} by this probe")
    return Check(name, "surface", title, "share", whole, WHY, 0.5 - MARGIN, 0.5 + MARGIN, tuple(parts), worst)


def _clearest(ids: Sequence[str], gaps: Sequence[float], side: float, form: str) -> tuple[Worst, ...]:
    """Return the pairs that a probe tells most clearly, in the direction in which it tells most."""
    order = sorted((k for k in range(len(gaps)) if side * gaps[k] > 0), key=lambda k: -side * gaps[k])[:WORST]
    texts = {k: form.format(gaps[k]).replace("-", "\u2212") for k in order}
    return tuple(Worst(ids[k], f"chosen over rejected {text}") for k, text in texts.items())


def _ratio(pairs: Pairs, seed: int) -> Check:
    title = "Length of chosen over rejected"
    if not pairs.surfaces:
        return Check(
            "length_ratio", "surface", title, "ratio", undefined("pairs", NO_PAIRS), WHY_RATIO, 1 / LONGER, LONGER
        )
    logs = [s.log_ratio for s in pairs.surfaces]
    sums, counts = cluster_sums(logs, pairs.units)
    ci = None
    if len(sums) >= FEW:
        low, high = percentiles(resampled_means(sums, counts, seed), len(sums))
        ci = (float(np.exp(low)), float(np.exp(high)))
    value = float(np.exp(np.mean(logs)))
    p, how = sign_flip(sums, seed)
    whole = Figure("pairs", len(logs), value, ci, f"geometric mean, bootstrap over users; {how} sign-flip test", p)
    order = sorted(range(len(logs)), key=lambda k: -abs(logs[k]))[:WORST]
    worst = tuple(Worst(pairs.ids[k], f"chosen is {np.exp(logs[k]):.2f} times as long") for k in order if logs[k])
    return Check("length_ratio", "surface", title, "ratio", whole, WHY_RATIO, 1 / LONGER, LONGER, worst=worst)
