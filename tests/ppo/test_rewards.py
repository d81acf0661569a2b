"""Rewards: groups by item, each number at its answer, and a failure that never pays."""

import math
import statistics
from collections.abc import Iterable, Iterator

import pytest

from palate.errors import ModelError, Stopped
from palate.ppo.curve import PANELS, Row, board_rows, draw, gain
from palate.ppo.reward import Completion, Rewards
from palate.records import Answer, Group, Query, Score
from ppo.parts import Ruled, constant, failed

QUERIES = {name: Query(name, "question", (), (), None) for name in ("a", "b", "c")}


def batch(*names: str, text: str = "x") -> list[Completion]:
    return [Completion(name, text * (k + 1), k + 1, k == 0) for k, name in enumerate(names)]


def by_length(answer: Answer) -> Score:
    return Score(answer.id, "ok", float(len(answer.text)))


def rewards(scorer: object, mask: bool = False, limit: float = 0.5) -> Rewards:
    return Rewards(scorer, QUERIES, mask, limit)  # type: ignore[arg-type]


def test_answers_to_one_question_are_one_group_and_each_number_comes_back_to_its_answer() -> None:
    scorer = Ruled(by_length)
    found = rewards(scorer)(batch("a", "b", "a", "c"))
    assert found == [1.0, 2.0, 3.0, 4.0]
    assert [(g.query.item_id, len(g.answers)) for g in scorer.groups] == [("a", 2), ("b", 1), ("c", 1)]


def test_a_tally_is_mean_and_deviation_of_what_was_scored() -> None:
    paying = rewards(Ruled(lambda a: failed(a) if len(a.text) == 1 else by_length(a)), mask=True)
    assert paying(batch("a", "a", "b", "b")) == [None, 2.0, 3.0, 4.0]
    tally = paying.take()
    assert (tally.n, tally.scored, tally.cut, dict(tally.failures)) == (4, 3, 1, {"error": 1})
    assert tally.reward == 3.0
    assert tally.reward_sd == statistics.stdev([2.0, 3.0, 4.0])
    assert tally.length == 2.5


def test_one_failure_stops_and_is_told_with_its_cause() -> None:
    with pytest.raises(Stopped, match=r"1 of 2 rewards failed; the first: error: out of order"):
        rewards(Ruled(lambda a: failed(a) if len(a.text) == 2 else by_length(a)))(batch("a", "b"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_a_failure_of_that_answer_alone(value: float) -> None:
    paying = rewards(Ruled(lambda a: Score(a.id, "ok", value if len(a.text) == 3 else 1.0)), mask=True)
    assert paying(batch("a", "b", "c")) == [1.0, 1.0, None]


class Wrong:
    """A scorer that answers for others, twice, or not at all."""

    name = "test/wrong"

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        for name in self._names:
            yield Score(name, "ok", 1.0)


@pytest.mark.parametrize("names", [("a@0", "z@9"), ("a@0", "a@0"), ("b@0",)])
def test_a_score_of_another_answer_or_a_second_one_ends_the_run(names: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match="not asked for"):
        rewards(Wrong(names), mask=True)(batch("a", "b"))


def test_no_score_at_all_is_a_failure() -> None:
    assert rewards(Wrong(["a@0"]), mask=True, limit=0.5)(batch("a", "b")) == [1.0, None]


def test_masking_stops_above_the_rate_of_the_last_steps_and_where_nothing_is_left() -> None:
    broken = {"from": 100}
    paying = rewards(Ruled(lambda a: failed(a) if len(a.text) > broken["from"] else by_length(a)), mask=True, limit=0.2)
    for _ in range(3):
        assert None not in paying(batch("a", "a", "b", "b"))
    broken["from"] = 3
    assert [paying(batch("a", "a", "b", "b"))[-1] for _ in range(3)] == [None] * 3
    with pytest.raises(Stopped, match=r"max_failure_rate = 0\.2"):
        [paying(batch("a", "a", "b", "b")) for _ in range(20)]
    with pytest.raises(Stopped, match="in this step 2 of 2"):
        rewards(Ruled(failed), mask=True, limit=1.0)(batch("a", "b"))


def rows_of(*steps: list[float]) -> list[Row]:
    found = []
    for k, values in enumerate(steps, 1):
        paying = rewards(Ruled(lambda a, v=values: Score(a.id, "ok", v[len(a.text) - 1])))  # type: ignore[misc]
        paying([Completion("a", "x" * (j + 1), 3, False) for j in range(len(values))])
        found.append({"id": str(k), "step": k, **paying.take().as_dict, "kl": 0.1 * k})
    return found


def test_the_gain_is_that_of_the_pooled_answers_of_both_ends() -> None:
    steps = [[0.1 * (j + k * k) for j in range(4)] for k in range(10)]
    found = gain(rows_of(*steps))
    first, last = steps[0] + steps[1], steps[-2] + steps[-1]
    assert found["value"] == pytest.approx(statistics.mean(last) - statistics.mean(first))
    expected = math.sqrt(statistics.variance(last) / 8 + statistics.variance(first) / 8)
    assert found["se"] == pytest.approx(expected)
    assert (found["n"], found["steps"]) == (8, 2)


def test_the_board_tells_what_is_undefined_and_why() -> None:
    rows = rows_of([1.0, 2.0], [2.0, 3.0])
    board = {r["metric"]: r for r in board_rows(rows, "m", {})}
    assert board["train/reward_gain"]["value"] == 1.0
    assert board["train/kl"]["value"] == pytest.approx(0.2)
    silent = {r["metric"]: r for r in board_rows([dict(r) | {"kl": None} for r in rows], "m", {})}
    assert silent["train/kl"]["value"] is None
    assert silent["train/kl"]["source"]["reason"] == "not measured"


def test_a_drawing_has_three_panels_and_is_the_same_each_time() -> None:
    rows = rows_of([1.0, 2.0], [2.0, 3.0])
    svg = draw(rows, "x")
    assert svg == draw(rows, "x")
    assert all(f">{label}<" in svg for label in (label for _, label in PANELS))
    assert "not measured" in draw([dict(r) | {"kl": None} for r in rows], "x")


def test_steps_are_whole_numbers() -> None:
    svg = draw(rows_of(*([9.0, 9.0] for _ in range(12))), "x")
    assert ">12<" in svg
    assert ">2.5<" not in svg


def test_a_constant_has_no_gain() -> None:
    assert constant(Answer("a", "a", "x", "response")).value == 0.5
    assert gain(rows_of([1.0, 1.0], [1.0, 1.0]))["value"] == 0.0
