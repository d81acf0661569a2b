"""Many answers to one long prompt, the prompt encoded once: what classifiers and causal models share."""

from palate.rewards.prefix.engine import Engine, Limits, Why, sliding_window, tolerance_of, unused
from palate.rewards.prefix.plan import Bundle, Row, Text, bundle, chunks, packs

__all__ = [
    "Bundle",
    "Engine",
    "Limits",
    "Row",
    "Text",
    "Why",
    "bundle",
    "chunks",
    "packs",
    "sliding_window",
    "tolerance_of",
    "unused",
]
