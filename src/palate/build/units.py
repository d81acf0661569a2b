"""What one pair is built of: a question, whose wishes each answer keeps and breaks, and the prompts that say so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from palate.build.models import Model
from palate.build.twins import Couple, wishes
from palate.data import Dataset
from palate.grading import FEWEST_WORDS, MOST_WORDS
from palate.grading.judged import Demand
from palate.llm import load_prompt
from palate.llm.client import Ask
from palate.llm.served import ask_key
from palate.records import Item, Key, Message
from palate.rewards.judge.forms import conversation
from palate.views import Looker
from palate.views.look import NOTHING, post_text

KEEP = load_prompt("palate.build", "keep", ("posts", "question", "aspects", "rules", "again"))
BREAK = load_prompt("palate.build", "break", ("posts", "question", "aspects", "rules", "again"))
TWIN = load_prompt("palate.build", "twin", ("posts", "question", "wanted", "unwanted", "rules", "again"))
RULES = load_prompt("palate.build", "rules", ("least", "most"))
AGAIN = load_prompt("palate.build", "again", ("reasons", "number"))
LEAST, MOST = 70, 95
SIDES = ("chosen", "rejected")
assert FEWEST_WORDS <= LEAST < MOST <= MOST_WORDS, "what is asked for must pass the gate"


@dataclass(frozen=True, slots=True)
class User:
    """One user of a pair: the item that is theirs, its usable key, and their top posts for the question, as text."""

    item_id: str
    key: Key
    posts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """One pair to be made. With a second user it is a pair of twins, whose wishes `rejected` keeps."""

    id: str
    item_id: str
    messages: tuple[Message, ...]
    first: User
    second: User | None = None

    @property
    def question(self) -> str:
        """The conversation as text."""
        return conversation(self.messages)

    @property
    def users(self) -> tuple[User, ...]:
        """Its users."""
        return (self.first,) if self.second is None else (self.first, self.second)

    @property
    def demands(self) -> tuple[Demand, ...]:
        """What each answer must do about each aspect."""
        own = self.first.key.aspects
        if self.second is None:
            return (*(Demand("chosen", a, "kept") for a in own), *(Demand("rejected", a, "broken") for a in own))
        other = self.second.key.aspects
        return (
            *(Demand("chosen", a, "kept") for a in own),
            *(Demand("chosen", a, "broken") for a in other),
            *(Demand("rejected", a, "kept") for a in other),
            *(Demand("rejected", a, "broken") for a in own),
        )

    def prompt(self, side: str, again: str) -> str:
        """Return what the generator is asked for one answer; `again` says why an earlier draft was set aside."""
        rules = RULES.fill(least=str(LEAST), most=str(MOST))
        same = {"question": self.question, "rules": rules, "again": again}
        if self.second is None:
            prompt = KEEP if side == "chosen" else BREAK
            return prompt.fill(posts=_posts(self.first), aspects=wishes(self.first.key), **same).rstrip()
        user, other = (self.first, self.second) if side == "chosen" else (self.second, self.first)
        wanted, unwanted = wishes(user.key), wishes(other.key)
        return TWIN.fill(posts=_posts(user), wanted=wanted, unwanted=unwanted, **same).rstrip()

    @property
    def instructions(self) -> tuple[str, ...]:
        """The prompts' own words, without what is filled in."""
        own = (KEEP, BREAK) if self.second is None else (TWIN,)
        return tuple(p.text for p in (*own, RULES, AGAIN))


def prompt_digests() -> dict[str, str]:
    """Return the hashes of the prompts that write pairs."""
    return {p.name: p.digest for p in (KEEP, BREAK, TWIN, RULES, AGAIN)}


class Units:
    """Makes units of items and couples.

    Args:
        data: the items.
        looker: ranks posts.
        k: how many of them the generator reads.
        key_of: gives an item's usable key.
    """

    def __init__(self, data: Dataset, looker: Looker, k: int, key_of: Callable[[str], Key]) -> None:
        self._data = data
        self._looker = looker
        self._k = k
        self._key_of = key_of

    def single(self, item_id: str) -> Unit:
        """Return the unit of an item."""
        item = self._data.get(item_id)
        return Unit(item_id, item_id, item.messages, self._user(item, item))

    def twins(self, couple: Couple) -> Unit:
        """Return the unit of two opposed users: the first one's question is asked of both."""
        item, other = self._data.get(couple.first), self._data.get(couple.second)
        return Unit(couple.name, item.id, item.messages, self._user(item, item), self._user(item, other))

    def _user(self, asked: Item, owner: Item) -> User:
        posts, _ = self._looker.top(asked, owner, self._k)
        return User(owner.id, self._key_of(owner.id), tuple(post_text(p) for p in posts))


def answer_ask(unit: Unit, side: str, attempt: int, again: Sequence[str], writer: Model) -> Ask:
    """Return the question for one answer; each attempt has a name of its own in the cache, and other words."""
    told = AGAIN.fill(reasons="; ".join(again) or "the other answer failed", number=str(attempt)) if attempt > 1 else ""
    messages = (Message("user", unit.prompt(side, told)),)
    how = writer.how
    settings: dict[str, Any] = {"model": how.model, "max": how.max_tokens, "t": how.temperature, "attempt": attempt}
    key = ask_key(unit.id, f"{side}|{attempt}", messages, settings)
    return Ask(key, unit.item_id, messages, how.max_tokens, how.temperature)


def _posts(user: User) -> str:
    return "\n\n".join(f"[{k}] {text}" for k, text in enumerate(user.posts, 1)) or NOTHING
