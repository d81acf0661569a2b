"""`keyphrase`: phrases that are characteristic of this user's posts. Offline; a planner to beat.

Words are weighed by tf-idf (scikit-learn's, sublinear tf). The idf counts how many users of the item's domain write a
word, in up to `BACKGROUND` posts spread evenly over them, so that what everybody there writes about counts little and
what one user returns to counts in full. A word's weight is its tf-idf summed over the posts that are read, each post
counted 1 + its cosine with the question. A phrase is a run of one to three words of one post with no stop word or
punctuation in between; it scores the sum of its words' weights over the square root of their number. The best are
taken, none sharing a word with another, six at most; after the third only those of at least half the best score.

`question-only` does the same to the question alone: what a plan has that this one has too does not come of the user.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from palate.data import Dataset
from palate.planning.base import FEWEST, MOST, Plan, Task
from palate.planning.words import stem
from palate.retrieval.base import search_text
from palate.store import RowLog

T = TypeVar("T")

BACKGROUND = 2000
LONGEST = 3
KEEP = 0.5
CHATTER = frozenset((files("palate.planning") / "chatter.txt").read_text(encoding="utf-8").split())
STOP = ENGLISH_STOP_WORDS | CHATTER
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|[^\s\w]|\d+")
_SHORTEST = 3


class Keyphrase:
    """Names what a user writes about that others of the domain do not.

    Args:
        data: whose posts are the background.
        reads_posts: False for the control that sees the question alone.
    """

    def __init__(self, data: Dataset, *, reads_posts: bool = True) -> None:
        self.reads_posts = reads_posts
        self.name = "keyphrase" if reads_posts else "question-only"
        self._data = data
        self._counted: dict[str, tuple[int, Counter[str]]] = {}

    @property
    def identity(self) -> Mapping[str, Any]:
        """Form and constants; the background follows from the data."""
        return {
            "id": self.name,
            "weights": "tf-idf, sublinear, of words; idf over the domain's users",
            "background": BACKGROUND,
            "words": [1, LONGEST],
            "aspects": [FEWEST, MOST],
            "stop_words": f"scikit-learn english and {len(CHATTER)} more",
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions."""
        return {name: version(name) for name in ("palate", "scikit-learn")}

    def prepare(self) -> None:
        """Nothing is needed."""

    def unasked(self, task: Task, log: RowLog) -> int | None:
        """Nothing is ever sent."""
        return None

    def plan(self, tasks: Iterable[Task], log: RowLog) -> Iterator[Plan]:
        """Yield the plans in the order of the tasks."""
        for task in tasks:
            phrases = self._phrases(task)
            few = (f"{len(phrases)} phrases: there is not more to read",) if 0 < len(phrases) < FEWEST else ()
            if phrases:
                yield Plan(task.id, "ok", phrases, few)
            else:
                yield Plan(task.id, "no_context", notes=("no words to plan from",))

    def _phrases(self, task: Task) -> tuple[str, ...]:
        texts = [search_text(p) for p in task.posts] if self.reads_posts else [task.question]
        vocabulary = sorted({w for text in texts for w in content_words(text)})
        if not vocabulary:
            return ()
        weigher = TfidfVectorizer(analyzer=content_words, vocabulary=vocabulary, sublinear_tf=True)
        weigher.idf_ = self._idf(task.domain, vocabulary)
        matrix, asked = weigher.transform(texts), weigher.transform([task.question])
        nearness = 1.0 + np.asarray((matrix @ asked.T).todense()).ravel()
        summed = np.asarray(matrix.T @ nearness).ravel()
        return choose(dict(zip(vocabulary, map(float, summed), strict=True)), texts)

    def _idf(self, domain: str, words: Sequence[str]) -> NDArray[np.float64]:
        """Return log((1 + n) / (1 + df)) + 1, n and df in users of the domain, as scikit-learn smooths it."""
        if domain not in self._counted:
            users = self._words_of_users(domain)
            self._counted[domain] = len(users), Counter(word for found in users.values() for word in found)
        users_in_all, counts = self._counted[domain]
        return np.array([np.log((1 + users_in_all) / (1 + counts[w])) + 1 for w in words])

    def _words_of_users(self, domain: str) -> dict[str, set[str]]:
        chosen = _evenly([e for e in self._data.entries.values() if e.domain == domain], BACKGROUND)
        found: dict[str, set[str]] = {}
        for entry in chosen:
            words = found.setdefault(entry.unit, set())
            for post in _evenly(self._data.get(entry.id).posts, max(1, BACKGROUND // len(chosen))):
                words.update(content_words(search_text(post)))
        return found


def choose(weights: Mapping[str, float], texts: Sequence[str]) -> tuple[str, ...]:
    """Return the best phrases of `texts`, best first; equal ones in the order of the texts."""
    scores: dict[tuple[str, ...], float] = {}
    for text in texts:
        for run in _runs(text):
            for size in range(1, LONGEST + 1):
                for start in range(len(run) - size + 1):
                    phrase = tuple(run[start : start + size])
                    scores[phrase] = sum(weights.get(w, 0.0) for w in phrase) / size**0.5
    found: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for phrase in sorted(scores, key=lambda p: -scores[p]):
        stems = {stem(w) for w in phrase}
        if scores[phrase] <= 0 or stems & taken or len(stems) < len(phrase):
            continue
        if len(found) == MOST or (len(found) >= FEWEST and scores[phrase] < KEEP * scores[found[0]]):
            break
        found.append(phrase)
        taken |= stems
    return tuple(" ".join(p) for p in found)


def content_words(text: str) -> list[str]:
    """Return the words that phrases are made of, in order: no stop words, nothing under three letters."""
    return [word for run in _runs(text) for word in run]


def _runs(text: str) -> Iterator[list[str]]:
    """Yield the runs of words that no stop word, number or punctuation interrupts."""
    run: list[str] = []
    for token in _TOKEN.findall(text.lower()):
        if len(token) >= _SHORTEST and token.isalpha() and token not in STOP:
            run.append(token)
            continue
        if run:
            yield run
        run = []
    if run:
        yield run


def _evenly(items: Sequence[T], most: int) -> Sequence[T]:
    if len(items) <= most:
        return items
    return [items[k * len(items) // most] for k in range(most)]
