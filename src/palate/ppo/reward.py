"""From answers of the policy to rewards: a failed score has a status and pays nothing, and too many stop the run."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

from palate.errors import ModelError, Stopped
from palate.records import Answer, Group, Query, Score
from palate.rewards import Scorer

WINDOW = 10


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of the policy: `tokens` long; `cut` if it reached the longest length without an end."""

    item_id: str
    text: str
    tokens: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Tally:
    """One step's answers: mean and standard deviation of the `scored` rewards, mean length in tokens."""

    n: int
    scored: int
    reward: float | None
    reward_sd: float | None
    length: float
    cut: int
    failures: Mapping[str, int]

    @property
    def as_dict(self) -> dict[str, Any]:
        """The fields of a curve's row."""
        return {
            "n": self.n,
            "scored": self.scored,
            "reward": self.reward,
            "reward_sd": self.reward_sd,
            "length": self.length,
            "cut": self.cut,
            "failures": dict(self.failures),
        }


class Rewards:
    """Scores a step's answers, those to one question as one group.

    Args:
        scorer: the reward model.
        queries: what it reads of each item.
        mask: give None for a failed score, instead of stopping at the first.
        max_failure_rate: the share of failures over the last ten steps from which on masking stops too.
    """

    def __init__(self, scorer: Scorer, queries: Mapping[str, Query], mask: bool, max_failure_rate: float) -> None:
        self._scorer = scorer
        self._queries = queries
        self._mask = mask
        self._limit = max_failure_rate
        self._recent: deque[tuple[int, int]] = deque(maxlen=WINDOW)
        self._tally: Tally | None = None

    def __call__(self, completions: Sequence[Completion]) -> list[float | None]:
        """Return a reward for each answer, in order; None for one that failed and is to be masked.

        Raises:
            Stopped: a reward failed, or too many did; none of this step's rewards is used.
            ModelError: scores of answers that were not asked about, or two of one.
        """
        scores = self._scores(completions)
        failed = [s for s in scores if s.value is None]
        self._recent.append((len(failed), len(scores)))
        if failed:
            self._judge_failures(failed, len(scores))
        self._tally = _tally(completions, scores)
        return [s.value for s in scores]

    def take(self) -> Tally:
        """Return the tally of the answers scored last."""
        assert self._tally is not None, "nothing has been scored since"
        found, self._tally = self._tally, None
        return found

    def _scores(self, completions: Sequence[Completion]) -> list[Score]:
        names = [f"{c.item_id}@{place}" for place, c in enumerate(completions)]
        members: dict[str, list[Answer]] = {}
        for name, c in zip(names, completions, strict=True):
            members.setdefault(c.item_id, []).append(Answer(name, c.item_id, c.text, "response"))
        groups = [Group(self._queries[item_id], tuple(answers)) for item_id, answers in members.items()]
        expected, found = set(names), dict[str, Score]()
        for score in self._scorer.score(groups):
            if score.answer_id not in expected or score.answer_id in found:
                raise ModelError(
                    f"reward model '{self._scorer.name}': a score for '{score.answer_id}', which was not asked for or "
                    "came before. Rewards could land on wrong answers, so nothing of this step is used."
                )
            found[score.answer_id] = _finite(score)
        none = [Score(name, "error", None, "the reward model gave no number") for name in names]
        return [found.get(name, lost) for name, lost in zip(names, none, strict=True)]

    def _judge_failures(self, failed: Sequence[Score], n: int) -> None:
        cause = f"{failed[0].status}: {failed[0].note or 'no cause given'}"
        if not self._mask:
            raise Stopped(
                f"{len(failed)} of {n} rewards failed; the first: {cause}\nNothing of this step was used. The same "
                'command goes on from the last checkpoint; rloo and grpo can mask failures: on_failure = "mask".'
            )
        lost, asked = sum(a for a, _ in self._recent), sum(b for _, b in self._recent)
        if len(failed) == n or lost / asked > self._limit:
            raise Stopped(
                f"{lost} of the last {asked} rewards failed ({100 * lost / asked:.1f} %; max_failure_rate = "
                f"{self._limit:g}); in this step {len(failed)} of {n}, the first: {cause}\nNothing of this step was "
                "used. The same command goes on from the last checkpoint."
            )


def _finite(score: Score) -> Score:
    if score.value is None or isfinite(score.value):
        return score
    return Score(score.answer_id, "error", None, f"the model gave {score.value}, which is not a reward")


def _tally(completions: Sequence[Completion], scores: Sequence[Score]) -> Tally:
    values = [s.value for s in scores if s.value is not None]
    mean = sum(values) / len(values) if values else None
    sd = None
    if mean is not None and len(values) > 1:
        sd = sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    length = sum(c.tokens for c in completions) / len(completions)
    failures: Counter[str] = Counter(s.status for s in scores if s.value is None)
    return Tally(len(scores), len(values), mean, sd, length, sum(c.cut for c in completions), failures)
