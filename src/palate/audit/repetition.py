"""Does the history already hold the question or an answer, or posts from after the question?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palate.audit.base import WORST, Check, Figure, Worst, counted, excerpt, undefined
from palate.audit.words import Words, among, runs_of
from palate.data.check import QUOTE, date_of, later
from palate.records import Answer, Item

SHINGLE = 8
SHORTEST = 6
CONTAINED = 0.5
ALIKE = 0.8
LONGEST = 3
WHY = {
    "question": (
        "A post that repeats the question was written about this very question; a model that reads it need not infer."
    ),
    "answer": "A post that holds an answer gives the pair away, or comes from the same thread as the answer.",
    "later": "What was written after the question cannot have been known when it was asked.",
}
TITLES = {
    "question": "Question repeated in the history",
    "answer": "Answer repeated in the history",
    "later": "Posts from after the question",
}


@dataclass(frozen=True, slots=True)
class Repeat:
    """A post that repeats something: what (`question`, `chosen`, `rejected`, `later`), which post, how near."""

    what: str
    post_id: str
    how: str


def find_repeats(item: Item, answers: Sequence[Answer], history: Words) -> tuple[Repeat, ...]:
    """Return the posts that repeat the question or an answer, and those dated after the question.

    A text is repeated if a post has the same words, or holds half of its runs of `SHINGLE` words (all of it, if it is
    shorter than that but not than `SHORTEST`), or has at least `ALIKE` of the words of both (Jaccard); an answer also
    if a post holds a run of `QUOTE` words of it.
    """
    texts = {"question": item.question} | {a.role: a.text for a in answers if a.role in ("chosen", "rejected")}
    found = []
    for what, text in texts.items():
        for place, how in _near(Words.of([text]), history, quotes=what != "question"):
            found.append(Repeat(what, item.posts[place].id, how))
    asked = date_of(item)
    return (*found, *(Repeat("later", p.id, f"dated {p.date}") for p in item.posts if later(p.date, asked)))


def repetition(repeats: Sequence[tuple[str, tuple[Repeat, ...]]], with_posts: int, dated: int) -> list[Check]:
    """Return the checks of question, answers and dates.

    Args:
        repeats: (item, what was found) for each item.
        with_posts: how many items have a history.
        dated: how many have a date, and posts with one.
    """
    return [
        _check("repeated_question", "question", repeats, ("question",), with_posts, "no item has a history"),
        _check("repeated_answer", "answer", repeats, ("chosen", "rejected"), with_posts, "no item has a history"),
        _check("later_posts", "later", repeats, ("later",), dated, "no question and posts with dates"),
    ]


def _check(
    name: str, what: str, repeats: Sequence[tuple[str, tuple[Repeat, ...]]], kinds: tuple[str, ...], n: int, none: str
) -> Check:
    bad = [(i, r) for i, found in repeats for r in found if r.what in kinds]
    whole = counted("items", [i for i, _ in bad], n) if n else undefined("items", none)
    parts: tuple[Figure, ...] = ()
    if len(kinds) > 1 and bad:
        parts = tuple(Figure(k, n, len({i for i, r in bad if r.what == k}), judged=False) for k in kinds)
    worst = tuple(Worst(i, excerpt(f"{r.what}: post {r.post_id}, {r.how}")) for i, r in bad[:WORST])
    return Check(name, "repetition", TITLES[what], "count", whole, WHY[what], high=0, parts=parts, worst=worst)


def _near(text: Words, history: Words, *, quotes: bool) -> list[tuple[int, str]]:
    """Return the posts that repeat `text` and how; places in the history, in order."""
    found: dict[int, str] = {}
    words = text.texts[0]
    if quotes and len(words) >= QUOTE:
        found |= dict.fromkeys(_holding(words, text, history, QUOTE, 0.0), f"holds {QUOTE} words in a row")
    if len(words) >= SHORTEST:
        n = min(SHINGLE, len(words))
        found |= dict.fromkeys(_holding(words, text, history, n, CONTAINED), "holds half of it or more")
    for place in _sharing(words, text, history):
        own = history.texts[place]
        found[place] = "the same words" if own == words else "nearly the same words"
    return sorted(found.items())


def _holding(words: Sequence[str], text: Words, history: Words, n: int, least: float) -> list[int]:
    """Return the posts that hold at least `least` of the runs of `n` words of a text, and one."""
    numbers, _ = text.runs(n)
    wanted = np.unique(numbers)
    values, places = history.runs(n)
    hits = among(values, wanted)
    if not len(hits):
        return []
    runs = runs_of(words, n)
    posts = np.unique(history.owner[places[hits]])
    return [int(p) for p in posts if _count(runs, history.texts[p], n) >= max(1.0, least * len(runs))]


def _count(runs: set[tuple[str, ...]], post: Sequence[str], n: int) -> int:
    return len(runs & runs_of(post, n))


def _sharing(words: Sequence[str], text: Words, history: Words) -> list[int]:
    """Return the posts whose words are those of a text but for a fifth (Jaccard)."""
    wanted = np.unique(text.numbers)
    if not len(wanted):
        return []
    hits = among(history.numbers, wanted)
    counts = np.bincount(history.owner[hits], minlength=len(history.texts)) if len(hits) else np.zeros(0)
    own = set(words)
    close = [int(p) for p in np.flatnonzero(counts >= ALIKE * len(wanted))]
    # A far longer post has other words, or repeats the text, which its runs show.
    posts = {p: history.texts[p] for p in close if len(history.texts[p]) <= LONGEST * len(words)}
    return [p for p, post in posts.items() if _alike(own, set(post)) >= ALIKE]


def _alike(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)
