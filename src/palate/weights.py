"""Which weights are these, and how are they loaded safely? Folder, revision, content hash, size. Lowest floor."""

import hashlib
import json
import math
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from palate.errors import MissingExtra, ModelError

ENDINGS = (".safetensors", ".bin")
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length")
COUNT_FROM_PAD = (
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "roberta-prelayernorm",
    "camembert",
    "longformer",
    "mpnet",
)
_PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.py"]
_SETTINGS = (".json", ".jinja", ".model", ".txt", ".py")
_BLOB = re.compile(r"[0-9a-f]{64}")
PICKLES_OFF = (
    "it has only pickled weights (.bin), which are off because loading them can run code.\n"
    "?pickle=allow reads them with torch's weights-only loader."
)


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
        pickles: fetch `.bin` files if there are no safetensors.

    Raises:
        ModelError: no such folder or hub model, no weights in it, or a revision of a folder.
        MissingExtra: a hub id without the extra `hf`.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if revision:
            raise ModelError(f"model '{name}@{revision}': '{name}' is a folder here, and a folder has no revisions.")
        return Weights(folder.resolve().name, folder, None, *_content(folder, name))
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise ModelError(f"no model folder '{name}', and it is not a hub id (owner/name) either.")
    folder = _fetch(name, revision, _PATTERNS)
    if pickles and not _weight_files(folder):
        folder = _fetch(name, revision, [*_PATTERNS, "*.bin"])
    if not pickles and not _weight_files(folder):
        raise ModelError(f"model '{name}': no safetensors on the hub; perhaps {PICKLES_OFF}")
    return Weights(name, folder, folder.name, *_content(folder, name))


@dataclass(frozen=True, slots=True)
class Settings:
    """The files beside a model's weights: configuration and tokenizer. `digest` is of their content."""

    id: str
    folder: Path
    revision: str | None
    digest: str


def find_settings(name: str, revision: str | None) -> Settings:
    """Return the configuration and tokenizer files of a folder or a hub model, without its weights.

    Raises:
        ModelError: no such folder or hub model.
        MissingExtra: a hub id without the extra `hf`.
    """
    folder = Path(name).expanduser()
    if folder.is_dir() and not revision:
        return Settings(folder.resolve().name, folder, None, _digest(_setting_files(folder)))
    if folder.is_dir() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise ModelError(f"tokenizer '{name}': no such folder, and it is not a hub id (owner/name) either.")
    folder = _fetch(name, revision, [p for p in _PATTERNS if p not in ("*.safetensors", "*.py")])
    return Settings(name, folder, folder.name, _digest(_setting_files(folder)))


def _fetch(name: str, revision: str | None, patterns: list[str]) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise MissingExtra(f"the hub model '{name}'", "hf") from None
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as bad:
        raise ModelError(f"model '{name}': no such folder, and the hub did not give it: {bad}") from bad


@contextmanager
def loading(explain: Callable[[str], str]) -> Iterator[None]:
    """Keep transformers' own output back and turn what can go wrong with a stranger's files into one message.

    Args:
        explain: makes the message of the error's text, its first 500 characters.

    Raises:
        ModelError: the model cannot be loaded.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, ImportError, RuntimeError, pickle.UnpicklingError, SafetensorError) as bad:
        raise ModelError(explain(shorten(str(bad), 500, placeholder=" …"))) from bad
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _content(folder: Path, name: str) -> tuple[str, str, int | None]:
    weights = _weight_files(folder)
    if not weights:
        raise ModelError(f"model '{name}': no weights ({', '.join(ENDINGS)}) in {folder}.")
    parameters = _parameters(weights, name)
    return _digest(weights), _digest(_setting_files(folder)), parameters


def _setting_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.suffix in _SETTINGS)


def _weight_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.suffix in ENDINGS)


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


def _parameters(weights: list[Path], name: str) -> int | None:
    """Return the number of values in the safetensors files, or None if there are none."""
    found = [_values(path, name) for path in weights if path.suffix == ".safetensors"]
    return sum(found) if found else None


def _values(path: Path, name: str) -> int:
    """Return the number of values in a safetensors file, read from its header."""
    with path.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        header = handle.read(min(length, path.stat().st_size))
    try:
        tensors = json.loads(header)
        return sum(math.prod(tensors[t]["shape"]) for t in tensors if t != "__metadata__")
    except (ValueError, TypeError, KeyError):
        raise ModelError(
            f"model '{name}': {path.name} is not a safetensors file: damaged, or a Git LFS pointer not yet fetched."
        ) from None


def positions_of(config: Mapping[str, Any]) -> int | None:
    """Return the positions a model has; RoBERTa and its kin count theirs from behind the pad id."""
    text = config.get("text_config", config)
    sizes = [text.get(name) for name in POSITIONS if isinstance(text.get(name), int)]
    offset = text.get("pad_token_id", 1) + 1 if text.get("model_type") in COUNT_FROM_PAD else 0
    return min(sizes) - offset if sizes else None
