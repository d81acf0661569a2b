"""Who writes and who judges: model strings, how they sample, and what may not judge what."""

from dataclasses import dataclass
from typing import Any

from palate.errors import SpecError
from palate.grading.judged import Sampling
from palate.llm.client import Client, Spending
from palate.llm.served import SERVER_OPTIONS, endpoint_of, temperature_of
from palate.llm.transport import Told
from palate.rewards.judge.kin import kinship
from palate.spec import Spec

WRITER, JUDGE = "generator", "judge"
OPTIONS = ("max_tokens", "temperature", *SERVER_OPTIONS)
ROOM = {WRITER: 2048, JUDGE: 1024}
TEMPERATURE = {WRITER: "1", JUDGE: "0"}


@dataclass(frozen=True, slots=True)
class Model:
    """A served model in its role."""

    role: str
    client: Client
    how: Sampling

    @property
    def identity(self) -> dict[str, Any]:
        """Model and sampling; not the server's address."""
        return {"model": self.how.model, "max_tokens": self.how.max_tokens, "temperature": self.how.temperature}


def open_served(text: str, role: str, base_url: str | None, spending: Spending, told: Told | None) -> Model:
    """Return the model that `<model>[?base_url=…&max_tokens=…&temperature=…]` names; `llm/` before it is allowed.

    Raises:
        SpecError: an unknown option.
        MissingExtra: the library for servers is not installed.
    """
    spec = Spec.parse(text, role).only(OPTIONS, role)
    name = spec.head.removeprefix("llm/")
    sampled = {"temperature": TEMPERATURE[role], **spec.options}
    spec = Spec(f"llm/{name}", spec.revision, sampled)
    room = spec.whole("max_tokens", ROOM[role], role, least=1)
    client = Client(endpoint_of(spec, base_url, role), spending, told)
    return Model(role, client, Sampling(client.endpoint.model, room, temperature_of(spec, role)))


def check_judge(writer: str, judge: str) -> str | None:
    """Return a warning if writer and judge are of one family.

    Raises:
        SpecError: they are the same model.
    """
    if _bare(writer) == _bare(judge):
        raise SpecError(f"judge '{judge}': it would judge its own answers. Name another model than the generator.")
    return kinship(judge, {writer})


def _bare(name: str) -> str:
    """Return a model's name without who offers it."""
    return name.casefold().rpartition("/")[2]
