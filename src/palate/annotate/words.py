"""Verdicts in plain words, for the page and the command line."""

from collections.abc import Mapping

from palate.annotate.results import FLOOR, MARGIN, Criterion, Fit, Results, Share
from palate.metrics import Equivalence, Floor
from palate.pages.numbers import chance, interval, percent, plain, span

GENERAL: Mapping[str, str] = {
    "confirmed": "confirmed: people find both answers good, and equally so",
    "refuted": "refuted: people find one side better in general, or not good enough",
    "inconclusive": "not decided: more items or annotators are needed",
}
NAMES: Mapping[str, str] = {
    "raw": "raw agreement",
    "fleiss": "Fleiss' kappa",
    "alpha nominal": "Krippendorff's alpha, nominal",
    "alpha ordinal": "Krippendorff's alpha, ordinal",
    "alpha interval": "Krippendorff's alpha, interval",
}


def equivalence(found: Equivalence) -> str:
    """Say what a test of equivalence came to."""
    if found.mean is None:
        return f"not decided: {found.reason}"
    told = f"difference {plain(found.mean, signed=True)}"
    if found.ci90 is None:
        return f"not decided: {told}, but {found.reason}"
    told += f", 90 % interval {span(found.ci90, signed=True)}"
    if found.verdict == "equivalent":
        return f"alike: {told}, inside ±{MARGIN:g}"
    if found.verdict == "different":
        return f"not alike: {told}, all beyond ±{MARGIN:g}"
    return f"not decided: {told}, not inside ±{MARGIN:g}"


def floor(found: Floor) -> str:
    """Say how a mean stands to the floor."""
    if found.mean is None:
        return f"not rated ({found.reason})"
    verdict = {"met": "good enough", "missed": "not good enough", "inconclusive": "not surely good enough"}
    return f"{verdict[found.verdict]} (mean {plain(found.mean)})"


def criterion(found: Criterion) -> str:
    """Say all about one criterion."""
    sides = [f"{mean.side} {floor(one)}" for mean, one in zip(found.sides, found.floors, strict=True)]
    return f"{found.name}: {equivalence(found.equivalence)}; {', '.join(sides)}"


def fit(found: Fit) -> str:
    """Say how the rubric tells the answers apart."""
    if found.value is None:
        return "nobody rated the fit of both answers"
    side = "better" if found.value > 0 else "no better"
    told = f"the chosen answers fit the rubric {side}: {plain(found.value, signed=True)} points of 5"
    if found.ci95 is None:
        return f"{told} ({found.method})"
    return f"{told}, 95 % interval {span(found.ci95, signed=True)}, p {chance(found.p)}, {found.items} items"


def share(found: Share) -> str:
    """Say how often the chosen answer is picked."""
    if found.share is None:
        return "nobody gave a preference"
    told = "" if found.ci95 is None else f", 95 % interval {interval(found.ci95)} ({found.method})"
    counts = f"{found.votes} votes on {found.items} items, {percent(found.none_share)} see no difference"
    return f"{percent(found.share)}{told}; {counts}"


def summary(found: Results) -> list[str]:
    """Return the whole in a few lines."""
    lines = [f"general quality {GENERAL[found.general]}"]
    lines += [f"  {one.name}: {equivalence(one.equivalence)}" for one in found.criteria]
    floors = [(c.name, m.side, f) for c in found.criteria for m, f in zip(c.sides, c.floors, strict=True)]
    missed = [f"{name} of {side}" for name, side, one in floors if one.verdict != "met"]
    told = f"not surely above {FLOOR:g}: {', '.join(missed)}" if missed else f"all means surely above {FLOOR:g}"
    lines.append(f"  {told}")
    lines += [f"rubric: {fit(found.fit)}", f"people pick the chosen answer: {share(found.share)}"]
    failed = [f"{p.name} {len(p.failed)} of {p.attention}" for p in found.people if p.failed]
    if found.attention_items:
        lines.append(f"attention items failed: {', '.join(failed) or 'none'}")
    return lines


def sentence(text: str) -> str:
    """Return a text as a sentence: its first letter large, a full stop at its end."""
    return f"{text[:1].upper()}{text[1:]}."
