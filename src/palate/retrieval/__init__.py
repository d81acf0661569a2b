"""Ranking a user's posts for a question."""

from palate.retrieval.base import Ranked, Retriever, make_retriever, rank

__all__ = ["Ranked", "Retriever", "make_retriever", "rank"]
