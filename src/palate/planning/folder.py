"""A folder of plans: `plan.json` says what made them, `plans.jsonl` has a line an item, `calls.jsonl` the exchanges.

What is there is not done again: missing plans and those with an `error` are made, others only on request.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from palate.data import Dataset
from palate.errors import DataError, RunError, Stopped
from palate.planning.base import Plan, Planner, Task
from palate.retrieval import Retriever
from palate.spec import slug
from palate.store import Counted, RowLog, RunFolder, counting, digest_of, drive, unfinished
from palate.views import Looker, View
from palate.views.materials import no_posts_to_lend

RECORD, PLANS, OTHER = "plan.json", "plans.jsonl", "other"
FORMAT = 1
Whose = Literal["own", "other"]


@dataclass(frozen=True, slots=True)
class Planning:
    """What one folder of plans is about.

    `user=other` plans the donor's posts for the item's question; `seed` chooses the donor. The filler of `user=none`
    is as long as the own plan, so it needs no plans of its own.
    """

    data: Dataset
    looker: Looker
    planner: Planner
    retriever: Retriever | None
    k: int
    user: Whose = "own"
    seed: int = 0

    @property
    def config(self) -> dict[str, Any]:
        """All that decides the plans."""
        reads = self.planner.reads_posts
        return {
            "format": FORMAT,
            "planner": {"name": self.planner.name, **self.planner.identity},
            "retriever": dict(self.retriever.identity) if reads and self.retriever else None,
            "k": self.k if reads else None,
            "user": self.user,
            "seed": self.seed if self.user == "other" else None,
            "data_digest": self.data.digest,
        }

    @property
    def name(self) -> str:
        """The folder's name where plans are made for a run."""
        parts = (self.planner.name.partition("?")[0], self.user, self.data.name, digest_of(self.config)[:8])
        return "--".join(("plans", *map(slug, parts)))

    def task(self, item_id: str, draw: int) -> tuple[Task, str | None] | str:
        """Return the task for an item and who lends the posts, or why there is nothing to plan from."""
        item = self.data.get(item_id)
        owner = item if self.user == "own" else self.data.donor(item_id, self.seed, draw)
        if owner is None:
            return no_posts_to_lend(item)
        posts = self.looker.top(item, owner, self.k)[0] if self.planner.reads_posts else []
        if self.planner.reads_posts and not posts:
            return "the user has no posts to plan from"
        task = Task(plan_id(item_id, draw), item_id, item.domain, item.question, tuple(posts))
        return task, owner.id if self.user == "other" else None


def plan_id(item_id: str, draw: int) -> str:
    """Return the id of a plan: the item's, and from the second donor on the number of the draw."""
    return f"{item_id}@{draw}" if draw else item_id


def make_plans(
    planning: Planning,
    folder: Path,
    ids: Sequence[str],
    draws: int = 1,
    retry: Collection[str] = (),
    told: Counted | None = None,
) -> dict[str, Any]:
    """Make the plans that are missing in `folder`; return its record.

    Args:
        planning: what to plan and how.
        folder: made if it is not there.
        ids: the items.
        draws: donors an item, under `user=other`.
        retry: statuses to do again besides `error`.
        told: gets (done, of how many, done before).

    Raises:
        RunError: the folder is locked, damaged, or holds plans that were made otherwise.
        ModelError: the model cannot be used.
        Stopped: interrupted; what is done is kept.
    """
    names = {plan_id(i, draw): (i, draw) for draw in range(draws) for i in ids}
    run = RunFolder(folder)
    if not (folder / PLANS).exists():
        planning.planner.prepare()
    with run:
        record = _record(planning, run)
        log = RowLog(folder / PLANS)
        todo = unfinished(log, list(names), retry)
        if todo:
            run.write(RECORD, record | {"status": "running"})
            try:
                work = _Work(planning, names, RowLog(run.calls))
                drive(log, todo, work.rows, counting(told, len(names), len(todo)))
            except BaseException as end:
                run.write(RECORD, record | {"status": "stopped", "plans": _counts(log)})
                if isinstance(end, KeyboardInterrupt):
                    raise Stopped(f"stopped: {folder}. The same command goes on from here.") from None
                raise
            record |= {"environment": dict(planning.planner.environment), "finished": _now()}
        record |= {"status": "complete", "plans": _counts(log)}
        run.write(RECORD, record)
    return record


class _Work:
    """Turns names of plans into rows: what has nothing to be planned from at once, the rest as the planner is done."""

    def __init__(self, planning: Planning, names: Mapping[str, tuple[str, int]], calls: RowLog) -> None:
        self._planning = planning
        self._names = names
        self._calls = calls
        self._empty: deque[dict[str, Any]] = deque()
        self._given: dict[str, tuple[Task, str | None]] = {}

    def rows(self, todo: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield one row a plan, in any order."""
        self._rank_ahead(todo)
        for plan in self._planning.planner.plan(self._tasks(todo), self._calls):
            yield from self._drain()
            task, donor = self._given.pop(plan.id)
            yield _row(plan, [p.id for p in task.posts], donor)
        yield from self._drain()

    def _rank_ahead(self, todo: Sequence[str]) -> None:
        planning, wanted = self._planning, [self._names[name] for name in todo]
        if planning.planner.reads_posts:
            draws = max(draw for _, draw in wanted) + 1
            view = View("history", planning.user, planning.k, planning.seed, draws)
            planning.looker.ahead(view, dict.fromkeys(item_id for item_id, _ in wanted))

    def _tasks(self, todo: Sequence[str]) -> Iterator[Task]:
        for name in todo:
            found = self._planning.task(*self._names[name])
            if isinstance(found, str):
                self._empty.append(_row(Plan(name, "no_context", notes=(found,)), [], None))
            else:
                self._given[name] = found
                yield found[0]

    def _drain(self) -> Iterator[dict[str, Any]]:
        while self._empty:
            yield self._empty.popleft()


class Stored:
    """Plans read from a folder that `palate plan` wrote."""

    def __init__(self, folder: Path, record: Mapping[str, Any], log: RowLog, digest: str) -> None:
        self.folder = folder
        self.record = record
        self.rows: Mapping[str, Mapping[str, Any]] = log.rows
        self._digest = digest

    @classmethod
    def open(cls, folder: Path, user: Whose = "own") -> "Stored":
        """Read a folder of plans; for `user=other` its subfolder `other`, if there is one.

        Raises:
            DataError: there is none.
            RunError: it is damaged.
        """
        if user == "other" and (folder / OTHER / RECORD).is_file():
            folder = folder / OTHER
        record = RunFolder(folder).read(RECORD) if (folder / RECORD).is_file() else None
        if record is None or not {"planner", "k", "user", "seed", "data_digest"} <= record.keys():
            raise DataError(f"planner 'stored/{folder}': no {RECORD} there. Make it: palate plan --out {folder}")
        path = folder / PLANS
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
        return cls(folder, record, RowLog(path, mend=False), digest)

    @property
    def identity(self) -> dict[str, Any]:
        """What made the plans, and a hash of them."""
        return {**self.record["planner"], "plans": self._digest}

    def check(self, data_digest: str, k: int, user: Whose, seed: int) -> None:
        """Make sure that the plans are those that a view asks for.

        Raises:
            DataError: they are not.
        """
        held, where = self.record, f"plans in {self.folder}"
        if held["data_digest"] != data_digest:
            raise DataError(f"{where} were made on other data. Plan again: palate plan")
        if held["k"] not in (None, k):
            raise DataError(f"{where} were made from {held['k']} posts an item. Write k={held['k']} in the view.")
        if held["user"] != user or (user == "other" and held["seed"] != seed):
            raise DataError(f"{where} are for user={held['user']}, seed={held['seed']}; the view wants user={user}.")


def _record(planning: Planning, run: RunFolder) -> dict[str, Any]:
    old = run.read(RECORD) or {}
    config = planning.config
    differ = [name for name, value in config.items() if old and old.get(name) != value]
    if differ:
        raise RunError(f"{run.path}: holds plans made with another {', '.join(differ)}. Use another --out.")
    return {
        "digest": digest_of(config),
        **config,
        "data": planning.data.name,
        "started": old.get("started") or _now(),
        "finished": old.get("finished"),
        "environment": old.get("environment"),
    }


def _row(plan: Plan, posts: Sequence[str], donor: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": plan.id,
        "status": plan.status,
        "aspects": list(plan.aspects),
        "posts": list(posts),
        "notes": list(plan.notes),
    }
    return row | ({"donor": donor} if donor else {})


def _counts(log: RowLog) -> dict[str, int]:
    return dict(Counter(str(row["status"]) for row in log.rows.values()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
