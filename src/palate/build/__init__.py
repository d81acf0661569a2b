"""Building a benchmark: pairs written by a language model, put through gates, and laid out as a data set."""

from palate.build.api import Built, build, estimate, write_card
from palate.build.card import make_card
from palate.build.push import check_push, push

__all__ = ["Built", "build", "check_push", "estimate", "make_card", "push", "write_card"]
