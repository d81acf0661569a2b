"""What people see of an item, made once and kept: later changes of data or retrieval cannot reach a running study."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

from palate.annotate.assign import order
from palate.data import Dataset, open_data
from palate.errors import DataError, SpecError
from palate.records import Aspect, Item, Message
from palate.retrieval import Retriever, rank
from palate.views.look import post_text

EXPECTED = ("chosen", "rejected", "none")
AUTO = "auto:"


@dataclass(frozen=True, slots=True)
class Sheet:
    """One item as it is shown: chat turns, ranked posts, the two answers, and for step two the rubric.

    `expected` is the preference that an attention item must get to be passed; None for all others.
    """

    item: str
    turns: tuple[Message, ...]
    posts: tuple[str, ...]
    chosen: str
    rejected: str
    aspects: tuple[Aspect, ...]
    expected: str | None = None

    @property
    def steps(self) -> int:
        """How many steps it has: no rubric, no second step."""
        return 2 if self.aspects else 1

    def as_json(self) -> str:
        """Return what is kept."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Sheet":
        """Return the sheet that `as_json` wrote."""
        raw = json.loads(text)
        return cls(
            raw["item"],
            tuple(Message(**m) for m in raw["turns"]),
            tuple(raw["posts"]),
            raw["chosen"],
            raw["rejected"],
            tuple(Aspect(**a) for a in raw["aspects"]),
            raw["expected"],
        )


@dataclass(frozen=True, slots=True)
class Source:
    """Where the sheets of a study come from: data, attention items, and how posts are ranked."""

    data: Dataset
    checks: Dataset | None
    made_checks: int
    retriever: Retriever
    k: int
    limit: int | None
    seed: int


def open_pairs(spec: str) -> Dataset:
    """Open data in which every item has a chosen and a rejected answer."""
    data = open_data(spec)
    if not data.has_pairs:
        raise DataError(f"{data.name}: a study needs a chosen and a rejected answer for every item ({data.format}).")
    return data


def read_attention(text: str | None) -> tuple[Dataset | None, int]:
    """Return the data of attention items, or how many to make of the study's own: from `auto:N` or a data string."""
    if text is None:
        return None, 0
    if not text.startswith(AUTO):
        return open_pairs(text), 0
    count = text.removeprefix(AUTO)
    if not (count.isascii() and count.isdigit() and int(count)):
        raise SpecError(f"--attention '{text}': after 'auto:' comes how many to make, as in auto:3.")
    return None, int(count)


def make_sheets(source: Source, seen: Callable[[int, int], None]) -> Iterator[Sheet]:
    """Yield the sheets of a study in file order, attention items last.

    Items that become attention items are not asked as themselves: those past the limit are taken first.

    Raises:
        DataError: an attention item without an expected preference, an id that is there twice, nothing to make one of.
    """
    ids = source.data.ids
    asked = ids[: source.limit]
    bases = _bases(source, ids, len(asked))
    asked = [i for i in asked if i not in set(bases)]
    checks = source.checks.ids if source.checks else []
    total = len(asked) + len(bases) + len(checks)
    for k, name in enumerate(asked):
        seen(k, total)
        yield _sheet(source, source.data, name)
    for name in bases:
        yield _off_topic(source, name)
    for name in checks:
        assert source.checks is not None
        if name in source.data.entries:
            raise DataError(f"attention item '{name}': the study's data has an item of that id.")
        yield _expecting(source, source.checks, name)
    seen(total, total)


def _sheet(source: Source, data: Dataset, name: str) -> Sheet:
    item, key = data.get(name), data.key(name)
    texts = {a.role: a.text for a in data.answers(name)}
    posts = rank(item.question, item.posts, source.retriever, source.k, item_id=name).posts
    aspects = key.aspects if key else ()
    shown = tuple(post_text(p) for p in posts)
    return Sheet(name, item.messages, shown, texts["chosen"], texts["rejected"], aspects)


def _expecting(source: Source, data: Dataset, name: str) -> Sheet:
    expected = data.get(name).extra.get("expected")
    if expected not in EXPECTED:
        wanted = ", ".join(EXPECTED)
        raise DataError(f"attention item '{name}': 'expected' must be one of {wanted}, found {expected!r:.60}.")
    return replace(_sheet(source, data, name), expected=expected)


def _bases(source: Source, ids: list[str], asked: int) -> list[str]:
    if not source.made_checks:
        return []
    if source.made_checks - (len(ids) - asked) >= asked:
        raise DataError(f"--attention auto:{source.made_checks}: the study has only {asked} items to make them of.")
    ranked = sorted(range(len(ids)), key=lambda n: (n < asked, order(source.seed, "attention", ids[n])))
    return [ids[n] for n in ranked[: source.made_checks]]


def _off_topic(source: Source, name: str) -> Sheet:
    base = _sheet(source, source.data, name)
    item = source.data.get(name)
    others = sorted(
        (e for e in source.data.entries.values() if e.id != name and (e.user_id is None or e.user_id != item.user_id)),
        key=lambda e: (e.domain == item.domain, order(source.seed, "off", name, e.id)),
    )
    for entry in others:
        if _elsewhere(item, source.data.get(entry.id)):
            stranger = next(a.text for a in source.data.answers(entry.id) if a.role == "chosen")
            return replace(base, item=f"attention:{name}", rejected=stranger, expected="chosen")
    raise DataError(f"--attention: no other user's question to borrow an off-topic answer from, for '{name}'.")


def _elsewhere(item: Item, other: Item) -> bool:
    return item.question.strip() != other.question.strip()
