"""The options of `http/…`: where the server is, and what of its answers counts."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from palate.errors import SpecError
from palate.llm.secrets import mask, masked_spec
from palate.llm.transport import Endpoint
from palate.spec import Spec, server_address

APIS = ("auto", "palate", "vllm", "sglang")
KNOWN = ("api", "key_env", "label", "model", "parallel", "room", "timeout", "tokenizer", "window")
KEY = "PALATE_HTTP_KEY"
TIMEOUT = 120
RETRIES = 8


@dataclass(frozen=True, slots=True)
class Options:
    """Where to ask and how. `id` is the address without anything secret; `window` and `room` are in tokens."""

    id: str
    endpoint: Endpoint
    api: str
    model: str | None
    label: int | None
    tokenizer: str | None
    window: int | None
    room: int | None
    parallel: int | None

    @classmethod
    def from_spec(cls, spec: Spec) -> "Options":
        """Read `http/<host:port[/path]>` or `http/https://<host>[/path]`, with options.

        Raises:
            SpecError: no address, or an unknown option or value; nothing secret is shown.
        """
        url, shown, what = _url(server_address(spec)), masked_spec(spec), "model"
        shown.only(KNOWN, what)
        if not urlsplit(url).hostname:
            raise SpecError(f"model '{shown}': an address is needed, such as http/localhost:8000.")
        return cls(
            id=shown.head.partition("/")[2],
            endpoint=Endpoint(
                model=shown.head,
                base_url=url,
                key_env=spec.options.get("key_env", KEY),
                read_seconds=float(shown.whole("timeout", TIMEOUT, what, least=1)),
                retries=RETRIES,
            ),
            api=shown.choice("api", APIS, "auto", what),
            model=spec.options.get("model"),
            label=shown.whole("label", None, what),
            tokenizer=spec.options.get("tokenizer"),
            window=shown.whole("window", None, what, least=8),
            room=shown.whole("room", None, what, least=1),
            parallel=shown.whole("parallel", None, what, least=1),
        )

    def hide(self, text: str) -> str:
        """Return `text` without key and secrets of the address."""
        return mask(text, *self.endpoint.secrets)


def _url(address: str) -> str:
    return address if "://" in address else f"http://{address}"
