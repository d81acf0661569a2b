"""`open_data`: the one door to data. Texts are read from disk when asked for; only the index is in memory."""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, BinaryIO

from palate.data.donors import Donors
from palate.data.formats import Record, read_record
from palate.data.formats.personal import as_post
from palate.data.index import Entry, Index, build_index
from palate.data.source import Source, locate, parse
from palate.errors import DataError, did_you_mean
from palate.records import Answer, Item, Key
from palate.spec import Spec

_KEPT = 8


class Dataset:
    """Items in file order, with random access by id.

    Iterating yields `Item`s. `answers(id)`, `key(id)` and `donor(id)` give what belongs to an item but must not
    be shown without thought. Made by `open_data`.
    """

    def __init__(self, spec: Spec, source: Source, index: Index) -> None:
        self.spec = spec
        self.name = source.name
        self.revision = source.revision
        self.digest = index.digest
        self.skipped = index.skipped
        self._source = source
        self._index = index
        self._files: dict[int, BinaryIO] = {}
        self._recent: OrderedDict[str, Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._index.entries)

    def __iter__(self) -> Iterator[Item]:
        return (self.get(name) for name in self.ids)

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {len(self)} items, {self.format}>"

    @property
    def ids(self) -> list[str]:
        """The ids in file order."""
        return list(self._index.entries)

    @property
    def format(self) -> str:
        """The name of the form the file was recognised as."""
        return self._index.format.name if self._index.format else "none"

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The index: for each id its user, domain, twin and the size of its history."""
        return MappingProxyType(self._index.entries)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results has to know about how the data was read."""
        notes = list(self._source.notes)
        if self.skipped:
            notes.append(f"{self.skipped} invalid records were left out, as asked (?invalid=skip)")
        unused = {s: n for s, n in self._index.splits.items() if s not in (self.split, "train")}
        notes += [f"{n} records of split '{s}' are not used" for s, n in unused.items()]
        if not self.has_users:
            notes.append("no user ids: each item counts as its own user; there are no per-user figures")
        elif self._unnamed:
            notes.append(f"{self._unnamed} items name no user: each counts as a user of its own")
        return tuple(notes)

    @property
    def split(self) -> str:
        """Which split's records are items, where records name a split."""
        return self.spec.options.get("split", "test")

    @property
    def generators(self) -> set[str]:
        """Who wrote the answers, as far as a column `generator` tells."""
        return set(self._index.generators)

    @cached_property
    def has_users(self) -> bool:
        """Whether any item names its user; those that do not count as a user each."""
        return self._unnamed < len(self)

    @cached_property
    def _unnamed(self) -> int:
        return sum(e.user_id is None for e in self._index.entries.values())

    @cached_property
    def has_pairs(self) -> bool:
        """Whether every item has a chosen and a rejected answer."""
        return self.format != "best-of-n" and all(e.answers == 2 for e in self._index.entries.values())

    def get(self, item_id: str) -> Item:
        """Return the item `item_id`.

        Raises:
            DataError: no such item, or the file changed since it was opened.
        """
        return self._record(item_id).item

    def answers(self, item_id: str) -> tuple[Answer, ...]:
        """Return the item's answers: chosen and rejected, or N samples, or none."""
        return self._record(item_id).answers

    def key(self, item_id: str) -> Key | None:
        """Return the item's answer key, if the data has one."""
        return self._record(item_id).key

    def donor(self, item_id: str, seed: int = 0, draw: int = 0, *, with_key: bool = False) -> Item | None:
        """Return the item whose user lends their context to `item_id` in draw number `draw`, or None.

        Another user of the same domain with posts (with `with_key`: with a rubric), one of the nearest in number
        and length of posts, never the twin.
        """
        entry = self.entry(item_id)
        twin = self._index.entries.get(entry.twin) if entry.twin is not None else None
        found = self._donors(with_key).find(entry, twin, seed)
        return self.get(found[draw]) if draw < len(found) else None

    def entry(self, item_id: str) -> Entry:
        """Return the index entry of `item_id`."""
        try:
            return self._index.entries[item_id]
        except KeyError:
            raise DataError(f"{self.name}: no item '{item_id}'.{did_you_mean(item_id, self.ids[:10_000])}") from None

    def column(self, item_id: str, name: str) -> str | None:
        """Return the value of any column of an item as text: a known one, or an unknown one kept in `extra`."""
        item = self.get(item_id)
        value: Any = item.extra.get(name)
        if name in ("domain", "category", "user_id", "persona"):
            value = getattr(item, name)
        return None if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    @cached_property
    def columns(self) -> list[str]:
        """The columns that results can be split by, whichever items have them."""
        return ["domain", "category", "user_id", *self._index.columns]

    def _donors(self, with_key: bool) -> Donors:
        return self._key_donors if with_key else self._post_donors

    @cached_property
    def _post_donors(self) -> Donors:
        return Donors(e for e in self._index.entries.values() if e.posts)

    @cached_property
    def _key_donors(self) -> Donors:
        return Donors(e for e in self._index.entries.values() if e.aspects)

    def _record(self, item_id: str) -> Record:
        if item_id in self._recent:
            self._recent.move_to_end(item_id)
            return self._recent[item_id]
        entry = self.entry(item_id)
        record = self._read(entry)
        if past := self._index.judged.get(entry.user_id or ""):
            posts = tuple(as_post(self._read(p)) for p in past)
            record = replace(record, item=replace(record.item, posts=posts))
        self._recent[item_id] = record
        if len(self._recent) > _KEPT:
            self._recent.popitem(last=False)
        return record

    def _read(self, entry: Entry) -> Record:
        assert self._index.format is not None
        try:
            handle = self._file(entry.part)
            handle.seek(entry.offset)
            record, faults = read_record(self._index.format, json.loads(handle.read(entry.length)), entry.place)
        except (OSError, ValueError):
            record, faults = None, ["changed"]
        if record is None or record.item.id != entry.id or faults:
            label = self._source.parts[entry.part].label
            raise DataError(f"{label}: the file changed while it was being read (item '{entry.id}'). Start again.")
        return record

    def _file(self, part: int) -> BinaryIO:
        if part not in self._files:
            self._files[part] = self._source.parts[part].path.open("rb")
        return self._files[part]


def open_data(spec: str) -> Dataset:
    """Open the data that a string names and check every record of it.

    Args:
        spec: `sample`, `sample:train`, a `.jsonl`, `.json` or `.parquet` file, a folder of them, or
            `hub:<id>@revision?config=…&split=…`. `?split=` chooses among records that name a split (default `test`);
            `?invalid=skip` leaves invalid records out and counts them.

    Raises:
        DataError: up to 20 problems at once, each with line, field, what was expected and what was found.
        SpecError: a string that cannot be read.
        MissingExtra: Parquet or hub without the extra `hub`.
    """
    parsed = parse(spec)
    skip = parsed.choice("invalid", ("refuse", "skip"), "refuse", "data") == "skip"
    source = locate(parsed)
    return Dataset(parsed, source, build_index(source, parsed.options.get("split", "test"), skip=skip))
