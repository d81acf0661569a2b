"""Best-of-N: what reward models choose among N answers of a policy, and how well that serves the user."""

from palate.bon.api import BestOfN, best_of_n
from palate.bon.estimate import estimate_best_of_n
from palate.bon.job import Request

__all__ = ["BestOfN", "Request", "best_of_n", "estimate_best_of_n"]
