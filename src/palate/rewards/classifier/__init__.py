"""Scalar reward models: any sequence classifier that transformers can load, from a folder or the hub."""

from palate.rewards.classifier.scorer import Classifier

__all__ = ["Classifier"]
