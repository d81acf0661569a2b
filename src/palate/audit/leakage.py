"""Does the answer key stand where a reward model can read it? Runs of six words and more, word for word.

What may overlap, and is told but not judged: evidence is a quote of the question's own post, so evidence and narrative
share their words by construction, and a question is that post's title, so narrative and question do too. What the
question says is open to every view; such runs betray nothing elsewhere. And a run that stands in both answers does
not tell them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from palate.audit.base import WORST, Check, Figure, Worst, counted, excerpt, undefined
from palate.audit.words import Words, runs_of, shared_runs
from palate.records import Answer, Item, Key

RUN = 6
WHY_HISTORY = (
    "Posts that hold six words of the key in a row hand out what the model should infer; one such item is one too many."
)
WHY_ANSWER = (
    "Six words of the key in a row in one answer and not in the other tell the two apart without any user; "
    "runs in both answers or in the question do not count."
)
WHY_QUESTION = (
    "A question that holds six words of the rubric in a row tells the preference to every view; "
    "words shared with the narrative are its title's and are only counted."
)


@dataclass(frozen=True, slots=True)
class Leak:
    """A run of the key's words: in which place, of which part of the key, the words."""

    place: str
    part: str
    text: str


def find_leaks(item: Item, answers: Sequence[Answer], key: Key, history: Words) -> tuple[Leak, ...]:
    """Return the runs of `RUN` words and more of the key in question, answers and history."""
    parts, texts = _key_texts(key)
    wanted = Words.of(texts)
    asked = Words.of([item.question])
    found = [Leak("question", parts[source], text) for _, source, text in _longest(wanted, asked)]
    public = runs_of(asked.texts[0], RUN)
    found += [Leak("history", parts[s], text) for _, s, text in _longest(wanted, history, public)]
    pair = {a.role: a.text for a in answers}
    if "chosen" in pair and "rejected" in pair:
        both = Words.of([pair["chosen"], pair["rejected"]])
        common = runs_of(both.texts[0], RUN) & runs_of(both.texts[1], RUN)
        for text_at, source, text in _longest(wanted, both, public | common):
            found.append(Leak(("chosen", "rejected")[text_at], parts[source], text))
    return tuple(found)


def leakage(leaks: Sequence[tuple[str, tuple[Leak, ...] | None]]) -> list[Check]:
    """Return the checks of history, answers and question.

    Args:
        leaks: (item, what was found) for each item, None where it has no key.
    """
    keyed = [(name, found) for name, found in leaks if found is not None]
    return [
        _check("leak_history", "Key's words in the history", keyed, ("history",), WHY_HISTORY),
        _check("leak_answer", "Key's words in one answer only", keyed, ("chosen", "rejected"), WHY_ANSWER),
        _check("leak_question", "Rubric's words in the question", keyed, ("question",), WHY_QUESTION, ("narrative",)),
    ]


def _check(
    name: str,
    title: str,
    keyed: Sequence[tuple[str, tuple[Leak, ...]]],
    places: tuple[str, ...],
    why: str,
    told: tuple[str, ...] = (),
) -> Check:
    here = [(i, leak) for i, found in keyed for leak in found if leak.place in places]
    bad = [(i, leak) for i, leak in here if leak.part not in told]
    kinds = dict.fromkeys((leak.place if len(places) > 1 else leak.part) for _, leak in here)
    parts = []
    for kind in kinds:
        items = {i for i, leak in here if kind in (leak.place, leak.part)}
        parts.append(Figure(kind, len(keyed), len(items), judged=False))
    whole = counted("items", [i for i, _ in bad], len(keyed)) if keyed else undefined("items", "no item has a key")
    worst = {i: Worst(i, excerpt(f"{leak.part} in {leak.place}: {leak.text}")) for i, leak in reversed(bad)}
    shown = tuple(reversed(worst.values()))[:WORST]
    return Check(name, "leakage", title, "count", whole, why, high=0, parts=tuple(parts), worst=shown)


def _key_texts(key: Key) -> tuple[list[str], list[str]]:
    found = [(part, getattr(a, part)) for part in ("aspect", "reason", "evidence") for a in key.aspects]
    found += [("narrative", key.narrative)] if key.narrative else []
    return [part for part, _ in found], [text for _, text in found]


def _longest(wanted: Words, texts: Words, but: set[tuple[str, ...]] | None = None) -> list[tuple[int, int, str]]:
    """Return maximal shared runs: which text, which part of the key, the words; `but` are runs that do not count."""
    found: list[tuple[int, int, str]] = []
    last, start = (-1, -2), 0
    for text, place, source in shared_runs(wanted, texts, RUN):
        words = texts.texts[text]
        if but and words[place : place + RUN] in but:
            continue
        start = start if last == (text, place - 1) else place
        run = " ".join(words[start : place + RUN])
        if last == (text, place - 1):
            found[-1] = (text, found[-1][1], run)
        else:
            found.append((text, source, run))
        last = (text, place)
    return found
