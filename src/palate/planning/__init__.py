"""Planners: from a question and a user's ranked posts to the aspects this user probably wants, without the key."""

from palate.planning.base import Plan, Planner, Task
from palate.planning.book import PlanBook
from palate.planning.registry import make_planner

__all__ = ["Plan", "PlanBook", "Planner", "Task", "make_planner"]
