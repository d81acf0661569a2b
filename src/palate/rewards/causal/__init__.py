"""Causal language models as reward models: how likely they find an answer."""

from palate.rewards.causal.dpo import Dpo
from palate.rewards.causal.likelihood import Likelihood

__all__ = ["Dpo", "Likelihood"]
