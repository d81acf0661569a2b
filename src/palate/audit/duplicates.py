"""Records that cannot be used, pairs that stand twice or contradict each other, answers that hardly differ."""

from collections.abc import Sequence

from palate.audit.base import WORST, Check, Figure, Worst, counted, excerpt, undefined
from palate.data.check import Repeated
from palate.data.problems import Problems
from palate.retrieval.bm25 import tokenize

ALIKE = 0.9
NO_PAIRS = "no pairs of chosen and rejected answers"
WHY_RECORDS = "A record with a fault (an id given twice, an empty answer, equal answers) is in no figure."
WHY_TWICE = "A pair that stands twice counts twice, and intervals come out too narrow."
WHY_OPPOSED = "The same user cannot want both: one of the two labels is wrong, and any model is wrong on one of them."
WHY_NEAR = "Answers with nine tenths of their words in common leave a taste hardly anything to choose by."


def nearness(chosen: str, rejected: str) -> float:
    """Return the share of the words of both answers that both have (Jaccard); 1 if neither has any."""
    one, other = set(tokenize(chosen)), set(tokenize(rejected))
    return len(one & other) / len(one | other) if one | other else 1.0


def duplicates(
    problems: Problems | int, items: int, repeated: Repeated, pairs: Sequence[tuple[str, float]]
) -> list[Check]:
    """Return the checks of records, repeated and contradictory pairs, and near-equal answers.

    Args:
        problems: what is wrong with records, or how many were left out before.
        items: how many records can be used.
        repeated: pairs of items with the same question and answers.
        pairs: (item, nearness of its answers).
    """
    near = sorted(((v, i) for i, v in pairs if v >= ALIKE), reverse=True)
    worst = tuple(Worst(i, f"{100 * v:.0f} % of their words in common") for v, i in near[:WORST])
    whole = counted("pairs", [i for _, i in near], len(pairs)) if pairs else undefined("pairs", NO_PAIRS)
    twice = _pairs("duplicates", "The same pair twice", repeated.again, len(pairs), WHY_TWICE)
    opposed = _pairs("contradictions", "The same pair with opposite labels", repeated.opposed, len(pairs), WHY_OPPOSED)
    alike = Check(
        "near_equal", "duplicates", "Answers that hardly differ", "count", whole, WHY_NEAR, high=0, worst=worst
    )
    return [_records(problems, items), twice, opposed, alike]


def _records(problems: Problems | int, items: int) -> Check:
    total = problems if isinstance(problems, int) else problems.total
    kept = [] if isinstance(problems, int) else problems.kept
    worst = tuple(Worst(p.where, excerpt(p.text)) for p in kept[:WORST])
    whole = Figure("records", items + total, total)
    return Check("records", "duplicates", "Records with faults", "count", whole, WHY_RECORDS, high=0, worst=worst)


def _pairs(name: str, title: str, found: Sequence[tuple[str, str]], n: int, why: str) -> Check:
    whole = counted("pairs", [second for _, second in found], n) if n else undefined("pairs", NO_PAIRS)
    worst = tuple(Worst(second, excerpt(f"and {first}")) for first, second in found[:WORST])
    return Check(name, "duplicates", title, "count", whole, why, high=0, worst=worst)
