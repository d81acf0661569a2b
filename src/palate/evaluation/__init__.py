"""The main job: reward models × views on one data set, each pair of them a run in a folder of its own."""

from palate.evaluation.api import Evaluation, Run, estimate, evaluate
from palate.evaluation.measure import measure
from palate.evaluation.run import Progress

__all__ = ["Evaluation", "Progress", "Run", "estimate", "evaluate", "measure"]
