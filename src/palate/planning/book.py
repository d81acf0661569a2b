"""`PlanBook`: the plans that an evaluation's views read, made under `<out>/plans--…` or taken from a stored folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from palate.data import Dataset
from palate.errors import SpecError
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.planning.base import Planner
from palate.planning.folder import PLANS, Planning, Stored, Whose, make_plans, plan_id
from palate.planning.registry import STORED, make_planner, neutral
from palate.retrieval import Retriever
from palate.spec import Spec
from palate.store import RowLog, RunFolder, unfinished
from palate.views import Looker, NoContext, View

STAND_IN = ("an aspect of some words",) * 4
Seen = Callable[[str, int, int, int], None]
Source = tuple[str, int, Whose, int]


@dataclass(slots=True)
class PlanBook:
    """Gives views their plans.

    Args:
        data: items and donors.
        retriever: ranks the posts that planners read.
        out: where folders of plans go.
        base_url: the server of `llm/…`.
        spending: limits of calls and tokens.
        told: told of retries.
    """

    data: Dataset
    retriever: Retriever | None
    out: Path
    base_url: str | None = None
    spending: Spending | None = None
    told: Told | None = None
    pretend: bool = False
    _looker: Looker = field(init=False)
    _planners: dict[str, Planner] = field(default_factory=dict)
    _plans: dict[Source, Planning | Stored] = field(default_factory=dict)
    _rows: dict[Source, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._looker = Looker(self.data, self.retriever)

    def open(self, view: View) -> View:
        """Make a plan view known; return it without what does not decide the plans.

        Raises:
            SpecError: an unknown planner.
            DataError: stored plans that are not those that the view asks for.
        """
        plain = neutral_view(view)
        source = _source(plain)
        if source in self._plans:
            return plain
        _, k, user, seed = source
        spec = Spec.parse(view.planner, "planner")
        if spec.head.startswith(STORED):
            stored = Stored.open(Path(spec.head.removeprefix(STORED)).expanduser(), user)
            stored.check(self.data.digest, k, user, seed)
            self._plans[source], self._rows[source] = stored, stored.rows
            return plain
        if plain.planner not in self._planners:
            args = (self.data, self.base_url, self.spending, self.told)
            self._planners[plain.planner] = make_planner(view.planner, *args)
        planner = self._planners[plain.planner]
        self._plans[source] = Planning(self.data, self._looker, planner, self.retriever, k, user, seed)
        return plain

    def about(self, view: View) -> dict[str, Any]:
        """Return what a run records: `planner`, `retriever` and `k`."""
        found = self._plans[_source(view)]
        if isinstance(found, Stored):
            return {"planner": found.identity, "retriever": found.record["retriever"], "k": found.record["k"]}
        return {name: found.config[name] for name in ("planner", "retriever", "k")}

    def make(self, view: View, ids: Sequence[str], seen: Seen | None = None) -> None:
        """Make what is missing of a view's plans; stored ones are taken as they are."""
        source = _source(view)
        planning = self._plans[source]
        if isinstance(planning, Stored):
            return
        folder = self.out / planning.name

        def tell(done: int, total: int, before: int) -> None:
            if seen:
                seen(folder.name, done, total, before)

        make_plans(planning, folder, ids, view.draws, told=tell)
        self._rows[source] = RowLog(folder / PLANS, mend=False).rows

    def get(self, item_id: str, view: View, draw: int = 0) -> tuple[str, ...] | NoContext:
        """Return an item's aspects, or why it has none."""
        source = _source(view)
        if source not in self._plans:
            raise SpecError(f"view '{view}': its planner was not opened.")
        row = self._rows.get(source, {}).get(plan_id(item_id, draw))
        if row is None:
            return STAND_IN if self.pretend else NoContext("no plan for this item")
        if row["status"] == "ok":
            return tuple(row["aspects"])
        return NoContext(f"no plan ({'; '.join([row['status'], *row['notes']])})")

    def estimate(self, view: View, ids: Sequence[str]) -> dict[str, Any]:
        """Return how many calls a view's plans would still take, and about how many tokens; nothing is made.

        From then on `get` gives a stand-in for plans that are not there, so that what reads them can be estimated too.
        """
        source = _source(view)
        planning, calls, characters, todo = self._plans[source], 0, 0, 0
        self.pretend = True
        if isinstance(planning, Planning):
            folder = RunFolder(self.out / planning.name)
            log, kept = RowLog(folder.path / PLANS, mend=False), RowLog(folder.calls, mend=False)
            self._rows[source] = log.rows
            names = {plan_id(i, draw): (i, draw) for draw in range(view.draws) for i in ids}
            missing = unfinished(log, list(names))
            todo = len(missing)
            for name in missing:
                found = planning.task(*names[name])
                length = None if isinstance(found, str) else planning.planner.unasked(found[0], kept)
                calls, characters = calls + (length is not None), characters + (length or 0)
        return {"items": todo, "calls": calls, "tokens": characters // 4}


def neutral_view(view: View) -> View:
    """Return a view whose planner string has nothing but what decides the plans."""
    return replace(view, planner=neutral(view.planner)) if view.name == "plan" else view


def _source(view: View) -> Source:
    other = view.user == "other"
    return view.planner, view.k, "other" if other else "own", view.seed if other else 0
