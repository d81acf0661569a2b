"""A reward model behind HTTP, for trainers and for `http/…`: groups are scored as in evaluation, failures are told.

    requests ─► bodies ─► desk ─► jobs ─► scoring (a thread) ─► desk ─► replies

A failed score is an error with a reason, never a number. Nothing is retrieved: the history is what the client ranked.
"""

from palate.serve.run import RewardServer, serve
from palate.serve.settings import Settings

__all__ = ["RewardServer", "Settings", "serve"]
