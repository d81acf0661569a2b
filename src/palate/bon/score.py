"""Scoring: all samples of an item as one group, by one reward model under one view, kept in a folder of their own."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from palate.bon.samples import answer_of
from palate.data import Dataset
from palate.errors import SpecError
from palate.evaluation.verdicts import groups_of, queries_of
from palate.llm.gather import Work, gather
from palate.records import STATUSES, Answer, Group, Score, Status, Verdict
from palate.rewards import AskedModel, Rating, RewardModel, Scorer
from palate.spec import public_name, short_model, slug
from palate.store import RowLog, RunFolder, digest_of, drive, unfinished
from palate.views import PROMPT_DIGESTS, Looker, View

FORGET = ("prompt",)
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scoring:
    """One reward model under one view. `about` says what its context was made with."""

    data: Dataset
    looker: Looker
    text: str
    model: Scorer | Rating
    view: View
    about: Mapping[str, Any]
    source: str

    @property
    def config(self) -> dict[str, Any]:
        """All that decides the scores; `source` is the digest of where the samples come from."""
        return {
            "model": dict(self.model.identity),
            "view": str(self.view),
            **self.about,
            "data_digest": self.data.digest,
            "source": self.source,
            "prompts": PROMPT_DIGESTS if self.view.name != "question" else {},
            "grade": dict(self.model.grade) if isinstance(self.model, AskedModel) else None,
        }

    @property
    def name(self) -> str:
        """The folder's name."""
        parts = (short_model(self.model.name), self.view.name, digest_of(self.config)[:8])
        return "--".join(map(slug, parts))

    @property
    def system(self) -> str:
        """The reward model's name on the board."""
        return public_name(self.model.identity)

    def pending(self, folder: Path, live: Sequence[str], retry: Collection[str] = ()) -> list[str]:
        """Return the samples that have no score yet."""
        return unfinished(RowLog(folder / self.name / "rows.jsonl", mend=False), live, retry)

    def run(
        self, folder: Path, samples: Mapping[str, Row], live: Sequence[str], retry: Collection[str], told: Any
    ) -> Mapping[str, Row]:
        """Score what is missing; return all rows by sample.

        Args:
            folder: holds a folder for each scoring.
            samples: all samples by id.
            live: the ids of those that have a text, an item's together.
            retry: statuses to do again besides `error`.
            told: gets (done, of how many, done before).
        """
        run = RunFolder(folder / self.name)
        run.path.mkdir(parents=True, exist_ok=True)
        log = RowLog(run.rows)
        todo = unfinished(log, live, retry)
        record: dict[str, Any] = {"system": self.system, "string": self.text, "config": self.config}
        told(len(live) - len(todo), len(live), len(live) - len(todo))
        if todo:
            if not isinstance(self.model, AskedModel):
                self.model.prepare()
            run.write_record(record | {"status": "running"})
            done = iter(range(len(live) - len(todo) + 1, len(live) + 1))
            before = len(live) - len(todo)
            step = self._step(run, log, samples, retry)
            drive(log, todo, step, lambda _: told(next(done), len(live), before))
            record["environment"] = dict(self.model.environment)
        else:
            record["environment"] = (run.record() or {}).get("environment")
        run.write_record(record | {"status": "complete"})
        return log.rows

    def _step(
        self, run: RunFolder, log: RowLog, samples: Mapping[str, Row], retry: Collection[str]
    ) -> Callable[[Sequence[str]], Iterator[Row]]:
        def rows(todo: Sequence[str]) -> Iterator[Row]:
            items: dict[str, list[Answer]] = {}
            for name in todo:
                items.setdefault(samples[name]["item_id"], []).append(answer_of(samples[name]))
            self.looker.ahead(self.view, items)
            if isinstance(self.model, Rating):
                anew = {n for n in todo if n in log.rows and log.rows[n]["status"] in retry}
                yield from self._rated(self.model, items, RowLog(run.calls, forget=FORGET), anew)
            else:
                yield from self._scored(self.model, items)

        return rows

    def _scored(self, model: Scorer, items: Mapping[str, Sequence[Answer]]) -> Iterator[Row]:
        unasked: list[Row] = []
        waiting: dict[str, tuple[Answer, list[Score], int, int]] = {}
        owner: dict[str, str] = {}

        def groups() -> Iterator[Group]:
            for item_id, answers in items.items():
                queries = queries_of(self.looker, self.view, item_id, model.budget)
                if isinstance(queries, Verdict):
                    unasked.extend(_unasked(answers, queries))
                    continue
                for answer in answers:
                    waiting[answer.id] = (answer, [], len(queries), queries[0].dropped)
                for group in groups_of(answers, queries):
                    owner.update({a.id: given.id for a, given in zip(group.answers, answers, strict=True)})
                    yield group

        for score in model.score(groups()):
            name = owner.pop(score.answer_id)
            answer, found, draws, dropped = waiting[name]
            found.append(score)
            if len(found) == draws:
                del waiting[name]
                yield score_row(answer, found, dropped)
            while unasked:
                yield unasked.pop()
        yield from unasked
        for answer, _, _, dropped in waiting.values():
            yield score_row(answer, [Score(answer.id, "error", None, "the reward model gave no number")], dropped)

    def _rated(
        self, model: Rating, items: Mapping[str, Sequence[Answer]], calls: RowLog, anew: Collection[str]
    ) -> Iterator[Row]:
        unasked: list[Row] = []
        given: dict[str, tuple[Answer, list[Group]]] = {}

        def works() -> Iterator[Work]:
            for item_id, answers in items.items():
                queries = queries_of(self.looker, self.view, item_id, None)
                if isinstance(queries, Verdict):
                    unasked.extend(_unasked(answers, queries))
                    continue
                for answer in answers:
                    groups = groups_of([answer], queries)
                    given[answer.id] = answer, groups
                    asks = tuple(ask for group in groups for ask in model.asks(group))
                    yield Work(answer.id, asks, model.readable) if answer.id in anew else Work(answer.id, asks)

        for name, replies in gather(model.client, works(), calls):
            answer, groups = given.pop(name)
            scores = [score for group in groups for score in model.scores(group, replies)]
            tries = max((c.attempt for c in replies.values()), default=1)
            row = score_row(answer, scores, 0) | {"calls": sorted(replies)}
            yield row | ({"tries": tries} if tries > 1 else {})
        yield from unasked


def check_ranks(model: RewardModel, text: str) -> Scorer | Rating:
    """Return a model that can rank N answers.

    Raises:
        SpecError: it compares two.
    """
    if isinstance(model, AskedModel):
        if not isinstance(model, Rating):
            rest = text.partition("/")[2]
            raise SpecError(
                f"model '{text}': a judge compares two answers, best-of-N ranks many. Use rate/{rest.partition('?')[0]}"
            )
        return model
    return model


def score_row(answer: Answer, scores: Sequence[Score], dropped: int) -> dict[str, Any]:
    """Return the line of a sample: the mean over draws and repeats, or the status of a failure."""
    finite = [_finite(s) for s in scores]
    failed: list[Status] = [s.status for s in finite if s.status != "ok"]
    values = [s.value for s in finite if s.value is not None]
    return {
        "id": answer.id,
        "item_id": answer.item_id,
        "status": max(failed, key=STATUSES.index) if failed else "ok",
        "score": None if failed else sum(values) / len(values),
        "dropped": dropped,
        "notes": list(dict.fromkeys(s.note for s in finite if s.note)),
    }


def _finite(score: Score) -> Score:
    if score.value is None or isfinite(score.value):
        return score
    return Score(score.answer_id, "error", None, f"the model gave {score.value}, which is not a reward")


def _unasked(answers: Sequence[Answer], verdict: Verdict) -> list[Row]:
    note = "; ".join(verdict.notes)
    return [score_row(a, [Score(a.id, verdict.status, None, note)], 0) for a in answers]
