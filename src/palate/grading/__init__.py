"""Gates: what an answer or a pair must pass to enter a benchmark. Not reward models; they may read the key."""

from palate.grading.gates import (
    ANSWER_GATES,
    FEWEST_WORDS,
    MOST_WORDS,
    PAIR_GATES,
    Around,
    Check,
    check_answer,
    check_pair,
)

__all__ = [
    "ANSWER_GATES",
    "FEWEST_WORDS",
    "MOST_WORDS",
    "PAIR_GATES",
    "Around",
    "Check",
    "check_answer",
    "check_pair",
]
