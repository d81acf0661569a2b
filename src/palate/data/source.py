"""Where data comes from: a data string becomes local JSON Lines parts that allow random access.

A `.jsonl` file is used in place. Every other form (JSON array, Parquet, the hub) is read once, record by record,
into a private temporary JSONL file, so that one reader serves them all.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import IO, Any

from palate.data.lines import BadLine, iter_array
from palate.errors import DataError, MissingExtra, SpecError, did_you_mean
from palate.spec import Spec

ENDINGS = (".jsonl", ".json", ".parquet")
SAMPLES = {"sample": "test.jsonl", "sample:train": "train.jsonl"}
OPTIONS = ("config", "split", "invalid")
_SPLIT = re.compile(r"(train|test|validation|valid|val|dev)(?=[-_.]|$)", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{40}")


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

    def at(self, number: int) -> str:
        """Return the place of a line or record in words, as errors name it."""
        return f"{self.label}, {self.unit} {number}"


@dataclass(frozen=True, slots=True)
class Source:
    """All parts of one data string, its short name, the hub revision if it has one, and what was left aside."""

    name: str
    parts: tuple[Part, ...]
    revision: str | None = None
    notes: tuple[str, ...] = ()


def parse(text: str) -> Spec:
    """Read a data string; only `hub:` has revisions."""
    if not text.startswith("hub:") and text and Path(text).expanduser().exists():
        return Spec(text)  # a path that is there needs no escapes
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
        return _folder(path, spec.options.get("split", "test"))
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


def _folder(folder: Path, split: str) -> Source:
    """Return the files of a folder; where names begin with a split, as on the hub, only those of `split`.

    Beside such files one whose name tells no split counts as `test`.
    """
    inner = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.suffix in ENDINGS and p.is_file())
    shown = [p for p in inner if not any(name.startswith(".") for name in p.parts)]
    if not shown:
        raise DataError(f"{folder}: no file ending in {', '.join(ENDINGS)} in this folder.")
    named = {p: found[1].lower() for p in shown if (found := _SPLIT.match(p.stem))}
    splits = {p: named.get(p, "test" if named else split) for p in shown}
    kept = [p for p in shown if splits[p] == split]
    if not kept:
        raise DataError(f"{folder}: no file of split '{split}'. Splits: {', '.join(sorted(set(splits.values())))}.")
    others = sorted(str(p) for p in shown if splits[p] != split)
    notes = [f"files of other splits are not used: {', '.join(others)}"] if others else []
    foreign = sorted(p.name for p in folder.iterdir() if p.is_file() and p.suffix not in (*ENDINGS, ".md"))
    notes += [f"files of other kinds are not read: {', '.join(foreign)}"] if foreign else []
    return Source(folder.resolve().name, tuple(_inner(folder, p) for p in kept), notes=tuple(notes))


def _inner(folder: Path, path: Path) -> Part:
    config = path.parts[0] if len(path.parts) > 1 else "data"
    return _part(folder / path, "all" if config == "data" else config, str(path))


def _part(path: Path, domain: str, label: str) -> Part:
    if path.suffix == ".jsonl":
        return Part(path, domain, label)
    rows = _array(path) if path.suffix == ".json" else map(_written, _parquet(path))
    return spool(rows, domain, label)


def spool(rows: Iterable[str], domain: str, label: str) -> Part:
    """Write records to a temporary JSONL file, one a line and as they are, and return it as a part."""
    handle = tempfile.NamedTemporaryFile(prefix="palate-", suffix=".jsonl")  # noqa: SIM115  (closed with the part)
    try:
        for row in rows:
            handle.write(row.encode() + b"\n")
    except BadLine as bad:
        handle.close()
        raise DataError(f"{label}: {bad}") from None
    handle.flush()
    return Part(Path(handle.name), domain, label, "record", handle)


def _array(path: Path) -> Iterator[str]:
    return (text.replace("\n", " ") for text in iter_array(path))


def _written(row: Any) -> str:
    """Return a row as JSON; NaN and lone surrogates stay, for the reader of lines to find and name."""
    return json.dumps(row, default=str)


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
        from datasets.exceptions import DatasetsError
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        raise MissingExtra("hub data", "hub") from None
    name = spec.head.removeprefix("hub:")
    if not name:
        raise SpecError("data 'hub:': an id is needed, as in hub:QiyaoMa/Personalized-RewardBench")
    local = Path(name).is_dir()
    try:
        pinned = spec.revision if spec.revision and _COMMIT.fullmatch(spec.revision) else None
        revision = None if local else pinned or HfApi().dataset_info(name, revision=spec.revision).sha
        chosen = spec.options.get("config")
        configs = [chosen] if chosen else datasets.get_dataset_config_names(name, revision=revision)
        # the library knows a local folder by its name alone, so its cache may hold what stood there before
        anew = {"download_mode": "force_redownload"} if local else {}
        tables = {c: datasets.load_dataset(name, c, revision=revision, **anew) for c in configs}
    # the bases of the hub's error hold those of its HTTP library, whichever that is
    except (*HfHubHTTPError.__bases__, DatasetsError, OSError, ValueError) as bad:
        raise DataError(f"data '{spec}': the hub did not give it: {bad}") from bad
    split = spec.options.get("split", "test")
    parts = tuple(_hub_part(splits, config, split, f"{name}/{config}") for config, splits in tables.items())
    return Source(Path(name).name if local else name, parts, revision)


def _hub_part(splits: Mapping[str, Any], config: str, split: str, label: str) -> Part:
    """Return one configuration as a part: its split, or all of them if each record names the split it is of."""
    if all(name in table.column_names for table in splits.values() for name in ("user_id", "context", "split")):
        chosen: list[Any] = list(splits.values())
    elif split in splits:
        chosen, label = [splits[split]], f"{label}/{split}"
    else:
        raise DataError(f"{label}: no split '{split}'.{did_you_mean(split, splits)} Choose one: ?split=…")
    return spool(map(_written, chain.from_iterable(chosen)), "all" if config == "default" else config, label)
