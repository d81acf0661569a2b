"""What may read the key: gates that an answer or a pair must pass, and the grader of answers on their true aspects.

Neither is a reward model.
"""

from palate.grading.aspects import Grader, make_grader
from palate.grading.folder import folder_name, make_grades, pending
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
from palate.grading.grade import Grade, Task, grade_id

__all__ = [
    "ANSWER_GATES",
    "FEWEST_WORDS",
    "MOST_WORDS",
    "PAIR_GATES",
    "Around",
    "Check",
    "Grade",
    "Grader",
    "Task",
    "check_answer",
    "check_pair",
    "folder_name",
    "grade_id",
    "make_grader",
    "make_grades",
    "pending",
]
