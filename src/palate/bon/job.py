"""What one call of best-of-N is about: data, samples, reward models, grader; checked and opened, nothing done yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.bon.policy import Policy
from palate.bon.samples import of_data, read_samples
from palate.bon.score import Scoring, check_ranks
from palate.data import Dataset, open_data
from palate.errors import DataError, SpecError, did_you_mean
from palate.evaluation.api import check_view, ranking_of
from palate.evaluation.run import shown_model
from palate.grading import Grader, make_grader
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.planning import PlanBook
from palate.records import STATUSES
from palate.retrieval import Retriever, make_retriever
from palate.retrieval.stored import Stored
from palate.rewards import Setting, open_model
from palate.rewards.judge.kin import kinship
from palate.store import digest_of
from palate.views import Looker, View

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of `best_of_n` as they were given."""

    data: str
    models: Sequence[str]
    views: Sequence[str]
    out: Path
    policy: str | None = None
    samples: Path | None = None
    grader: str | None = None
    n: int = 16
    best_of: Sequence[int] = ()
    unbiased: bool = True
    repeats: int = 1
    retriever: str = "bm25"
    limit: int | None = None
    retry: Sequence[str] = ()
    base_url: str | None = None
    grader_base_url: str | None = None
    spending: Spending | None = None
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A request, checked and opened. `given` are samples that come from a file or the data."""

    data: Dataset
    ids: Sequence[str]
    n: int
    ks: Sequence[int]
    ranker: Retriever | None
    policy: Policy | None
    given: Sequence[dict[str, Any]]
    source: dict[str, Any]
    scorings: Sequence[Scoring]
    book: PlanBook
    grader: Grader | None
    request: Request

    @property
    def config(self) -> dict[str, Any]:
        """What a folder's samples are made of; more samples, models and graders may come to it later."""
        return {"format": FORMAT, "data_digest": self.data.digest, "source": self.source}

    @property
    def plan_views(self) -> list[View]:
        """The views that plans have to be made for."""
        return list(dict.fromkeys(s.view for s in self.scorings if s.view.name == "plan"))

    @property
    def warnings(self) -> list[str]:
        """What a reader of the curve has to know of grader, policy and reward models together."""
        if self.grader is None:
            return []
        wrote = {self.policy.name} if self.policy else {str(r["policy"]) for r in self.given if r.get("policy")}
        found = [kinship(self.grader.client.endpoint.model, wrote)]
        graders = {self.grader.client.endpoint.model}
        rank = [s.system for s in self.scorings if kinship(s.system, graders)]
        shared = f"grader and reward model are of one family: {', '.join(dict.fromkeys(rank))}" if rank else None
        return [text for text in (*found, shared) if text]


def open_job(request: Request) -> Job:
    """Check a request and open all that it names.

    Raises:
        PalateError: bad strings, data or models.
    """
    _check(request)
    data = open_data(request.data)
    spending = request.spending or Spending()
    views = list(dict.fromkeys(View.parse(v) for v in request.views))
    policy = Policy(request.policy, request.base_url, spending, request.told) if request.policy else None
    reading = [*views, *([policy.view] if policy else [])]
    ranker = _retriever(request.retriever, reading, data)
    given, source = _source(request, data, policy, ranker)
    book = PlanBook(data, ranker, request.out / "plans", request.base_url, spending, request.told)
    scorings = _scorings(request, data, ranker, book, views, digest_of(source), spending)
    url = request.grader_base_url or request.base_url
    grader = make_grader(request.grader, url, spending, request.told) if request.grader else None
    ids = data.ids[: request.limit]
    if grader and not any(data.entries[i].aspects for i in ids):
        raise DataError(f"{data.name}: no item has a rubric, so answers cannot be graded.")
    ks = _grid(request)
    if given:
        _enough(given, request.n)
    return Job(data, ids, request.n, ks, ranker, policy, given, source, scorings, book, grader, request)


def _check(request: Request) -> None:
    if not request.models or not request.views:
        raise SpecError("at least one model and one view are needed.")
    if request.policy and request.samples:
        raise SpecError("samples come from a policy or from a file, not both.")
    for name in ("n", "repeats", "limit"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise SpecError(f"{name} must be at least 1, not {value}.")
    for status in request.retry:
        if status not in STATUSES:
            raise SpecError(f"retry '{status}': no such status.{did_you_mean(status, STATUSES)}")


def _grid(request: Request) -> list[int]:
    """Return the k of the curve: powers of two up to N, unless some are asked for."""
    if not request.best_of:
        return [2**e for e in range(request.n.bit_length()) if 2**e <= request.n]
    wrong = [k for k in request.best_of if not 1 <= k <= request.n]
    if wrong:
        raise SpecError(f"best-of {wrong[0]}: there are only n = {request.n} samples an item. Raise --n.")
    return sorted(set(request.best_of))


def _enough(given: Sequence[dict[str, Any]], n: int) -> None:
    most = 1 + max(row["k"] for row in given)
    if most < n:
        raise SpecError(f"n = {n}, but no item has more than {most} samples. Say --n {most}.")


def _source(
    request: Request, data: Dataset, policy: Policy | None, ranker: Retriever | None
) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
    if policy:
        return (), {"policy": {**policy.identity, **ranking_of(policy.view, ranker)}}
    if request.samples:
        rows, digest = read_samples(request.samples, data)
        return rows, {"file": digest}
    return of_data(data), {"data": data.digest}


def _scorings(
    request: Request,
    data: Dataset,
    ranker: Retriever | None,
    book: PlanBook,
    views: Sequence[View],
    source: str,
    spending: Spending,
) -> list[Scoring]:
    looker = Looker(data, ranker, book)
    setting = Setting(data, request.grader_base_url or request.base_url, spending, request.told)
    opened = [book.open(view) if view.name == "plan" else view for view in views]
    found = []
    for text in dict.fromkeys(request.models):
        model = check_ranks(open_model(text, setting=setting), text)
        for view in opened:
            check_view(model, view)
            about = book.about(view) if view.name == "plan" else ranking_of(view, ranker)
            found.append(Scoring(data, looker, shown_model(text), model, view, about, source))
    return found


def _retriever(text: str, views: Sequence[View], data: Dataset) -> Retriever | None:
    reading = [v for v in views if v.reads_posts]
    found = make_retriever(text)
    if isinstance(found, Stored) and reading:
        found.check(data.digest, max(v.k for v in reading))
    return found if reading else None
