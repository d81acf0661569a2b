"""A study as a folder: frozen configuration, the book of answers, the secret that makes links."""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from palate.annotate.assign import first_seat, in_order, share_out
from palate.annotate.book import Book, now
from palate.annotate.links import Links
from palate.annotate.sheets import Source, make_sheets, open_pairs, read_attention
from palate.errors import PalateError, RunError, SpecError
from palate.retrieval import make_retriever
from palate.store import RunFolder
from palate.store.folder import LOCK

STUDY, BOOK = "study.json", "study.db"
DEFAULTS: Mapping[str, Any] = {"overlap": 3, "limit": None, "attention": None, "seed": 0, "retriever": "bm25", "k": 10}
LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a study is asked to be; None takes the default of a new study, or what the study already is."""

    data: str | None = None
    overlap: int | None = None
    limit: int | None = None
    attention: str | None = None
    seed: int | None = None
    retriever: str | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        for name in ("overlap", "limit", "k"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} must be at least 1, not {value}.")

    def given(self) -> dict[str, Any]:
        """Return what was said."""
        return {n: getattr(self, n) for n in self.__dataclass_fields__ if getattr(self, n) is not None}


@dataclass(frozen=True, slots=True)
class Study:
    """An open study. Made by `open_study`."""

    folder: Path
    config: Mapping[str, Any]
    book: Book
    links: Links
    added: tuple[str, ...]


def study_book(folder: Path) -> Path:
    """Return the path of a study's answers.

    Raises:
        RunError: there is no study in `folder`.
    """
    if not (folder / STUDY).is_file() or not (folder / BOOK).is_file():
        raise RunError(f"{folder}: no study. Make one: palate annotate serve --data … --out {folder} --annotators …")
    return folder / BOOK


@contextmanager
def open_study(
    folder: Path | str,
    wanted: Wanted | None = None,
    annotators: Sequence[str] = (),
    *,
    seen: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Study]:
    """Open a study, or make it, and hold its lock; names that are not in it yet are added.

    Args:
        folder: of the study.
        wanted: what it should be; of a study that exists nothing can change.
        annotators: names; those who are in it keep their items, whoever is new gets what is short of annotators.
        seen: told how many items are ready, of how many, while a new study is made.

    Raises:
        RunError: a study with another configuration, in use by another process, or damaged.
        DataError, SpecError: data or options that make no study.
    """
    path, wanted = Path(folder), wanted or Wanted()
    names = _names(annotators)
    fresh = None if (path / STUDY).exists() else _new_config(path, wanted, names)
    with RunFolder(path) as held:
        config = _config(held, fresh, wanted)
        book = Book(path / BOOK)
        try:
            with _gone_if_unmade(path, fresh is not None, book):
                _fill(book, config, seen)
                added = _add(book, config, names)
            links = Links(path)
            links.know(book.annotators())
            yield Study(path, config, book, links, added)
        finally:
            book.close()


def _config(held: RunFolder, fresh: Mapping[str, Any] | None, wanted: Wanted) -> dict[str, Any]:
    record = held.read(STUDY)
    if record is None:
        assert fresh is not None, "there is either a study or a new configuration"
        about = {"study": secrets.token_hex(8), "created": now(), "palate": version("palate")}
        record = {**about, "config": fresh}
        held.write(STUDY, record)
    config: dict[str, Any] = record["config"]
    _same(held.path, config, wanted)
    return config


@contextmanager
def _gone_if_unmade(path: Path, fresh: bool, book: Book) -> Iterator[None]:
    """Leave no half study behind, so that the same folder can be used once the fault is mended."""
    try:
        yield
    except PalateError:
        if fresh:
            book.close()
            for name in (STUDY, BOOK, f"{BOOK}-wal", f"{BOOK}-shm", LOCK):
                (path / name).unlink(missing_ok=True)
            with suppress(OSError):
                path.rmdir()
        raise


def _names(names: Sequence[str]) -> list[str]:
    found = [name.strip() for name in names]
    for name in found:
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise SpecError(f"annotator {name!r:.80}: a name has 1 to {LONGEST_NAME} printable characters.")
        if found.count(name) > 1:
            raise SpecError(f"annotator '{name}' is named twice.")
    return found


def _new_config(path: Path, wanted: Wanted, names: Sequence[str]) -> dict[str, Any]:
    if (path / BOOK).exists():
        raise RunError(f"{path / STUDY}: missing, though {BOOK} holds answers. Put it back, or choose another --out.")
    if wanted.data is None:
        raise SpecError(f"{path}: no study yet. A new one needs --data.")
    if not names:
        raise SpecError("a new study needs --annotators, as in ana,ben,cy.")
    given = wanted.given()
    config = {"data": wanted.data, "data_digest": open_pairs(wanted.data).digest, **DEFAULTS, **given}
    checks, _ = read_attention(config["attention"])
    config["attention_digest"] = checks.digest if checks else None
    config["retriever_identity"] = dict(make_retriever(config["retriever"]).identity)
    return config


def _same(path: Path, config: Mapping[str, Any], wanted: Wanted) -> None:
    given = wanted.given()
    if "data" in given:
        given["data_digest"] = open_pairs(given.pop("data")).digest
    if "attention" in given:
        checks, _ = read_attention(given["attention"])
        if checks:
            given["attention_digest"] = checks.digest
            del given["attention"]
    other = [f"  {n}: the study has {config[n]!r}, wanted is {v!r}" for n, v in given.items() if config[n] != v]
    if other:
        raise RunError(
            f"{path}: a study with another configuration, which cannot change once people answer:\n"
            + "\n".join(other)
            + "\nLeave these options out to go on with it, or choose another --out."
        )


def _fill(book: Book, config: Mapping[str, Any], seen: Callable[[int, int], None]) -> None:
    if book.items():
        return
    data = open_pairs(config["data"])
    checks, made = read_attention(config["attention"])
    digests = (data.digest, checks.digest if checks else None)
    if digests != (config["data_digest"], config["attention_digest"]):
        raise RunError(
            f"{config['data']}: the data changed while the study was made. Delete its folder and start anew."
        )
    retriever = make_retriever(config["retriever"])
    source = Source(data, checks, made, retriever, config["k"], config["limit"], config["seed"])
    book.add_sheets(make_sheets(source, seen))


def _add(book: Book, config: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    known = book.annotators()
    new = [name for name in names if name not in known]
    if not new:
        if not known:
            raise PalateError("a study needs annotators: --annotators ana,ben,cy.")
        return ()
    items, checks, seed = book.items(), book.items(attention=True), config["seed"]
    shares = share_out(list(items), config["overlap"], seed, book.held(), new, book.finished_by())
    steps = items | checks
    tasks = {
        name: [(i, first_seat(seed, i, name), steps[i]) for i in in_order(seed, name, shares[name], list(checks))]
        for name in new
    }
    book.add_annotators(tasks)
    return tuple(new)


def read_config(folder: Path) -> dict[str, Any]:
    """Return what a study was made as."""
    study_book(folder)
    found: dict[str, Any] = json.loads((folder / STUDY).read_text(encoding="utf-8"))
    return found
