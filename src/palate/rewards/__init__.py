"""Reward models: scorers give each answer a number, judges compare two."""

from palate.rewards.base import RewardModel, Scorer
from palate.rewards.decide import decide
from palate.rewards.judge.asked import AskedModel, Rating, Settled
from palate.rewards.registry import Setting, families, open_model, register

__all__ = [
    "AskedModel",
    "Rating",
    "RewardModel",
    "Scorer",
    "Setting",
    "Settled",
    "decide",
    "families",
    "open_model",
    "register",
]
