"""The view strings: which context, and whose."""

from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import quote

from palate.data.donors import NEAREST
from palate.errors import SpecError, did_you_mean
from palate.records import UserOf
from palate.retrieval.base import K
from palate.spec import Spec

ViewName = Literal["question", "history", "plan", "oracle"]
NAMES: tuple[str, ...] = get_args(ViewName)
SHORT = {"swapped": "history?user=other"}
DEFAULT_PLANNER = "keyphrase"


@dataclass(frozen=True, slots=True)
class View:
    """A view: `question`, `history`, `plan` or `oracle`, with the user's own context, another's, or filler.

    `k` posts are shown under `history`, and read by the planner under `plan`. `seed` and `draws` choose the donors of
    `user=other`; scores are averaged over draws. `planner` is a planner string, which matters under `plan` alone.
    """

    name: ViewName
    user: UserOf = "own"
    k: int = K
    seed: int = 0
    draws: int = 1
    planner: str = DEFAULT_PLANNER

    @classmethod
    def parse(cls, text: str) -> "View":
        """Read a view string such as `question`, `history?user=none`, `swapped`, `plan?planner=…` or `oracle`.

        A planner string inside it has its `?`, `=` and `&` percent-encoded.

        Raises:
            SpecError: an unknown view, option or value.
        """
        head, mark, rest = text.strip().partition("?")
        if head in SHORT:
            text = SHORT[head] + ("&" + rest if mark else "")
        spec = Spec.parse(text, "view")
        if spec.head not in NAMES or spec.revision:
            raise SpecError(f"view '{text}': unknown.{did_you_mean(spec.head, [*NAMES, *SHORT])}")
        name = cast(ViewName, spec.head)
        spec.only(_options(name, spec.options.get("user")), f"view ({name})")
        user = cast(UserOf, spec.choice("user", get_args(UserOf), "own", "view"))
        return cls(
            name,
            user,
            spec.whole("k", K, "view", least=1),
            spec.whole("seed", 0, "view"),
            _draws(spec),
            spec.options.get("planner", DEFAULT_PLANNER),
        )

    def __str__(self) -> str:
        options = [f"planner={quote(self.planner, safe='/:.-_~+')}"] if self._plans_specially else []
        options += [f"user={self.user}"] if self.user != "own" else []
        options += [f"k={self.k}"] if self.k != K and self.reads_posts else []
        options += [f"seed={self.seed}"] if self.seed else []
        options += [f"draws={self.draws}"] if self.draws > 1 else []
        return self.name + ("?" + "&".join(options) if options else "")

    @property
    def label(self) -> str:
        """The string shown to people: `swapped` for another user's history."""
        text = str(self)
        if self.name == "history" and self.user == "other":
            rest = text.removeprefix("history?user=other").removeprefix("&")
            return "swapped" + (f"?{rest}" if rest else "")
        return text

    @property
    def reads_posts(self) -> bool:
        """Whether posts are ranked for it: to be shown, or for the planner."""
        return self.name in ("history", "plan")

    @property
    def _plans_specially(self) -> bool:
        return self.name == "plan" and self.planner != DEFAULT_PLANNER


def _draws(spec: Spec) -> int:
    draws = spec.whole("draws", 1, "view", least=1)
    if draws > NEAREST:
        raise SpecError(f"view '{spec}': draws={draws} is more than the {NEAREST} nearest donors.")
    return draws


def _options(name: str, user: str | None) -> tuple[str, ...]:
    if name == "question":
        return ()
    donors = ("seed", "draws") if user == "other" else ()
    read = {"history": ("k",), "plan": ("k", "planner")}.get(name, ())
    return ("user", *donors, *read)
