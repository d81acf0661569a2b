"""Reward models behind a server: Palate's own, vLLM or SGLang."""

from palate.rewards.http.scorer import HttpScorer

__all__ = ["HttpScorer"]
