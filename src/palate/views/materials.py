"""From item id and view to a query: fetches what the view reads, from the item or from a donor, and ranks it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from palate.data import Dataset
from palate.errors import PalateError, SpecError
from palate.records import Item, Post, Query
from palate.retrieval import Ask, ManyRetriever, Ranked, Retriever, in_order, rank
from palate.views.look import look
from palate.views.view import View


@dataclass(frozen=True, slots=True)
class NoContext:
    """Why a view has nothing to show for an item: its status is `no_context`."""

    reason: str


class Plans(Protocol):
    """Where plans come from."""

    def get(self, item_id: str, view: View, draw: int = 0) -> tuple[str, ...] | NoContext:
        """Return the aspects planned for an item: from its own posts, or from the donor's under `user=other`."""
        ...


class Looker:
    """Makes queries of a data set's items; rankings are kept, so that several models share them.

    Args:
        data: where items, keys and donors come from.
        retriever: ranks posts; not needed for views that read none.
        plans: gives the aspects of `plan`; not needed for other views.
    """

    def __init__(self, data: Dataset, retriever: Retriever | None = None, plans: Plans | None = None) -> None:
        self._data = data
        self._retriever = retriever
        self._plans = plans
        self._ranked: dict[tuple[str, str, int], tuple[tuple[int, ...], int]] = {}

    def query(self, item_id: str, view: View, draw: int = 0) -> Query | NoContext:
        """Return the query of `item_id` under `view`; draw number `draw` of the donors."""
        item = self._data.get(item_id)
        if view.name == "question":
            return look(item, view)
        if view.name == "plan":
            return self._plan(item, view, draw)
        return self._history(item, view, draw) if view.name == "history" else self._oracle(item, view, draw)

    def again(self, item_id: str, view: View, shown: Mapping[str, Any]) -> Query:
        """Return the query that was shown before, from a row's `shown`, without ranking anew.

        Raises:
            KeyError: an entry that the data does not have.
        """
        item = self._data.get(item_id)
        names = [str(n).removeprefix("filler:") for n in shown["posts"]]
        donors = tuple(shown.get("donors", ()))[:1]
        owner = self._data.get(donors[0]) if donors else item
        if view.name == "question":
            return look(item, view)
        if view.name == "history":
            posts = {p.id: p for p in owner.posts}
            lost = int(shown.get("lost", 0))
            return look(item, view, posts=[posts[n] for n in names], donors=donors, lost=lost)
        if view.name == "plan":
            return look(item, view, plan=names, donors=donors)
        key = self._data.key(owner.id)
        if key is None:
            raise KeyError(owner.id)
        aspects = tuple(key.aspects[int(n)] for n in names)
        return look(item, view, key=replace(key, aspects=aspects), donors=donors)

    def _history(self, item: Item, view: View, draw: int) -> Query | NoContext:
        if view.user != "other":
            posts, lost = self.top(item, item, view.k)
            return look(item, view, posts=posts, lost=lost)
        donor = self._data.donor(item.id, view.seed, draw)
        if donor is None:
            return NoContext(no_posts_to_lend(item))
        posts, lost = self.top(item, donor, view.k)
        return look(item, view, posts=posts, donors=(donor.id,), lost=lost)

    def _plan(self, item: Item, view: View, draw: int) -> Query | NoContext:
        if self._plans is None:
            raise SpecError("view 'plan': no planner is given.")
        found = self._plans.get(item.id, view, draw)
        if isinstance(found, NoContext):
            return found
        donor = self._data.donor(item.id, view.seed, draw) if view.user == "other" else None
        return look(item, view, plan=found, donors=(donor.id,) if donor else ())

    def _oracle(self, item: Item, view: View, draw: int) -> Query | NoContext:
        own = self._data.key(item.id)
        if own is None or not own.aspects:
            return NoContext("the item has no rubric")
        if view.user != "other":
            return look(item, view, key=own)
        donor = self._data.donor(item.id, view.seed, draw, with_key=True)
        key = self._data.key(donor.id) if donor else None
        if donor is None or key is None:
            return NoContext(f"no other user of domain '{item.domain}' has a rubric to lend")
        return look(item, view, key=key, donors=(donor.id,))

    def top(self, item: Item, owner: Item, k: int) -> tuple[list[Post], int]:
        """Return the top k of `owner`'s posts for the item's question, and how many had no finite number."""
        if not owner.posts:
            return [], 0
        if self._retriever is None:
            raise PalateError("reading posts needs a retriever.")
        known = (item.id, owner.id, k)
        if known not in self._ranked:
            own = item.id if owner.id == item.id else ""
            self._keep(known, owner, rank(item.question, owner.posts, self._retriever, k, item_id=own))
        order, lost = self._ranked[known]
        return [owner.posts[n] for n in order], lost

    def ahead(self, view: View, ids: Iterable[str]) -> None:
        """Rank now what `history` will show of all these items, if the retriever is faster with many at once."""
        if not isinstance(self._retriever, ManyRetriever) or view.name != "history":
            return
        for known, scores in self._retriever.many(self._asks(view, ids)):
            owner = self._data.get(known[1])
            self._keep(known, owner, in_order(owner.posts, scores, view.k))

    def _asks(self, view: View, ids: Iterable[str]) -> Iterator[Ask]:
        asked = set(self._ranked)
        for item_id in ids:
            item = self._data.get(item_id)
            for draw in range(view.draws):
                owner = self._data.donor(item_id, view.seed, draw) if view.user == "other" else item
                if owner is None or not owner.posts or (item_id, owner.id, view.k) in asked:
                    continue
                asked.add((item_id, owner.id, view.k))
                own = item_id if owner.id == item_id else ""
                yield Ask((item_id, owner.id, view.k), own, item.question, owner.posts)

    def _keep(self, known: tuple[str, str, int], owner: Item, found: Ranked) -> None:
        places = {id(p): n for n, p in enumerate(owner.posts)}
        self._ranked[known] = tuple(places[id(p)] for p in found.posts), found.lost


def no_posts_to_lend(item: Item) -> str:
    """Return why `user=other` has nobody to borrow posts from."""
    return f"no other user of domain '{item.domain}' has posts to lend"
