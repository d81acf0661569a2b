"""The served model's tokenizer, for servers that apply no chat template, or whose template is not to be trusted."""

from dataclasses import dataclass
from typing import Any

from palate.errors import MissingExtra
from palate.rewards.local.encode import Encoder
from palate.spec import Spec
from palate.weights import Settings, find_settings, loading


@dataclass(frozen=True, slots=True)
class Local:
    """An encoder and what is recorded of the files it was made of."""

    encoder: Encoder
    files: Settings

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the tokens; no path."""
        return {"id": self.files.id, "revision": self.files.revision, "settings": self.files.digest, "template": "chat"}


def load_local(text: str) -> Local:
    """Return the tokenizer of a folder or hub id[@revision].

    Raises:
        ModelError: it cannot be loaded, or has no chat template.
        MissingExtra: without the extra `hf`.
    """
    spec = Spec.parse(text, "tokenizer")
    files = find_settings(spec.head, spec.revision)
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingExtra("?tokenizer=", "hf") from None
    with loading(lambda cause: f"tokenizer '{files.id}': cannot be loaded: {cause}"):
        tokenizer = AutoTokenizer.from_pretrained(files.folder, trust_remote_code=False)
    return Local(Encoder(tokenizer, "chat", files.id), files)
