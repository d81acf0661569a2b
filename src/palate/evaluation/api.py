"""`evaluate`: the main job as one call."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.contrasts import Contrast, contrasts_of
from palate.data import Dataset, open_data
from palate.errors import DataError, SpecError, did_you_mean
from palate.evaluation.protocol import find_protocol
from palate.evaluation.run import Job, Seen, run_job
from palate.records import STATUSES
from palate.retrieval import Retriever, make_retriever
from palate.retrieval.stored import Stored
from palate.rewards import Scorer, open_model
from palate.store import RowLog, RunFolder
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
        wanted = View.parse(view).label
        for run in self.runs:
            if run.model == model and run.view == wanted:
                return run
        raise SpecError(f"no run of '{model}' under '{view}' in this evaluation.")


def evaluate(
    data: str,
    models: Sequence[str] | str,
    views: Sequence[str] | str = ("question", "history"),
    out: str | Path = "runs",
    *,
    retriever: str | None = None,
    protocol: str = "palate",
    limit: int | None = None,
    by: Sequence[str] = (),
    retry: Sequence[str] = (),
    fresh: bool = False,
    seen: Seen | None = None,
) -> Evaluation:
    """Evaluate reward models on personal preferences.

    Every model × view becomes a folder in `out` that can be resumed: what is finished is not done again.

    Args:
        data: a data string, see `open_data`.
        models: model strings, see `open_model`.
        views: view strings such as `question`, `history`, `swapped`, `history?user=none`, `oracle`.
        out: where run folders go.
        retriever: ranks posts for `history`: `bm25` (default), `recency`, `dense[/model]`, `stored/<folder>`.
        protocol: `palate`, or `paper` for the paper's settings (Contriever, k = 10, strict accuracy).
        limit: only the first items; raising it extends a run.
        by: columns to split the figures by.
        retry: statuses to try again besides `error`.
        fresh: start anew although there are rows; the old ones are kept aside.
        seen: told of progress.

    Raises:
        PalateError: bad strings, data or models.
    """
    rules = find_protocol(protocol)
    parsed = list(dict.fromkeys(View.parse(v) for v in _listed(views, "view")))
    opened = open_data(data)
    _check(opened, by, retry, limit)
    ranker = _retriever(rules.retriever_for(retriever, parsed), parsed, opened)
    looker = Looker(opened, ranker)
    scorers = [(text, open_model(text, opened)) for text in _listed(models, "model")]
    ids = opened.ids[:limit]
    runs = []
    for text, scorer in scorers:
        for view in parsed:
            ranking = ranker.identity if ranker and view.reads_posts else None
            job = Job(opened, looker, text, scorer, view, ranking, rules.name)
            runs.append(_finished(run_job(job, Path(out), ids, by, retry, fresh, seen), text, scorer, view))
    return Evaluation(opened, tuple(runs), tuple(contrasts_of(opened, runs, ids)))


def _finished(folder: RunFolder, text: str, scorer: Scorer, view: View) -> Run:
    record, metrics = folder.record(), folder.metrics()
    assert record is not None
    assert metrics is not None
    return Run(text, view.label, scorer.probe, folder.path, record, metrics, RowLog(folder.rows).rows)


def _listed(found: Sequence[str] | str, what: str) -> list[str]:
    texts = [found] if isinstance(found, str) else list(found)
    if not texts:
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


def _retriever(text: str, views: Sequence[View], data: Dataset) -> Retriever | None:
    found = make_retriever(text)
    reading = [v for v in views if v.reads_posts]
    if isinstance(found, Stored) and reading:
        found.check(data.digest, max(v.k for v in reading))
    return found if reading else None
