"""Where data comes from: a data string becomes local JSON Lines parts that allow random access.

A `.jsonl` file is used in place. Every other form (JSON array, Parquet, the hub) is read once, record by record,
into a private temporary JSONL file, so that one reader serves them all.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from palate.data.lines import BadLine, iter_array
from palate.errors import DataError, MissingExtra, SpecError, did_you_mean
from palate.spec import Spec

ENDINGS = (".jsonl", ".json", ".parquet")
SAMPLES = {"sample": "test.jsonl", "sample:train": "train.jsonl"}
OPTIONS = ("config", "split", "invalid")


@dataclass(frozen=True, slots=True)
class Part:
    """One JSONL file to read: its path, the domain of records that name none, and the name told in errors.

    `spool` keeps a temporary file alive as long as the part is.
    """

    path: Path
    domain: str
    label: str
    unit: str = "line"
    spool: IO[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """All parts of one data string, its short name, and the hub revision if it has one."""

    name: str
    parts: tuple[Part, ...]
    revision: str | None = None


def parse(text: str) -> Spec:
    """Read a data string; only `hub:` has revisions."""
    spec = Spec.parse(text, "data", revisions=text.startswith("hub:"))
    return spec.only(OPTIONS, "data")


def locate(spec: Spec) -> Source:
    """Return the parts of `spec`.

    Raises:
        DataError: nothing there, an unknown ending, or a file that cannot be read at all.
        MissingExtra: Parquet or hub without the extra `hub`.
    """
    if spec.head in SAMPLES:
        path = Path(str(files("palate.data") / "sample" / SAMPLES[spec.head]))
        return Source(spec.head.replace(":", "-"), (Part(path, "all", spec.head),))
    if spec.head.startswith("hub:"):
        return _hub(spec)
    path = Path(spec.head).expanduser()
    if path.is_dir():
        return Source(path.resolve().name, tuple(_folder(path)))
    if not path.is_file():
        raise DataError(_not_found(spec.head))
    if path.suffix not in ENDINGS:
        raise DataError(f"{path}: the ending '{path.suffix}' is not known. Known: {', '.join(ENDINGS)}.")
    return Source(path.stem, (_part(path, "all", path.name),))


def _not_found(head: str) -> str:
    path = Path(head)
    near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    names = [*(str(path.parent / n) for n in near if n.endswith(ENDINGS)), *SAMPLES]
    hint = did_you_mean(head, names)
    return f"data: no file or folder '{head}'.{'' if hint.startswith(' Known') else hint}"


def _folder(folder: Path) -> Iterator[Part]:
    found = sorted(p for p in folder.rglob("*") if p.suffix in ENDINGS and p.is_file() and not p.name.startswith("."))
    if not found:
        raise DataError(f"{folder}: no file ending in {', '.join(ENDINGS)} in this folder.")
    for path in found:
        inner = path.relative_to(folder).parts[:-1]
        yield _part(path, inner[0] if inner else "all", str(path.relative_to(folder)))


def _part(path: Path, domain: str, label: str) -> Part:
    if path.suffix == ".jsonl":
        return Part(path, domain, label)
    rows = iter_array(path) if path.suffix == ".json" else _parquet(path)
    return spool(rows, domain, label)


def spool(rows: Iterable[Any], domain: str, label: str) -> Part:
    """Write `rows` to a temporary JSONL file and return it as a part."""
    handle = tempfile.NamedTemporaryFile(prefix="palate-", suffix=".jsonl")  # noqa: SIM115  (closed with the part)
    number = 0
    try:
        for row in rows:
            number += 1
            handle.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=str).encode() + b"\n")
    except BadLine as bad:
        handle.close()
        raise DataError(f"{label}: {bad}") from None
    except (ValueError, UnicodeError) as bad:
        handle.close()
        raise DataError(f"{label}: record {number}: {bad}") from None
    handle.flush()
    return Part(Path(handle.name), domain, label, "record", handle)


def _parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra(f"reading {path.name}", "hub") from None
    try:
        with ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=64):
                yield from batch.to_pylist()
    except (ArrowInvalid, OSError) as bad:
        raise DataError(f"{path}: not a readable Parquet file ({bad}).") from None


def _hub(spec: Spec) -> Source:
    try:
        import datasets
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtra("hub data", "hub") from None
    name = spec.head.removeprefix("hub:")
    if not name:
        raise SpecError("data 'hub:': an id is needed, as in hub:QiyaoMa/Personalized-RewardBench")
    split = spec.options.get("split", "test")
    try:
        revision = None if Path(name).is_dir() else HfApi().dataset_info(name, revision=spec.revision).sha
        chosen = spec.options.get("config")
        configs = [chosen] if chosen else datasets.get_dataset_config_names(name, revision=revision)
        parts = tuple(
            spool(
                datasets.load_dataset(name, config, split=split, revision=revision),
                "all" if config == "default" else config,
                f"{name}/{config}/{split}",
            )
            for config in configs
        )
    except (OSError, ValueError) as bad:
        if isinstance(bad, DataError):
            raise
        raise DataError(f"data '{spec}': the hub did not give it: {bad}") from bad
    return Source(Path(name).name if Path(name).is_dir() else name, parts, revision)
