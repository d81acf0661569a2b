"""Differences between runs on the same items: what reading the user adds, and how two models differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal, Protocol

from palate.data import Dataset
from palate.metrics import CREDIT, Difference, difference
from palate.views import View

Kind = Literal["lift", "swap_drop", "gain", "model"]
MEANING: Mapping[Kind, str] = {
    "lift": "own context - neutral filler: what reading a user adds, format held fixed",
    "swap_drop": "own context - another user's: what reading this user adds (another's posts also distract)",
    "gain": "own context - question alone",
    "model": "first model - second, same view",
}


class RunLike(Protocol):
    """What a contrast reads of a run."""

    @property
    def model(self) -> str:
        """The model string."""
        ...

    @property
    def view(self) -> str:
        """The view's label."""
        ...

    @property
    def rows(self) -> Mapping[str, Mapping[str, Any]]:
        """Verdict rows by id."""
        ...


@dataclass(frozen=True, slots=True)
class Contrast:
    """`model` under `view` minus `other_model` under `other_view`, with the statistics of the difference."""

    kind: Kind
    model: str
    view: str
    other_model: str
    other_view: str
    difference: Difference

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        names = {"model": self.model, "view": self.view, "other_model": self.other_model, "other_view": self.other_view}
        return {"kind": self.kind, **names, **asdict(self.difference)}


def contrasts_of(data: Dataset, runs: Sequence[RunLike], ids: Sequence[str]) -> list[Contrast]:
    """Return all contrasts that `runs` allow: within each model between views, within each view between models."""
    found = []
    for first, second in combinations(runs, 2):
        for a, b in ((first, second), (second, first)):
            if (kind := _kind(a, b)) is not None:
                found.append(contrast(data, kind, a, b, ids))
    order = list(MEANING)
    return sorted(found, key=lambda c: order.index(c.kind))


def contrast(data: Dataset, kind: Kind, first: RunLike, second: RunLike, ids: Sequence[str]) -> Contrast:
    """Return one contrast over `ids`; users are resampled and flipped as a whole where they repeat, else items.

    Lift and swap drop of `history` are about items that have a history: without one there is nothing to read or swap.
    """
    if kind in ("lift", "swap_drop") and View.parse(first.view).reads_posts:
        ids = [i for i in ids if data.entries[i].posts]
    units = [data.entries[i].unit for i in ids]
    name = "users" if len(set(units)) < len(units) else "items"
    found = difference(list(_credits(first, ids)), list(_credits(second, ids)), units, name)
    return Contrast(kind, first.model, first.view, second.model, second.view, found)


def _kind(first: RunLike, second: RunLike) -> Kind | None:
    a, b = View.parse(first.view), View.parse(second.view)
    if first.model != second.model:
        return "model" if first.view == second.view and first.model < second.model else None
    if a.user != "own" or a.name == "question":
        return None
    if b.name == "question":
        return "gain"
    if (a.name, a.k, a.planner) != (b.name, b.k, b.planner):
        return None
    return "lift" if b.user == "none" else "swap_drop" if b.user == "other" else None


def _credits(run: RunLike, ids: Sequence[str]) -> Iterator[float | None]:
    for name in ids:
        row = run.rows.get(name)
        yield CREDIT[row["outcome"]] if row else None
