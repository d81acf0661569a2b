"""The words of the project as frozen records. Lowest floor; no logic beyond reading oneself.

An `Item` holds all that may be shown to a reward model. What must stay hidden (rubric, narrative)
lives in a `Key`, a type of its own, so that the two cannot be mixed up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Status = Literal["ok", "unparsed", "truncated", "refused", "overlong", "no_context", "error"]
Outcome = Literal["correct", "wrong", "tie"]
Role = Literal["user", "assistant", "system"]
AnswerRole = Literal["chosen", "rejected", "sample", "response"]
UserOf = Literal["own", "other", "none"]

STATUSES: tuple[str, ...] = get_args(Status)
OUTCOMES: tuple[str, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat turn."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Post:
    """One entry of a user's history.

    A plain post has only `text`. An earlier choice has `rejected` too: then `text` is the answer the
    user preferred over it, and `prompt` what was asked. `date` is an ISO date or time.
    """

    id: str
    text: str
    category: str | None = None
    date: str | None = None
    prompt: str | None = None
    rejected: str | None = None


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing this user wants of an answer, the quote that shows it, and why."""

    aspect: str
    evidence: str
    reason: str


@dataclass(frozen=True, slots=True)
class Item:
    """One question of one user: all that may be shown.

    `messages` ends with the user's question. `posts` are in file order. `extra` keeps unknown columns;
    nothing reads them unless asked by name.
    """

    id: str
    user_id: str | None
    domain: str
    category: str | None
    messages: tuple[Message, ...]
    posts: tuple[Post, ...]
    persona: str | None = None
    twin: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def question(self) -> str:
        """The text of the last user turn, which is what retrieval searches with."""
        return next(m.content for m in reversed(self.messages) if m.role == "user")


@dataclass(frozen=True, slots=True)
class Key:
    """The answer key of an item. Only the oracle view, graders, gates and the scorecard may hold one."""

    item_id: str
    aspects: tuple[Aspect, ...]
    narrative: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to an item's question."""

    id: str
    item_id: str
    text: str
    role: AnswerRole


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of a context section: its id and the text as shown."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """The context section of a query: what kind, whose, and its entries, best first.

    `donors` names the items that `user=other` borrowed from; `lost` counts posts that retrieval had no finite number
    for and put last.
    """

    kind: Literal["posts", "plan", "rubric"]
    user: UserOf
    blocks: tuple[Block, ...]
    donors: tuple[str, ...] = ()
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """The chat turns that a view makes of an item.

    `turns` are the item's own; `messages` are what the reward model reads, context included.
    `dropped` counts the entries that had to go so that the answers fit.
    """

    item_id: str
    view: str
    turns: tuple[Message, ...]
    messages: tuple[Message, ...]
    context: Context | None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """One query with all the answers to be scored on it: 2 in a pair, N in best-of-N."""

    query: Query
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """What a scorer gave one answer. `value` is a finite number if and only if `status` is `ok`."""

    answer_id: str
    status: Status
    value: float | None
    note: str | None = None

    def __post_init__(self) -> None:
        assert (self.status == "ok") == (self.value is not None), "only an ok score carries a number"


@dataclass(frozen=True, slots=True)
class Call:
    """One exchange with a language model, kept whole.

    `key` names what was asked; `text` is the raw reply, `note` the cause of a failure, `usage` tokens if the server
    told them, `logprobs` those of the first token's candidates if asked for, `thoughts` what the server sent apart
    from the reply.
    """

    key: str
    attempt: int
    status: Status
    text: str | None
    finish_reason: str | None
    usage: Mapping[str, int] | None
    note: str | None = None
    logprobs: Mapping[str, float] | None = None
    thoughts: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one reward model said about one pair under one view; derived, so it can be derived again."""

    item_id: str
    status: Status
    outcome: Outcome | None
    chosen_score: float | None = None
    rejected_score: float | None = None
    shown: Mapping[str, Any] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert (self.status == "ok") == (self.outcome is not None), "only an ok verdict has an outcome"
