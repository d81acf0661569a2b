"""LaMP-QA / Personalized RewardBench (the project's own form), RewardBench, and best-of-N rows."""

import re
from datetime import datetime

from pydantic import field_validator, model_validator

from palate.data.formats.base import Id, Place, Record, Row, Text, Turn, answer, fault, pair_of, reply, turns
from palate.data.problems import likely
from palate.records import Aspect, Item, Key, Message, Post

_MONTH = re.compile(r"\d{4}(-(0[1-9]|1[0-2]))?")


class PostRow(Row):
    """A post; with `rejected` it is an earlier choice and `text` is what was preferred."""

    text: str
    id: Id | None = None
    category: str | None = None
    date: str | None = None
    prompt: str | None = None
    rejected: str | None = None

    @field_validator("date")
    @classmethod
    def _iso(cls, value: str | None) -> str | None:
        try:
            _ = value is None or _MONTH.fullmatch(value) or datetime.fromisoformat(value)
        except ValueError:
            raise fault("expected an ISO date or time such as 2024-05-01") from None
        return value


class AspectRow(Row):
    """A rubric aspect."""

    aspect: Text
    evidence: str | None = None
    reason: str | None = None


class UserRow(Row):
    """What every form but PersonalRewardBench may say of the user and the item."""

    id: Id | None = None
    user_id: Id | None = None
    domain: Text | None = None
    category: str | None = None
    profile: list[PostRow] | None = None
    persona: str | None = None
    twin: Id | None = None
    rubric_aspects: list[AspectRow] | None = None
    narrative: str | None = None


class PairRow(UserRow):
    """LaMP-QA as published, with what Personalized RewardBench adds (`chosen`, `rejected`)."""

    question: Text | None = None
    messages: list[Turn] | None = None
    chosen: str | None = None
    rejected: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> "PairRow":
        if (self.question is None) == (self.messages is None):
            raise fault("exactly one of 'question' and 'messages' is needed")
        for name, other in (("chosen", "rejected"), ("rejected", "chosen")):
            if getattr(self, name) is None and getattr(self, other) is not None:
                raise fault(f"'{other}' is given but '{name}' is missing.{likely(name, list(self.model_extra or {}))}")
        return self


class PromptRow(UserRow):
    """RewardBench and the common preference form."""

    prompt: Text | list[Turn]
    chosen: str | list[Turn]
    rejected: str | list[Turn]
    subset: str | None = None


class SamplesRow(UserRow):
    """Best-of-N: one question, many answers."""

    responses: list[str]
    question: Text | None = None
    prompt: Text | list[Turn] | None = None
    messages: list[Turn] | None = None

    @field_validator("responses")
    @classmethod
    def _some(cls, value: list[str]) -> list[str]:
        if not value:
            raise fault("must hold at least one answer")
        return value

    @model_validator(mode="after")
    def _asked(self) -> "SamplesRow":
        if sum(x is not None for x in (self.question, self.prompt, self.messages)) != 1:
            raise fault("exactly one of 'question', 'prompt' and 'messages' is needed")
        return self


def pair(row: PairRow, place: Place) -> Record:
    """Build a record from a LaMP-QA row; without answers it is material for building pairs."""
    item = _item(row, _asked(row.question, row.messages, "messages"), place)
    answers = pair_of(item.id, row.chosen, row.rejected) if row.chosen is not None and row.rejected is not None else ()
    return Record(item, answers, _key(row, item.id))


def prompt_pair(row: PromptRow, place: Place) -> Record:
    """Build a record from a RewardBench row; `subset` is its domain."""
    messages = _asked(None, None, "prompt", row.prompt)
    item = _item(row, messages, place, row.subset)
    answers = pair_of(item.id, reply(row.chosen, messages, "chosen"), reply(row.rejected, messages, "rejected"))
    return Record(item, answers, _key(row, item.id))


def samples(row: SamplesRow, place: Place) -> Record:
    """Build a record with N answers of role `sample`."""
    item = _item(row, _asked(row.question, row.messages, "messages", row.prompt), place)
    answers = tuple(answer(item.id, str(k), text, "sample") for k, text in enumerate(row.responses))
    return Record(item, answers, _key(row, item.id))


def _asked(
    question: str | None, messages: list[Turn] | None, field: str, prompt: str | list[Turn] | None = None
) -> tuple[Message, ...]:
    text = question if question is not None else prompt
    if isinstance(text, str):
        return (Message("user", text),)
    return turns(messages or text or [], field)


def _item(row: UserRow, messages: tuple[Message, ...], place: Place, subset: str | None = None) -> Item:
    posts = tuple(
        Post(p.id or str(k), p.text, p.category, p.date, p.prompt, p.rejected) for k, p in enumerate(row.profile or [])
    )
    seen: set[str] = set()
    for post in posts:
        if post.id in seen:
            raise fault(f"profile: two posts have the id {post.id!r}, so what was shown could not be told")
        seen.add(post.id)
    extra = row.unknown()
    if subset is not None:
        extra["subset"] = subset
    return Item(
        id=row.id or place.id,
        user_id=row.user_id,
        domain=row.domain or subset or place.domain,
        category=row.category,
        messages=messages,
        posts=posts,
        persona=row.persona,
        twin=row.twin,
        extra=extra,
    )


def _key(row: UserRow, item_id: str) -> Key | None:
    if row.rubric_aspects is None and row.narrative is None:
        return None
    aspects = tuple(Aspect(a.aspect, a.evidence or "", a.reason or "") for a in row.rubric_aspects or [])
    return Key(item_id, aspects, row.narrative)
