"""Reward models that run here, from a folder or the hub: what all of them share."""

from palate.rewards.local.encode import Encoder
from palate.rewards.local.options import Options
from palate.rewards.local.scorer import CHECK, LocalScorer

__all__ = ["CHECK", "Encoder", "LocalScorer", "Options"]
