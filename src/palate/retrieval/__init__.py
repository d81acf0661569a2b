"""Ranking a user's posts for a question."""

from palate.retrieval.base import Ask, ManyRetriever, Ranked, Retriever, in_order, make_retriever, rank

__all__ = ["Ask", "ManyRetriever", "Ranked", "Retriever", "in_order", "make_retriever", "rank"]
