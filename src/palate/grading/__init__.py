"""Grading answers on the true aspects of their items, which only a grader may see."""

from palate.grading.aspects import Grader, make_grader
from palate.grading.folder import folder_name, make_grades, pending
from palate.grading.grade import Grade, Task, grade_id

__all__ = ["Grade", "Grader", "Task", "folder_name", "grade_id", "make_grader", "make_grades", "pending"]
