"""PPO and its kin: a policy is trained by a reward model, and asked whether its answers got better.

In process with TRL: `train` (PPO, RLOO, GRPO) and `evaluate` (trained against untrained).
"""

from palate.ppo.evaluate import Judging, evaluate
from palate.ppo.settings import METHODS, Training
from palate.ppo.train import train

__all__ = ["METHODS", "Judging", "Training", "evaluate", "train"]
