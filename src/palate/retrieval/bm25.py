"""BM25 over one user's posts, by bm25s in its Lucene form.

Histories are small, so the idf must stay positive: Lucene's log(1 + (N - df + ½) / (df + ½)) is, even where the only
post matches; a post that matches always outranks one that does not (Kamphuis et al. 2020 compare the forms).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palate.records import Post
from palate.retrieval.base import search_text

_WORD = re.compile(r"\w+")
_ELSE = ""
K1, B = 1.5, 0.75


def tokenize(text: str) -> list[str]:
    """Return the words of `text`, lower-cased: runs of letters, digits and underscores of any script."""
    return _WORD.findall(text.lower())


def content_words(text: str) -> list[str]:
    """Return the words of `text` without English stop words."""
    return [w for w in tokenize(text) if w not in _stop_words()]


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


def bm25_scores(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each document for `query`.

    Args:
        query: its words.
        documents: their words. The collection statistics (df, N, mean length) are these documents' own.
    """
    import bm25s

    wanted = set(query)
    if not wanted or not any(wanted.intersection(words) for words in documents):
        return [0.0] * len(documents)
    index = bm25s.BM25(method="lucene", k1=K1, b=B)
    # Words that are not asked for only count towards the length, so one stand-in serves for all of them.
    index.index([[w if w in wanted else _ELSE for w in words] or [_ELSE] for words in documents], show_progress=False)
    known = [w for w in query if w in index.vocab_dict]
    return [float(s) for s in index.get_scores(known)]


class Bm25:
    """Ranks posts by BM25 with the question as query, English stop words left out of the question."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Form and constants."""
        return {
            "id": "bm25",
            "similarity": "bm25 lucene",
            "k1": K1,
            "b": B,
            "stop_words": "en",
            "text": "prompt + text",
        }

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        """Return the BM25 scores of `posts`."""
        query = content_words(question)
        return bm25_scores(query, [tokenize(search_text(p)) for p in posts])


def bm25_matrix(
    queries: Sequence[NDArray[np.uint64]], words: NDArray[np.uint64], owner: NDArray[np.intp], documents: int
) -> NDArray[np.float64]:
    """Return what `bm25_scores` gives many queries over one large collection, queries × documents.

    Args:
        queries: the words of each query, as numbers.
        words: the words of all documents in a row.
        owner: the document of each word, from 0.
        documents: how many there are; some may have no words.
    """
    from scipy import sparse

    wanted, first = np.unique(np.concatenate([*queries, np.empty(0, dtype=np.uint64)]), return_index=True)
    if not len(wanted) or not len(words):
        return np.zeros((len(queries), documents))
    # Columns are in order of appearance, so that the sums do not depend on which numbers the words have.
    column = np.argsort(np.argsort(first))
    at = np.minimum(np.searchsorted(wanted, words), len(wanted) - 1)
    hits = np.flatnonzero(wanted[at] == words)
    ones = np.ones(len(hits))
    # Few words of a document are asked for, so the table is kept sparse.
    counts = sparse.csr_matrix((ones, (owner[hits], column[at[hits]])), shape=(documents, len(wanted)))
    counts.sum_duplicates()
    lengths = np.bincount(owner, minlength=documents)
    # A document without words counts as one of length 1, as in `bm25_scores`.
    lengths = np.maximum(lengths, 1).astype(float)
    found = np.bincount(counts.indices, minlength=len(wanted))
    idf = np.log(1 + (documents - found + 0.5) / (found + 0.5))
    room = K1 * (1 - B + B * lengths / lengths.mean())
    row = np.repeat(np.arange(documents), np.diff(counts.indptr))
    counts.data = idf[counts.indices] * counts.data / (counts.data + room[row])
    places = [column[np.searchsorted(wanted, q)] for q in queries]
    asked = np.array([np.bincount(p, minlength=len(wanted)) for p in places], dtype=float)
    return np.asarray((counts @ asked.T).T)
