"""`palate data check`: what is wrong with data, and what is odd about it though it can be read."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import Any

from palate.data.dataset import Dataset
from palate.data.formats import FIELDS
from palate.data.index import Entry, Index, build_index, nothing
from palate.data.problems import Problems
from palate.data.source import Source, locate, parse
from palate.records import Item

SHOWN = 5
FEW = 10
NEAR = 0.9
QUOTE = 12
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings. `problems` make records unusable; `warnings` make results doubtful."""

    name: str
    figures: Mapping[str, Any]
    problems: tuple[str, ...]
    problem_count: int
    warnings: tuple[str, ...]
    length_accuracy: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return them for JSON."""
        return {
            "name": self.name,
            "figures": dict(self.figures),
            "problems": list(self.problems),
            "problem_count": self.problem_count,
            "warnings": list(self.warnings),
            "length_accuracy": dict(self.length_accuracy),
        }


def check_data(text: str) -> Checked:
    """Check every record that a data string names.

    Raises:
        DataError: there is nothing to read at all.
    """
    data, index, source = _read(text)
    lengths = _length_accuracy(data)
    found = (
        _misspelt(index),
        _unequal(lengths, Counter(e.domain for e in data.entries.values())),
        _unanswered(data),
        _contradictions(data),
        _history(data),
        _splits(index),
        data.notes,
    )
    problems = tuple(str(p) for p in index.problems.kept)
    if not len(data) and not problems:
        problems = (str(nothing(index, source, data.split)),)
    return Checked(
        source.name,
        _figures(data, index.columns),
        problems,
        max(index.problems.total, len(problems)),
        tuple(chain.from_iterable(found)),
        lengths,
    )


def open_leniently(text: str) -> tuple[Dataset, Problems]:
    """Open the data that a string names with the records that can be used, and tell what is wrong with the others.

    Twins that are none stay in it.

    Raises:
        DataError: no record can be used.
    """
    data, index, source = _read(text)
    if not len(data):
        raise nothing(index, source, data.split)
    return data, index.problems


def _read(text: str) -> tuple[Dataset, Index, Source]:
    spec = parse(text)
    source = locate(spec)
    index = build_index(source, spec.options.get("split", "test"), skip=False, check=True)
    return Dataset(spec, source, index), index, source


def _figures(data: Dataset, columns: Iterable[str]) -> dict[str, Any]:
    entries = list(data.entries.values())
    users = {e.user_id for e in entries} - {None}
    return {
        "format": data.format,
        "items": len(entries),
        "users": len(users) or "none named",
        "domains": ", ".join(
            f"{d} {sum(e.domain == d for e in entries)}" for d in dict.fromkeys(e.domain for e in entries)
        ),
        "with a rubric": sum(e.aspects > 0 for e in entries),
        "in twin pairs": sum(e.twin is not None for e in entries),
        "empty histories (cold start)": sum(e.posts == 0 for e in entries),
        "columns kept, not read": ", ".join(columns) or "none",
        "posts a history, mean": round(sum(e.posts for e in entries) / len(entries), 1) if entries else 0,
        "digest": data.digest[:16],
    }


def _length_accuracy(data: Dataset) -> dict[str, float]:
    """Return for each domain how often the longer answer is the chosen one, equal lengths counting half."""
    credits: dict[str, list[float]] = {}
    for item_id, entry in data.entries.items():
        if entry.answers != 2 or data.format == "best-of-n":
            continue
        chosen, rejected = (len(a.text) for a in data.answers(item_id))
        credits.setdefault(entry.domain, []).append(0.5 + 0.5 * ((chosen > rejected) - (chosen < rejected)))
    return {domain: sum(found) / len(found) for domain, found in credits.items()}


def _unequal(lengths: Mapping[str, float], counts: Mapping[str, int]) -> Iterator[str]:
    for domain, value in lengths.items():
        if counts[domain] >= FEW and (value <= 0.1 or value >= 0.9):
            side = "longer" if value > 0.5 else "shorter"
            yield f"domain '{domain}': taking the {side} answer solves {max(value, 1 - value):.0%} of the pairs"


def _misspelt(index: Index) -> Iterator[str]:
    """Columns that nothing reads although their names are nearly those of fields."""
    for name in index.columns:
        if name not in FIELDS and (near := get_close_matches(name, FIELDS, n=1, cutoff=0.8)):
            yield f"column '{name}' is kept but not read. Did you mean '{near[0]}'?"


def _unanswered(data: Dataset) -> Iterator[str]:
    """Records without answers are material for building pairs, or their answers have names that are not known."""
    bare = [e.id for e in data.entries.values() if not e.answers]
    unknown = ", ".join(data.get(bare[0]).extra) if bare else ""
    yield from _listed(f"no answers (unknown columns: {unknown or 'none'})", bare)


@dataclass(frozen=True, slots=True)
class Repeated:
    """Pairs of items with one question and the same two answers: the first one's id and the later one's.

    `opposed` have opposite labels though the user is the same or unknown, `again` the same label and user, and
    `strangers` opposite labels and two users, without being named as twins.
    """

    opposed: tuple[tuple[str, str], ...]
    again: tuple[tuple[str, str], ...]
    strangers: tuple[tuple[str, str], ...]


def find_repeated(data: Dataset) -> Repeated:
    """Return which items have the same question and answers: twins if the users differ, else a contradiction."""
    seen: dict[tuple[bytes, ...], Entry] = {}
    opposed, again, strangers = [], [], []
    for entry in data.entries.values():
        if entry.answers != 2:
            continue
        question, chosen, rejected = entry.prints
        other = seen.get((question, rejected, chosen))
        if other is not None and (entry.user_id is None or entry.user_id == other.user_id):
            opposed.append((other.id, entry.id))
        elif other is not None and entry.twin is None:
            strangers.append((other.id, entry.id))
        if (first := seen.setdefault(entry.prints, entry)) is not entry and first.user_id == entry.user_id:
            again.append((first.id, entry.id))
    return Repeated(tuple(opposed), tuple(again), tuple(strangers))


def _contradictions(data: Dataset) -> Iterator[str]:
    found = find_repeated(data)
    yield from _listed("the same pair with opposite labels", [" and ".join(p) for p in found.opposed])
    yield from _listed("the same pair twice", [" and ".join(p) for p in found.again])
    unnamed = [" and ".join(p) for p in found.strangers]
    yield from _listed("opposed answers of two users; twins must name each other in 'twin'", unnamed)


def _history(data: Dataset) -> Iterator[str]:
    asked, answered, dated, twice = [], [], [], []
    for item_id in data.ids:
        item = data.get(item_id)
        words = _words(item.question)
        chosen = next((_words(a.text) for a in data.answers(item_id) if a.role == "chosen"), [])
        if len({p.id for p in item.posts}) < len(item.posts):
            twice.append(item.id)
        for post in item.posts:
            own = _words(post.text)
            if _near(words, own):
                asked.append(f"{item.id} (post {post.id})")
            if _near(chosen, own) or _quotes(chosen, own):
                answered.append(f"{item.id} (post {post.id})")
            if later(post.date, date_of(item)):
                dated.append(f"{item.id} (post {post.id})")
    yield from _listed("the question stands in the history", asked)
    yield from _listed("the chosen answer is quoted in the history", answered)
    yield from _listed("a post is dated after the question", dated)
    yield from _listed("post ids repeat within a history", twice)


def _splits(index: Index) -> Iterator[str]:
    """A user in two splits is how PersonalRewardBench works; a judged pair that returns as an item is not."""
    past = {p.prints for entries in index.judged.values() for p in entries}
    yield from _listed(
        "the pair is in the user's train split too",
        [e.id for e in index.entries.values() if e.prints in past],
    )


def _listed(what: str, found: list[str]) -> Iterator[str]:
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"{what}: {', '.join(found[:SHOWN])}{more}"


def date_of(item: Item) -> str | None:
    """Return when the question was asked, if a column `date` tells."""
    value = item.extra.get("date")
    return value if isinstance(value, str) else None


def later(one: str | None, other: str | None) -> bool:
    """Tell whether an ISO date or time is later than another, as far as the coarser of the two tells."""
    if one is None or other is None:
        return False
    known = min(len(one), len(other))
    return one[:known] > other[:known]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _near(one: list[str], other: list[str]) -> bool:
    """Whether two texts are the same words but for a tenth (Jaccard)."""
    if not one or not other:
        return False
    a, b = set(one), set(other)
    return len(a & b) >= NEAR * len(a | b)


def _quotes(text: list[str], post: list[str]) -> bool:
    """Whether `post` holds a run of `QUOTE` words of `text`."""
    if len(text) < QUOTE or len(post) < QUOTE:
        return False
    runs = {tuple(text[k : k + QUOTE]) for k in range(len(text) - QUOTE + 1)}
    return any(tuple(post[k : k + QUOTE]) in runs for k in range(len(post) - QUOTE + 1))
