"""From scores to a verdict. Pure, so that deciding again is grading again."""

from collections.abc import Sequence

from palate.records import STATUSES, Outcome, Score, Status, Verdict


def decide(item_id: str, chosen: Sequence[Score], rejected: Sequence[Score]) -> Verdict:
    """Return the verdict on one pair: the higher score wins, equal scores are a tie.

    Args:
        item_id: the pair's item.
        chosen: scores of the chosen answer, one a draw; their mean counts.
        rejected: scores of the rejected answer, same draws.

    Any score without a number gives the pair that score's status; of several, the one that comes last in `STATUSES`.
    """
    scores = [*chosen, *rejected]
    failed: list[Status] = [s.status for s in scores if s.status != "ok"]
    notes = tuple(dict.fromkeys(s.note for s in scores if s.note))
    if failed:
        return Verdict(item_id, max(failed, key=STATUSES.index), None, notes=notes)
    up, down = _mean(chosen), _mean(rejected)
    outcome: Outcome = "tie" if up == down else "correct" if up > down else "wrong"
    return Verdict(item_id, "ok", outcome, up, down, notes=notes)


def _mean(scores: Sequence[Score]) -> float:
    values = [s.value for s in scores if s.value is not None]
    return sum(values) / len(values)
