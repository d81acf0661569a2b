"""The policy: a language model behind a server that writes N answers to each question, each with a seed of its own."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from palate.bon.samples import sample_id, sample_row
from palate.data import Dataset
from palate.errors import SpecError
from palate.llm.client import Ask, Client, Spending
from palate.llm.served import SERVER_OPTIONS, endpoint_of
from palate.llm.transport import Told
from palate.records import Message
from palate.retrieval import Retriever
from palate.retrieval.base import K
from palate.spec import Spec
from palate.views import PROMPT_DIGESTS, Looker, NoContext, View

TEMPERATURE, TOP_P, ROOM = 1.0, 0.9, 512
OPTIONS = ("k", "max_tokens", "seed", "temperature", "top_p", "view")
WHAT = "policy"


class Policy:
    """`llm/<model>[?temperature=1.0&top_p=0.9&max_tokens=512&view=question|history&k=10&seed=0]`.

    Raises:
        SpecError: another family, an unknown option or a value that cannot be.
        MissingExtra: the extra `llm` is not installed.
    """

    def __init__(self, text: str, base_url: str | None, spending: Spending, told: Told | None) -> None:
        spec = Spec.parse(text, WHAT)
        family, _, rest = spec.head.partition("/")
        if family != "llm" or not rest:
            raise SpecError(f"policy '{text}': write llm/<model>, the name that its server knows it by.")
        spec.only((*OPTIONS, *SERVER_OPTIONS), WHAT)
        self.client = Client(endpoint_of(spec, base_url, WHAT), spending, told)
        name = spec.choice("view", ("question", "history"), "question", WHAT)
        if name == "question" and "k" in spec.options:
            raise SpecError(f"policy '{spec}': k is the number of posts under view=history.")
        k = spec.whole("k", K, WHAT, least=1)
        self.view = View.parse(name if name == "question" else f"history?k={k}")
        self._seed = spec.whole("seed", 0, WHAT)
        self._temperature = _number(spec, "temperature", TEMPERATURE, 2.0)
        self._top_p = _number(spec, "top_p", TOP_P, 1.0)
        self._room = spec.whole("max_tokens", ROOM, WHAT, least=1)

    @property
    def name(self) -> str:
        """The model as its server knows it."""
        return self.client.endpoint.model

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the samples: model, sampling and what it is shown; not the server's address."""
        return {
            "family": "llm",
            "id": self.name,
            "temperature": self._temperature,
            "top_p": self._top_p,
            "max_tokens": self._room,
            "seed": self._seed,
            "view": str(self.view),
            "prompts": PROMPT_DIGESTS if self.view.name != "question" else {},
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions and the server, its address without secrets; `left_out` is what it would not take."""
        found = {name: version(name) for name in ("palate", "openai")}
        return {**found, "base_url": self.client.endpoint.shown, "left_out": self.client.left_out}

    def rows(
        self, data: Dataset, ranker: Retriever | None, todo: Sequence[tuple[str, int]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the row of each sample, given as item and place, in the order in which replies come back.

        A sample that was cut at the limit of tokens is what the policy says within that limit; it is not tried again.
        """
        looker = Looker(data, ranker)
        looker.ahead(self.view, dict.fromkeys(item_id for item_id, _ in todo))
        places = {sample_id(*one): one for one in todo}
        for call in self.client.ask(self._asks(looker, todo)):
            yield sample_row(*places[call.key], call, self.name, str(self.view), self.seed_of(*places[call.key]))

    def seed_of(self, item_id: str, place: int) -> int:
        """Return the seed of one sample, which neither order nor number of the others changes."""
        text = f"{self._seed}\0{item_id}\0{place}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1

    def _asks(self, looker: Looker, todo: Sequence[tuple[str, int]]) -> Iterator[Ask]:
        shown: tuple[str, tuple[Message, ...]] = ("", ())
        for item_id, place in todo:
            if shown[0] != item_id:
                query = looker.query(item_id, self.view)
                assert not isinstance(query, NoContext), "the own question and posts are always there"
                shown = item_id, query.messages
            yield Ask(
                key=sample_id(item_id, place),
                item_id=item_id,
                messages=shown[1],
                max_tokens=self._room,
                temperature=self._temperature,
                top_p=self._top_p,
                seed=self.seed_of(item_id, place),
            )


def _number(spec: Spec, key: str, default: float, most: float) -> float:
    text = spec.options.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most or (key == "top_p" and value == 0):
        raise SpecError(f"policy '{spec}': {key} must be a number from 0 to {most:g}, not {text!r}.")
    return value
