"""From data and view to prompts: one template and one k, for the policy in training, for its test, for the rewards."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.data import Dataset, open_data
from palate.errors import DataError, SpecError
from palate.evaluation.verdicts import queries_of
from palate.llm.client import Spending
from palate.planning import PlanBook
from palate.records import Query, Verdict
from palate.retrieval import Retriever, make_retriever
from palate.retrieval.stored import Stored
from palate.views import PROMPT_DIGESTS, Budget, Looker, View

Tokens = Callable[[Query], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Source:
    """Data seen through one view."""

    data: Dataset
    looker: Looker
    view: View
    retriever: Retriever | None
    ids: Sequence[str]

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the prompts."""
        reads = self.view.reads_posts
        return {
            "data": self.data.name,
            "data_digest": self.data.digest,
            "view": str(self.view),
            "k": self.view.k if reads else None,
            "retriever": dict(self.retriever.identity) if reads and self.retriever else None,
            "prompts": dict(PROMPT_DIGESTS),
        }

    def query(self, item_id: str, budget: Budget | None) -> Query | Verdict:
        """Return an item's query fitted to a model, or why there is none."""
        found = queries_of(self.looker, self.view, item_id, budget)
        return found if isinstance(found, Verdict) else found[0]


def open_source(data: str, view: str, retriever: str, limit: int | None, out: Path) -> Source:
    """Open data under a view; plans that the view shows are made now, in `out`.

    Raises:
        SpecError: a view that shows the rubric, or several draws.
        PalateError: bad strings or data.
    """
    parsed = View.parse(view)
    if parsed.name == "oracle":
        raise SpecError("view 'oracle': the rubric is what answers are graded by; it never goes into a prompt.")
    if parsed.draws > 1:
        raise SpecError(f"view '{view}': a prompt shows one donor; leave draws out.")
    opened = open_data(data)
    ranker = make_retriever(retriever)
    if isinstance(ranker, Stored) and parsed.reads_posts:
        ranker.check(opened.digest, parsed.k)
    book = PlanBook(opened, ranker, out, None, Spending(), None)
    looker = Looker(opened, ranker, book)
    ids = opened.ids[:limit]
    if parsed.name == "plan":
        parsed = book.open(parsed)
        book.make(parsed, ids, None)
    looker.ahead(parsed, ids)
    return Source(opened, looker, parsed, ranker if parsed.reads_posts else None, ids)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question as the policy reads it: its tokens, and the query that the reward model gets."""

    item_id: str
    ids: tuple[int, ...]
    asked: Query
    scored: Query


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts by item, in the order of the data, and how many items are left out for which status."""

    of: Mapping[str, Prompt]
    left_out: Mapping[str, int]
    dropped: int

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self.of.values())

    def __len__(self) -> int:
        return len(self.of)


def make_prompts(source: Source, tokens: Tokens, own: Budget, reward: Budget | None) -> Prompts:
    """Return the prompts of all items that policy and reward model can hold.

    Args:
        source: data and view.
        tokens: the policy's tokens of a query.
        own: the policy's budget.
        reward: the reward model's, or None if it holds anything.

    Raises:
        DataError: no item is left.
    """
    found: dict[str, Prompt] = {}
    left: Counter[str] = Counter()
    for item_id in source.ids:
        asked = source.query(item_id, own)
        scored = source.query(item_id, reward) if isinstance(asked, Query) else asked
        if isinstance(asked, Verdict) or isinstance(scored, Verdict):
            bad = asked if isinstance(asked, Verdict) else scored
            assert isinstance(bad, Verdict), "one of both is"
            left[bad.status] += 1
            continue
        ids = tokens(asked)
        if len(ids) > own.prompt:
            left["overlong"] += 1
            continue
        found[item_id] = Prompt(item_id, ids, asked, scored)
    if not found:
        why = ", ".join(f"{status} {n}" for status, n in left.items())
        raise DataError(f"{source.data.name}: no item gives a prompt under '{source.view}' ({why}).")
    return Prompts(found, dict(left), sum(p.asked.dropped for p in found.values()))
