"""Named sets of settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from palate.errors import SpecError, did_you_mean
from palate.retrieval import Retriever
from palate.retrieval.base import POOLING
from palate.views import View


@dataclass(frozen=True, slots=True)
class Protocol:
    """Settings that a name stands for.

    `retriever` is the default, `allowed` are the kinds that may replace it; `k` is fixed if given; `headline` is the
    accuracy shown first.
    """

    name: str
    retriever: str
    allowed: tuple[str, ...]
    k: int | None
    headline: str
    pooling: str | None = None
    orders: str | None = None

    def retriever_for(self, asked: str | None, views: Sequence[View]) -> str:
        """Return the retriever to use.

        Raises:
            SpecError: what is asked for contradicts the protocol.
        """
        chosen = asked or self.retriever
        kind = chosen.partition("/")[0].partition("?")[0].partition("@")[0]
        if self.allowed and kind not in self.allowed:
            raise SpecError(f"protocol '{self.name}' ranks with {' or '.join(self.allowed)}, not '{chosen}'.")
        wrong = [str(v) for v in views if v.reads_posts and self.k not in (None, v.k)]
        if wrong:
            raise SpecError(f"protocol '{self.name}' shows k = {self.k} posts, not view '{wrong[0]}'.")
        return chosen

    def model_string(self, text: str) -> str:
        """Return a model string with the protocol's settings: the paper's judges see one seeded order."""
        if self.orders is None or not text.startswith("judge/") or "orders=" in text:
            return text
        return f"{text}{'&' if '?' in text else '?'}orders={self.orders}"

    def check(self, retriever: Retriever | None) -> None:
        """Make sure that a retriever ranks as the protocol says, stored rankings too.

        Raises:
            SpecError: it does not.
        """
        if self.pooling and retriever is not None and retriever.identity.get("pooling") != self.pooling:
            made = retriever.identity.get("id")
            raise SpecError(f"protocol '{self.name}' needs dense rankings; these were made by '{made}'.")


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        "palate": Protocol("palate", "bm25", (), None, "accuracy"),
        "paper": Protocol("paper", "dense", ("dense", "stored"), 10, "strict_accuracy", POOLING, "one"),
    }
)


def find_protocol(name: str) -> Protocol:
    """Return the protocol of that name.

    Raises:
        SpecError: there is none.
    """
    if name not in PROTOCOLS:
        raise SpecError(f"protocol '{name}': unknown.{did_you_mean(name, PROTOCOLS)}")
    return PROTOCOLS[name]
