"""Data in the forms of other tools. What a form cannot hold is counted and told, never dropped in silence."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.data import label_studio
from palate.data.dataset import Dataset
from palate.data.written import new_file
from palate.errors import DataError, SpecError, did_you_mean
from palate.records import Answer, Item, Key, Message, Query

Row = dict[str, Any]
EVIDENCE = "rubric_aspects[].evidence"
KEY_FIELDS = ("rubric_aspects", EVIDENCE, "narrative")
EARLIER, PAIR = "turns before the question", "chosen, rejected"


@dataclass(frozen=True, slots=True)
class Whole:
    """All there is of an item. `key` is None unless keys were asked for."""

    item: Item
    answers: tuple[Answer, ...]
    key: Key | None
    query: Query


@dataclass(frozen=True, slots=True)
class Form:
    """A form of another tool: how a record becomes a row of it, and which of our fields that row holds.

    `pairs` says that a chosen and a rejected answer are needed, `asks` that the view decides what stands in a prompt.
    """

    name: str
    ending: str
    row: Callable[[Whole], Row]
    holds: frozenset[str]
    pairs: bool = True
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and of how many records each field was left behind."""

    count: int
    files: tuple[Path, ...]
    lost: Mapping[str, int]


def export_data(
    data: Dataset, out: Path, form: str, asked: Callable[[str], Query], *, with_keys: bool = False
) -> Exported:
    """Write `data` to `out` in the form named `form`; Label Studio gets its configuration beside it.

    Args:
        data: the items.
        out: a file that does not exist yet.
        form: a name of `FORMS`.
        asked: an item's query under the view that prompts are to be written with.
        with_keys: write rubric and narrative too, for Label Studio as a task of step two.

    Raises:
        SpecError: an unknown form, or keys for one that has no place for them.
        DataError: the output exists, or the data has no pairs or keys where they are needed.
    """
    target = _target(form, with_keys)
    if target.pairs and not data.has_pairs:
        raise DataError(f"{data.name}: {form} needs a chosen and a rejected answer for every item, and some have none.")
    lost: Counter[str] = Counter()
    if form == "label-studio":
        return _tasks(data, out, target, asked, with_keys)
    with new_file(out, target.ending) as path, path.open("w", encoding="utf-8") as handle:
        for whole in _wholes(data, asked, with_keys):
            handle.write(json.dumps(target.row(whole), ensure_ascii=False, allow_nan=False) + "\n")
            lost.update(_lost(target, whole, data.key(whole.item.id)))
    return Exported(len(data), (out,), dict(lost))


def _target(form: str, with_keys: bool) -> Form:
    if form not in FORMS:
        raise SpecError(f"--to '{form}': unknown form.{did_you_mean(form, FORMS)}")
    target = FORMS[form]
    if with_keys and not target.holds & set(KEY_FIELDS):
        raise SpecError(f"--with-keys: {form} has no place for rubrics and narratives.")
    return target


def _tasks(data: Dataset, out: Path, target: Form, asked: Callable[[str], Query], with_keys: bool) -> Exported:
    """Write one JSON list of tasks, and the configuration of the step beside it."""
    beside = out.with_suffix(".xml")
    lost: Counter[str] = Counter()
    rows = []
    for whole in _wholes(data, asked, with_keys):
        if with_keys and (whole.key is None or not whole.key.aspects):
            raise DataError(f"item '{whole.item.id}': it has no rubric, which step two shows.")
        rows.append(target.row(whole))
        lost.update(_lost(target, whole, data.key(whole.item.id)))
    with new_file(out, target.ending) as path, new_file(beside, ".xml") as other:
        path.write_text(json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=1) + "\n", encoding="utf-8")
        other.write_text(label_studio.config(2 if with_keys else 1), encoding="utf-8")
    return Exported(len(rows), (out, beside), dict(lost))


def _wholes(data: Dataset, asked: Callable[[str], Query], with_keys: bool) -> Iterator[Whole]:
    for name in data.ids:
        key = data.key(name) if with_keys else None
        yield Whole(data.get(name), data.answers(name), key, asked(name))


def _lost(target: Form, whole: Whole, key: Key | None) -> Iterator[str]:
    """Yield the names of what this item has and its row has not."""
    held = set(target.holds)
    if whole.key is None:
        held -= {*KEY_FIELDS}
    shown = whole.query.context.blocks if target.asks and whole.query.context else ()
    if shown:
        held |= {"profile", *_CHOICES}
    parts = (f"profile[].{name}" for name in ("date", "prompt", "rejected") if _any(whole.item, name))
    there = [*_of_item(whole.item), *(parts if "profile" in held else ()), *_beside(whole.answers, key)]
    redundant = set() if "rubric_aspects" in held else {EVIDENCE}
    yield from (name for name in there if name not in held | redundant)
    if 0 < len(shown) < len(whole.item.posts):
        yield "posts that are not among the best"


def _any(item: Item, name: str) -> bool:
    return any(getattr(post, name) is not None for post in item.posts)


def _of_item(item: Item) -> Iterator[str]:
    named = {"user_id": item.user_id, "category": item.category, "persona": item.persona, "twin": item.twin}
    yield from (name for name, value in named.items() if value is not None)
    if item.domain != "all":
        yield "domain"
    if len(item.messages) > 1:
        yield EARLIER
    if item.posts:
        yield "profile"
    yield from (name for name in item.extra if name != "subset" or item.extra[name] != item.domain)


def _beside(answers: tuple[Answer, ...], key: Key | None) -> Iterator[str]:
    if answers:
        yield "responses" if answers[0].role == "sample" else PAIR
    if key is not None and key.aspects:
        yield "rubric_aspects"
    if key is not None and any(a.evidence for a in key.aspects):
        yield EVIDENCE
    if key is not None and key.narrative is not None:
        yield "narrative"


def _turns(messages: tuple[Message, ...]) -> list[Row]:
    return [{"role": m.role, "content": m.content} for m in messages]


def _texts(whole: Whole) -> dict[str, str]:
    return {a.role: a.text for a in whole.answers if a.role in ("chosen", "rejected")}


def _rewardbench(whole: Whole) -> Row:
    asked = whole.query.messages
    prompt: Any = asked[0].content if len(asked) == 1 else _turns(asked)
    return {"id": whole.item.id, "prompt": prompt, **_texts(whole), "subset": whole.item.domain}


def _trl(whole: Whole) -> Row:
    answers = {role: [{"role": "assistant", "content": text}] for role, text in _texts(whole).items()}
    return {"id": whole.item.id, "prompt": _turns(whole.query.messages), **answers}


def _lamp_qa(whole: Whole) -> Row:
    item, key = whole.item, whole.key
    posts = [{"id": p.id, "text": p.text} | ({"category": p.category} if p.category else {}) for p in item.posts]
    row: Row = {"id": item.id, "question": item.question, "profile": posts}
    if key is not None:
        row["rubric_aspects"] = [{"aspect": a.aspect, "evidence": a.evidence, "reason": a.reason} for a in key.aspects]
        row |= {"narrative": key.narrative} if key.narrative is not None else {}
    return row | ({"category": item.category} if item.category is not None else {})


def _personal(whole: Whole) -> Row:
    return _lamp_qa(whole) | _texts(whole)


def _task(whole: Whole) -> Row:
    return label_studio.task(whole.query, whole.answers, whole.key)


_CHAT = frozenset({PAIR, EARLIER})
_CHOICES = frozenset({"profile[].prompt", "profile[].rejected"})
_LAMP = frozenset({"profile", "category", *KEY_FIELDS})
FORMS: Mapping[str, Form] = {
    f.name: f
    for f in (
        Form("rewardbench", ".jsonl", _rewardbench, _CHAT | {"domain"}, asks=True),
        Form("trl", ".jsonl", _trl, _CHAT, asks=True),
        Form("lamp-qa", ".jsonl", _lamp_qa, _LAMP, pairs=False),
        Form("personalized-rewardbench", ".jsonl", _personal, _LAMP | {PAIR}),
        Form("label-studio", ".json", _task, _CHAT | {"rubric_aspects"}, asks=True),
    )
}
