"""A scorer and a retriever whose work is done on the workers of a cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from palate.cluster.join import Cluster
from palate.cluster.pool import Pool
from palate.errors import ModelError
from palate.records import Group, Post, Score
from palate.retrieval import Ask, Retriever, make_retriever
from palate.retrieval.dense import Dense
from palate.rewards import AskedModel, RewardModel, Scorer, open_model
from palate.views import Budget

SPREAD = ("hf", "likelihood", "dpo")


@dataclass(slots=True)
class ScoreWork:
    """Scores groups with the model that a string names, if it is the very model that the driver knows."""

    model: str
    identity: Mapping[str, Any]
    _scorer: Scorer | None = field(default=None, init=False)

    def open(self) -> None:
        """Open the model; its weights are loaded by the first batch."""
        scorer = open_model(self.model)
        _same(self.model, self.identity, scorer.identity)
        assert not isinstance(scorer, AskedModel), "a model behind a server needs no worker"
        self._scorer = scorer

    def do(self, requests: Sequence[Group]) -> list[Score]:
        """Return the scores of some groups; a group is never split, so what its answers share is worked out once."""
        assert self._scorer is not None
        return list(self._scorer.score(requests))

    def environment(self) -> Mapping[str, Any]:
        """Versions, device, dtype and so on, as the model tells them."""
        return self._scorer.environment if self._scorer else {}


@dataclass(slots=True)
class RankWork:
    """Gives posts their numbers with the retriever that a string names."""

    retriever: str
    identity: Mapping[str, Any]
    _retriever: Retriever | None = field(default=None, init=False)

    def open(self) -> None:
        """Open the retriever; its encoder is loaded by the first batch."""
        self._retriever = make_retriever(self.retriever)
        _same(self.retriever, self.identity, self._retriever.identity)

    def do(self, requests: Sequence[tuple[str, str, Sequence[Post]]]) -> list[list[float]]:
        """Return the numbers of each item's posts, in their order."""
        assert self._retriever is not None
        return [list(self._retriever.scores(*request)) for request in requests]

    def environment(self) -> Mapping[str, Any]:
        """Nothing: rankings do not record it."""
        return {}


class SpreadScorer:
    """A scorer on the workers; the local one, which need not load its weights, tells what it is and what it holds.

    Args:
        local: the same model here.
        model: its string, which workers open for themselves.
        cluster: where they are.
    """

    def __init__(self, local: Scorer, model: str, cluster: Cluster) -> None:
        self._local = local
        self._model = model
        self._cluster = cluster
        self._seen: list[Mapping[str, Any]] = []

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._local.name

    @property
    def probe(self) -> bool:
        """As the model itself."""
        return self._local.probe

    @property
    def needs_context(self) -> bool:
        """As the model itself."""
        return self._local.needs_context

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model's own: where it runs is no part of it."""
        return self._local.identity

    @property
    def budget(self) -> Budget | None:
        """The model's own."""
        return self._local.budget

    @property
    def environment(self) -> Mapping[str, Any]:
        """What the workers told of themselves, once they did, and what they are."""
        crew = self._cluster.crew
        told = merged(self._seen) if self._seen else dict(self._local.environment)
        about = {"version": self._cluster.version, "workers": crew.workers, "cpus": crew.cpus, "gpus": crew.gpus}
        return told | {"ray": about}

    def prepare(self) -> None:
        """Load what counts tokens; the workers load the weights."""
        _ = self._local.budget

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield scores as workers send them; a batch that cannot be done gives its answers the status `error`."""
        pool = Pool(self._cluster, ScoreWork(self._model, dict(self.identity)), f"model '{self._model}'")
        for answers, reply in pool.run((tuple(a.id for a in g.answers), g) for g in groups):
            if reply.environment and reply.environment not in self._seen:
                self._seen.append(reply.environment)
            found = {score.answer_id: score for score in reply.results}
            note = reply.note or "the reward model gave no number for this answer"
            for name in (name for group in answers for name in group):
                yield found.get(name) or Score(name, "error", None, note)


class SpreadRetriever:
    """A retriever that ranks many items at once on the workers, and single ones here."""

    def __init__(self, local: Retriever, retriever: str, cluster: Cluster) -> None:
        self._local = local
        self._text = retriever
        self._cluster = cluster

    @property
    def identity(self) -> Mapping[str, Any]:
        """The retriever's own."""
        return self._local.identity

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        """Return the numbers of one item's posts, worked out here."""
        return self._local.scores(item_id, question, posts)

    def many(self, asks: Iterable[Ask]) -> Iterator[tuple[Any, Sequence[float]]]:
        """Yield the name of each ask and its posts' numbers, in any order.

        Raises:
            ModelError: some could not be worked out: there is no ranking without them.
        """
        pool = Pool(self._cluster, RankWork(self._text, dict(self.identity)), f"retriever '{self._text}'")
        for names, reply in pool.run((a.name, (a.item_id, a.question, tuple(a.posts))) for a in asks):
            if len(reply.results) != len(names):
                raise ModelError(f"retriever '{self._text}': {len(names)} items could not be ranked: {reply.note}")
            yield from zip(names, reply.results, strict=True)


def spread_model(model: RewardModel, text: str, cluster: Cluster | None) -> RewardModel:
    """Return the model on the cluster's workers if it is of a family that loads weights, else as it is."""
    if cluster is None or isinstance(model, AskedModel) or text.partition("/")[0] not in SPREAD:
        return model
    return SpreadScorer(model, text, cluster)


def spread_retriever(retriever: Retriever | None, text: str, cluster: Cluster | None) -> Retriever | None:
    """Return the retriever on the cluster's workers if it is a dense one, else as it is."""
    return SpreadRetriever(retriever, text, cluster) if cluster and isinstance(retriever, Dense) else retriever


def merged(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what several workers told as one: texts that differ side by side, lists together, else the first."""
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in found for name in one):
        values = [one[name] for one in found if name in one]
        if all(isinstance(v, str) for v in values):
            result[name] = ", ".join(sorted(set(values)))
        elif all(isinstance(v, list) for v in values):
            result[name] = list(dict.fromkeys(x for v in values for x in v))
        else:
            result[name] = values[0]
    return result


def _same(text: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    differ = [name for name, value in wanted.items() if found.get(name) != value]
    if differ:
        raise ModelError(f"'{text}' is not the same there: another {', '.join(differ)}. Every machine needs the same.")
