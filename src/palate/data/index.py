"""One pass over the data: every line checked, and for each item where it stands and what donors and metrics need.

The index is small (a few numbers an item); the texts stay on disk.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from palate.data.formats import Format, Place, Record, read_record, recognise
from palate.data.lines import BadLine, Line, describe, parse_object, read_lines
from palate.data.problems import Problems
from palate.data.source import Part, Source
from palate.errors import DataError

CHECK = (
    "Mend the file, or take fields from where they are: palate data convert --map field=column. "
    "?invalid=skip leaves these records out; every run says how many."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an item stands and its figures; `posts` and `chars` count its history."""

    id: str
    part: int
    line: int
    offset: int
    length: int
    place: Place
    user_id: str | None
    domain: str
    category: str | None
    twin: str | None
    posts: int
    chars: int
    aspects: int
    answers: int
    prints: tuple[bytes, bytes, bytes]

    @property
    def unit(self) -> str:
        """The user, or the item itself where it names none: what is resampled as a whole."""
        return f"user {self.user_id}" if self.user_id is not None else f"item {self.id}"


@dataclass(slots=True)
class Index:
    """The entries by id in file order, the train pairs of users that become posts, and what was left out."""

    format: Format | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    judged: dict[str, list[Entry]] = field(default_factory=dict)
    digest: str = ""
    skipped: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    columns: dict[str, None] = field(default_factory=dict)
    generators: set[str] = field(default_factory=set)
    problems: Problems = field(default_factory=Problems)


def build_index(source: Source, split: str, *, skip: bool, check: bool = False) -> Index:
    """Read every line of `source` once.

    Args:
        source: the parts.
        split: which split's records are items, where records name a split.
        skip: leave records with problems out and count them, instead of raising.
        check: never raise for problems in records; leave them in `Index.problems`.

    Raises:
        DataError: no records, or records with problems.
    """
    index = Index()
    digest = hashlib.sha256()
    kinds: dict[str, tuple[str, str]] = {}
    bad: set[tuple[int, int]] = set()
    for number, (part, prefix) in enumerate(zip(source.parts, _prefixes(source.parts), strict=True)):
        digest.update(f"\0{part.domain}\0{prefix}\0".encode())
        for line in _lines(part):
            digest.update(line.raw + b"\n")
            place = Place(f"{prefix}{line.number}", part.domain)
            faults = _read_line(index, source, number, line, place, split, kinds)
            if faults:
                index.problems.extend(part.at(line.number), faults)
                bad.add((number, line.number))
    if index.splits:
        digest.update(split.encode())
    _join_judged(index)
    for entry in _check_twins(index, source, drop=skip):
        bad.add((entry.part, entry.line))
    index.digest = digest.hexdigest()
    index.skipped = len(bad) if skip else 0
    if index.problems.total and not (skip or check):
        raise index.problems.error(source.name, CHECK)
    if not index.entries and not check:
        raise nothing(index, source, split)
    return index


def nothing(index: Index, source: Source, split: str) -> DataError:
    """Return the error that says why there is no item."""
    if index.splits and split not in index.splits:
        found = ", ".join(f"{name} ({n})" for name, n in index.splits.items())
        return DataError(f"{source.name}: no record of split '{split}'. Splits found: {found}. Choose one: ?split=…")
    if index.problems.total:
        return index.problems.error(source.name, "No record is left.")
    place = source.parts[0].label if len(source.parts) == 1 else source.name
    return DataError(f"{place}: the file is empty; it needs at least one record.")


def _prefixes(parts: Sequence[Part]) -> list[str]:
    """Return what makes line numbers ids across parts: nothing for one part, else its domain, or label if shared."""
    if len(parts) == 1:
        return [""]
    domains = [part.domain for part in parts]
    return [f"{p.domain if domains.count(p.domain) == 1 else p.label}:" for p in parts]


def _lines(part: Part) -> Iterator[Line]:
    """Yield the lines that matter: blank lines at the very end do not."""
    blank: list[Line] = []
    with part.path.open("rb") as handle:
        for line in read_lines(handle):
            if not line.raw.strip():
                blank.append(line)
                continue
            yield from blank
            blank.clear()
            yield line


def _read_line(
    index: Index, source: Source, number: int, line: Line, place: Place, split: str, kinds: dict[str, tuple[str, str]]
) -> list[str]:
    """Enter one line in the index and return what is wrong with it; the first record that is read sets the form."""
    try:
        row = parse_object(line.raw)
    except BadLine as bad:
        return [str(bad)]
    form = index.format or recognise(row)
    record, faults = read_record(form, row, place)
    if index.format is None and (record is not None or form.fits(row)):
        index.format = form
    faults += _mixed(row, kinds, source.parts[number].at(line.number))
    if record is not None and not faults:
        faults = _enter(index, source, record, _entry(record, number, line, place), split)
    return faults


def _mixed(row: dict[str, Any], kinds: dict[str, tuple[str, str]], where: str) -> list[str]:
    """Ids may be strings or whole numbers, but all of one kind: 7 and "7" must not meet."""
    faults = []
    for name in ("id", "user_id"):
        value = row.get(name)
        if value is None or isinstance(value, bool) or not isinstance(value, str | int):
            continue
        kind = "a string" if isinstance(value, str) else "a number"
        first, at = kinds.setdefault(name, (kind, where))
        if kind != first:
            faults.append(f"{name}: expected {first} as in {at}, found {describe(value)}")
    return faults


def _enter(index: Index, source: Source, record: Record, entry: Entry, split: str) -> list[str]:
    if record.split is not None:
        index.splits[record.split] = index.splits.get(record.split, 0) + 1
        if record.split == "train" and split != "train":
            size = len(record.item.question) + sum(len(a.text) for a in record.answers)
            index.judged.setdefault(record.item.user_id or "", []).append(replace(entry, chars=size))
            return []
        if record.split != split:
            return []
    if (first := index.entries.get(entry.id)) is not None:
        return [f"id: {entry.id!r} is already the id of {source.parts[first.part].at(first.line)}; ids must be unique"]
    index.entries[entry.id] = entry
    index.columns.update(dict.fromkeys(record.item.extra))
    if isinstance(made_by := record.item.extra.get("generator"), str):
        index.generators.add(made_by)
    return []


def _entry(record: Record, number: int, line: Line, place: Place) -> Entry:
    item = record.item
    texts = [item.question, *(a.text for a in record.answers if a.role in ("chosen", "rejected"))]
    prints = [hashlib.blake2b(t.strip().encode(), digest_size=8).digest() for t in texts]
    prints += [b""] * (3 - len(prints))
    return Entry(
        id=item.id,
        part=number,
        line=line.number,
        offset=line.offset,
        length=len(line.raw),
        place=place,
        user_id=item.user_id,
        domain=item.domain,
        category=item.category,
        twin=item.twin,
        posts=len(item.posts),
        chars=sum(len(p.text) for p in item.posts),
        aspects=len(record.key.aspects) if record.key else 0,
        answers=len(record.answers),
        prints=(prints[0], prints[1], prints[2]),
    )


def _join_judged(index: Index) -> None:
    for entry in index.entries.values():
        if past := index.judged.get(entry.user_id or ""):
            index.entries[entry.id] = replace(entry, posts=len(past), chars=sum(p.chars for p in past))


def _check_twins(index: Index, source: Source, *, drop: bool) -> list[Entry]:
    """Note twins that are none and return them; with `drop` take them out, and those who lose their twin thereby."""
    found: list[Entry] = []
    while True:
        faults = {e.id: fault for e in index.entries.values() if (fault := twin_fault(e, index.entries))}
        for name, fault in faults.items():
            entry = index.entries[name]
            index.problems.add(source.parts[entry.part].at(entry.line), fault)
            found.append(entry)
            if drop:
                del index.entries[name]
        if not (faults and drop):
            return found


def twin_fault(entry: Entry, entries: Mapping[str, Entry]) -> str | None:
    """Return why the item that an entry names as its twin is none; None if it is, or if it names none."""
    if entry.twin is None:
        return None
    other = entries.get(entry.twin)
    if other is None:
        return f"twin: no item has the id {entry.twin!r}"
    if other.twin != entry.id:
        return f"twin: {entry.twin!r} does not name {entry.id!r} as its twin"
    if other.prints != (entry.prints[0], entry.prints[2], entry.prints[1]):
        return f"twin: {entry.twin!r} must have the same question and the same answers, swapped"
    if entry.user_id is not None and other.user_id == entry.user_id:
        return f"twin: {entry.twin!r} belongs to the same user"
    return None
