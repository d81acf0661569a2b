"""Beyond one machine: reward models and dense retrieval on the workers of a Ray cluster; the driver alone writes."""

from palate.cluster.join import Cluster, joined
from palate.cluster.place import Place
from palate.cluster.spread import SpreadRetriever, SpreadScorer, spread_model, spread_retriever

__all__ = ["Cluster", "Place", "SpreadRetriever", "SpreadScorer", "joined", "spread_model", "spread_retriever"]
