"""Which weights are these? A model's folder, revision, content hash and size, without loading it. Lowest floor."""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

from palate.errors import MissingExtra, ModelError

ENDINGS = (".safetensors", ".bin")
_PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.py"]
_SETTINGS = (".json", ".jinja", ".model", ".txt", ".py")
_BLOB = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Weights:
    """A model on disk: `id` as the user knows it, hub `revision`, `parameters` if countable.

    `digest` is of the weight files, `settings` of the configuration and tokenizer files beside them.
    """

    id: str
    folder: Path
    revision: str | None
    digest: str
    settings: str
    parameters: int | None


def find_weights(name: str, revision: str | None, *, pickles: bool = False) -> Weights:
    """Return the weights of a folder, or of a hub model, which is fetched if it is not in the hub's cache.

    Args:
        name: a folder, or a hub id.
        revision: branch, tag or commit on the hub.
        pickles: fetch `.bin` files too.

    Raises:
        ModelError: no such folder or hub model, or no weights in it.
        MissingExtra: a hub id without the extra `hf`.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return Weights(folder.resolve().name, folder, None, *_content(folder, name))
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise ModelError(f"no model folder '{name}', and it is not a hub id (owner/name) either.")
    folder = _fetch(name, revision, pickles)
    return Weights(name, folder, folder.name, *_content(folder, name))


def _fetch(name: str, revision: str | None, pickles: bool) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise MissingExtra(f"the hub model '{name}'", "hf") from None
    patterns = [*_PATTERNS, "*.bin"] if pickles else _PATTERNS
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as bad:
        raise ModelError(f"model '{name}': no such folder, and the hub did not give it: {bad}") from bad


def _content(folder: Path, name: str) -> tuple[str, str, int | None]:
    files = sorted(p for p in folder.iterdir() if p.is_file())
    weights = [p for p in files if p.suffix in ENDINGS]
    if not weights:
        raise ModelError(f"model '{name}': no weights ({', '.join(ENDINGS)}) in {folder}.")
    settings = [p for p in files if p.suffix in _SETTINGS]
    return _digest(weights), _digest(settings), _parameters(folder)


def _digest(found: list[Path]) -> str:
    whole = hashlib.sha256()
    for path in found:
        whole.update(f"{path.name}\0{_hash(path)}\0".encode())
    return whole.hexdigest()


def _hash(path: Path) -> str:
    blob = path.resolve().name
    if path.is_symlink() and _BLOB.fullmatch(blob):
        return blob
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _parameters(folder: Path) -> int | None:
    """Return the number of values in the safetensors files, read from their headers."""
    found = list(folder.glob("*.safetensors"))
    total = 0
    for path in found:
        with path.open("rb") as handle:
            header = json.loads(handle.read(int.from_bytes(handle.read(8), "little")))
        total += sum(math.prod(t["shape"]) for name, t in header.items() if name != "__metadata__")
    return total if found else None
