"""`evaluate`: the main job as one call."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.cluster import Cluster, joined, spread_model, spread_retriever
from palate.contrasts import Contrast, contrasts_of
from palate.data import Dataset, open_data
from palate.errors import DataError, SpecError, did_you_mean
from palate.evaluation.protocol import find_protocol
from palate.evaluation.run import Finished, Job, Progress, Seen, estimate_job, run_job, shown_model
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.planning import PlanBook
from palate.planning.book import neutral_view
from palate.records import STATUSES
from palate.retrieval import Retriever, make_retriever
from palate.retrieval.stored import Stored
from palate.rewards import RewardModel, Setting, open_model
from palate.views import Looker, View


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run: what it was, its figures, its verdict rows by id, and its folder."""

    model: str
    view: str
    probe: bool
    folder: Path
    record: Mapping[str, Any]
    metrics: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All runs of one call, in the order models × views, and the contrasts between them."""

    data: Dataset
    runs: tuple[Run, ...]
    contrasts: tuple[Contrast, ...]

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def run(self, model: str, view: str) -> Run:
        """Return the run of `model` under `view`.

        Raises:
            SpecError: there is none in this evaluation.
        """
        wanted = neutral_view(View.parse(view)).label
        for run in self.runs:
            if run.model == shown_model(model) and run.view == wanted:
                return run
        raise SpecError(f"no run of '{model}' under '{view}' in this evaluation.")


def evaluate(
    data: str | Path,
    models: Sequence[str] | str,
    views: Sequence[str] | str = ("question", "history"),
    out: str | Path = "runs",
    *,
    retriever: str | None = None,
    protocol: str = "palate",
    limit: int | None = None,
    by: Sequence[str] | str = (),
    retry: Sequence[str] | str = (),
    fresh: bool = False,
    base_url: str | None = None,
    ray: str | None = None,
    spending: Spending | None = None,
    seen: Seen | None = None,
    told: Told | None = None,
) -> Evaluation:
    """Evaluate reward models on personal preferences.

    Every model × view becomes a folder in `out` that can be resumed: what is finished is not done again.

    Args:
        data: a data string, see `open_data`.
        models: model strings, see `open_model`.
        views: view strings such as `question`, `history`, `swapped`, `history?user=none`, `plan?planner=…`,
            `oracle`.
        out: where run folders go, and folders of plans.
        retriever: ranks posts for `history` and `plan`: `bm25` (default), `recency`, `dense[/model]`,
            `stored/<folder>`.
        protocol: `palate`, or `paper` for the paper's settings (Contriever, k = 10, strict accuracy).
        limit: only the first items; raising it extends a run.
        by: columns to split the figures by.
        retry: statuses to try again besides `error`.
        fresh: start anew although there are rows; the old ones are kept aside.
        base_url: the server of `judge/…`, `rate/…` and `llm/…`.
        ray: a cluster whose workers do what needs weights, scoring and dense retrieval: `local`, `auto` or
            `host:port`, see `Place`.
        spending: limits of calls and tokens, and where both are counted.
        seen: told of progress.
        told: told of retries, as (item id, what happened).

    Raises:
        PalateError: bad strings, data or models.
    """
    spent = spending or Spending()
    with joined(ray) as cluster:
        args = (Path(out), retriever, protocol, limit, by, retry, base_url, spent, told, cluster)
        todo = _prepare(data, models, views, *args)
        for view in _plan_views(todo):
            todo.book.make(view, todo.ids, (lambda *now: seen(Progress(*now))) if seen else None)
        runs = [_run(job, run_job(job, Path(out), todo.ids, todo.by, todo.retry, fresh, seen)) for job in todo.jobs]
    return Evaluation(todo.data, tuple(runs), tuple(contrasts_of(todo.data, runs, todo.ids)))


def estimate(
    data: str | Path,
    models: Sequence[str] | str,
    views: Sequence[str] | str = ("question", "history"),
    out: str | Path = "runs",
    *,
    retriever: str | None = None,
    protocol: str = "palate",
    limit: int | None = None,
    base_url: str | None = None,
) -> dict[str, Any]:
    """Tell how many calls to servers an evaluation would still take, and about how many tokens it would send.

    Nothing is sent. Tokens are taken as a quarter of the characters. The arguments are those of `evaluate`.
    """
    todo = _prepare(data, models, views, Path(out), retriever, protocol, limit, (), (), base_url, Spending(), None)
    runs = [{"model": v.planner, "view": v.label, **todo.book.estimate(v, todo.ids)} for v in _plan_views(todo)]
    runs += [estimate_job(job, Path(out), todo.ids) for job in todo.jobs]
    return {"runs": runs, "calls": sum(r["calls"] for r in runs), "tokens": sum(r["tokens"] for r in runs)}


@dataclass(frozen=True, slots=True)
class _Todo:
    """What one call of `evaluate` comes to: checked, opened, nothing done yet."""

    data: Dataset
    ids: Sequence[str]
    jobs: Sequence[Job]
    book: PlanBook
    by: Sequence[str]
    retry: Sequence[str]


def _prepare(
    data: str | Path,
    models: Sequence[str] | str,
    views: Sequence[str] | str,
    out: Path,
    retriever: str | None,
    protocol: str,
    limit: int | None,
    by: Sequence[str] | str,
    retry: Sequence[str] | str,
    base_url: str | None,
    spending: Spending,
    told: Told | None,
    cluster: Cluster | None = None,
) -> _Todo:
    rules = find_protocol(protocol)
    parsed = list(dict.fromkeys(View.parse(v) for v in _listed(views, "view")))
    opened = open_data(str(data))
    columns, again = _listed(by, None), _listed(retry, None)
    _check(opened, columns, again, limit)
    ranking = rules.retriever_for(retriever, parsed)
    ranker = _retriever(ranking, parsed, opened)
    rules.check(ranker)
    ranker = spread_retriever(ranker, ranking, cluster)
    book = PlanBook(opened, ranker, out, base_url, spending, told)
    looker = Looker(opened, ranker, book)
    setting = Setting(opened, base_url, spending, told)
    parsed = [book.open(view) if view.name == "plan" else view for view in parsed]
    jobs = []
    for text in _listed(models, "model"):
        named = rules.model_string(text)
        model = spread_model(open_model(named, setting=setting), named, cluster)
        for view in parsed:
            check_view(model, view)
            about = book.about(view) if view.name == "plan" else ranking_of(view, ranker)
            jobs.append(Job(opened, looker, shown_model(text), model, view, about, rules.name))
    return _Todo(opened, opened.ids[:limit], jobs, book, columns, again)


def ranking_of(view: View, ranker: Retriever | None) -> dict[str, Any]:
    """Return what a run records of how posts were ranked for a view."""
    if not view.reads_posts or ranker is None:
        return {"k": None, "retriever": None}
    return {"k": view.k, "retriever": dict(ranker.identity)}


def _plan_views(todo: _Todo) -> list[View]:
    return list(dict.fromkeys(job.view for job in todo.jobs if job.view.name == "plan"))


def _run(job: Job, done: Finished) -> Run:
    return Run(job.model, job.view.label, job.scorer.probe, done.folder, done.record, done.metrics, done.rows)


def _listed(found: Sequence[str] | str, what: str | None) -> list[str]:
    texts = [found] if isinstance(found, str) else list(found)
    if what and not texts:
        raise SpecError(f"at least one {what} is needed.")
    return list(dict.fromkeys(texts))


def _check(data: Dataset, by: Sequence[str], retry: Sequence[str], limit: int | None) -> None:
    if not data.has_pairs:
        raise DataError(f"{data.name}: evaluation needs a chosen and a rejected answer for every item ({data.format}).")
    if limit is not None and limit < 1:
        raise SpecError(f"limit must be at least 1, not {limit}.")
    for name in by:
        if name not in data.columns:
            raise SpecError(f"by '{name}': the data has no such column.{did_you_mean(name, data.columns)}")
    for status in retry:
        if status not in STATUSES:
            raise SpecError(f"retry '{status}': no such status.{did_you_mean(status, STATUSES)}")


def check_view(model: RewardModel, view: View) -> None:
    """Refuse a view under which a model has nothing to score.

    Raises:
        SpecError: it measures what a context adds, and the view has none.
    """
    if model.needs_context and view.name == "question":
        raise SpecError(
            f"model '{model.name}': it measures what a context adds to the bare question, so under 'question' there is "
            "nothing to score. Choose other views: --view history --view 'history?user=none' --view swapped"
        )


def _retriever(text: str, views: Sequence[View], data: Dataset) -> Retriever | None:
    found = make_retriever(text)
    reading = [v for v in views if v.reads_posts]
    if isinstance(found, Stored) and reading:
        found.check(data.digest, max(v.k for v in reading))
    return found if reading else None
