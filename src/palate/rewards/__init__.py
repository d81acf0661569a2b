"""Reward models: scorers give each answer a number."""

from palate.rewards.base import PairSource, Scorer
from palate.rewards.decide import decide
from palate.rewards.registry import families, open_model, register

__all__ = ["PairSource", "Scorer", "decide", "families", "open_model", "register"]
