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
    """`first` minus `second` with the statistics of the difference."""

    kind: Kind
    first: str
    second: str
    difference: Difference

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"kind": self.kind, "first": self.first, "second": self.second, **asdict(self.difference)}


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
    """Return one contrast over `ids`; users are resampled and flipped as a whole where they repeat, else items."""
    users = [data.entries[i].user_id for i in ids] if data.has_users else []
    repeat = len(set(users)) < len(users)
    found = difference(
        list(_credits(first, ids)),
        list(_credits(second, ids)),
        users if repeat else list(ids),
        "users" if repeat else "items",
    )
    same = kind != "model"
    names = (f"{first.model} {first.view}", second.view if same else f"{second.model} {second.view}")
    return Contrast(kind, names[0], names[1], found)


def _kind(first: RunLike, second: RunLike) -> Kind | None:
    a, b = View.parse(first.view), View.parse(second.view)
    if first.model != second.model:
        return "model" if first.view == second.view and first.model < second.model else None
    if a.user != "own" or a.name == "question":
        return None
    if b.name == "question":
        return "gain"
    if (a.name, a.k) != (b.name, b.k):
        return None
    return "lift" if b.user == "none" else "swap_drop" if b.user == "other" else None


def _credits(run: RunLike, ids: Sequence[str]) -> Iterator[float | None]:
    for name in ids:
        row = run.rows.get(name)
        yield CREDIT[row["outcome"]] if row else None
