"""The gates that need no model: each looks at one answer, or at both, and passes or says why not.

A gate that cannot tell says so (`unknown`): that rejects nothing, and it is counted. What is checked is surface; that
an answer is true, kind and to the point is for a judge to say (`palate.grading.judged`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from palate.grading.language import METHOD, SURE, language_of
from palate.grading.texts import NEAR, Near, is_spaced, likeness, shared_run, words
from palate.records import Key

FEWEST_WORDS, MOST_WORDS = 30, 100
BALANCE = 1.5
LEAK = 6
QUOTE = 12
INSTRUCTION = 8
REPEATS = 3
GRAM = 4

CheckStatus = Literal["pass", "fail", "unknown", "not run", "unparsed", "truncated", "refused", "overlong"]


@dataclass(frozen=True, slots=True)
class Check:
    """What one gate said of one answer (`side`), or of the pair (no side). All but `pass` and `unknown` reject."""

    gate: str
    side: str | None
    status: CheckStatus
    reason: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the pair may go on."""
        return self.status in ("pass", "unknown", "not run")

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"gate": self.gate, "side": self.side, "status": self.status, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Around:
    """What an answer is held against: its question, the posts and keys of its users, instructions, others' answers."""

    owner: str
    question: str
    posts: tuple[str, ...]
    keys: tuple[Key, ...]
    instructions: tuple[str, ...]
    others: Near


@dataclass(frozen=True, slots=True)
class CannotTell:
    """A gate that has no opinion, and why."""

    reason: str


Finding = str | CannotTell | None
AnswerGate = Callable[[str, Around], Finding]
PairGate = Callable[[str, str], Finding]


def check_answer(side: str, text: str, around: Around) -> list[Check]:
    """Return what every gate says of an answer."""
    return [_check(name, side, gate(text, around)) for name, gate in ANSWER_GATES.items()]


def check_pair(chosen: str, rejected: str) -> list[Check]:
    """Return what the gates say that look at both answers."""
    return [_check(name, None, gate(chosen, rejected)) for name, gate in PAIR_GATES.items()]


def thresholds() -> dict[str, Any]:
    """Return all that the gates are set to, for records."""
    return {
        "words": [FEWEST_WORDS, MOST_WORDS],
        "balance": BALANCE,
        "leaked_words": LEAK,
        "quoted_words": QUOTE,
        "instruction_words": INSTRUCTION,
        "near_duplicate": NEAR,
        "repeated": {"words": GRAM, "times": REPEATS},
        "language": {"by": METHOD, "sure": SURE},
    }


def _check(name: str, side: str | None, found: Finding) -> Check:
    if isinstance(found, CannotTell):
        return Check(name, side, "unknown", found.reason)
    return Check(name, side, "fail" if found else "pass", found)


def _words(text: str, around: Around) -> Finding:
    if not is_spaced(text):
        return CannotTell("words do not stand apart in this script, so they are not counted")
    count = len(text.split())
    if FEWEST_WORDS <= count <= MOST_WORDS:
        return None
    return f"{count} words; {FEWEST_WORDS} to {MOST_WORDS} are wanted"


def _refusal(text: str, around: Around) -> Finding:
    plain = text.lower().replace("’", "'")
    found = next((p for p in _list("refusals") if re.search(rf"\b{re.escape(p)}\b", plain)), None)
    return f"it refuses or speaks of itself: {found!r}" if found else None


def _language(text: str, around: Around) -> Finding:
    asked, answered = language_of(around.question), language_of(text)
    if asked is None or answered is None:
        return CannotTell(f"the language of the {'question' if asked is None else 'answer'} is not clear")
    return None if asked == answered else f"the question is in '{asked}', the answer in '{answered}'"


def _safety(text: str, around: Around) -> Finding:
    plain = " ".join(text.lower().replace("’", "'").split())
    found = next((p for p in _list("unsafe") if re.search(rf"\b{re.escape(p)}\b", plain)), None)
    return f"it may harm or insult: {found!r}" if found else None


def _grammar(text: str, around: Around) -> Finding:
    bare = text.rstrip(" \n\"'”’»)]*_")
    if not bare.endswith((".", "!", "?", "…", "。", "！", "？", "।", "؟")):
        return "it ends within a sentence"
    for opening, closing in ("()", "[]", "{}", "“”", "«»"):
        if text.count(opening) != text.count(closing):
            return f"{opening} and {closing} do not match"
    if text.count('"') % 2:
        return 'a " is left open'
    return _repeats(words(text))


def _repeats(found: Sequence[str]) -> str | None:
    grams = Counter(zip(*(found[k:] for k in range(GRAM)), strict=False))
    for gram, times in grams.most_common(1):
        if times >= REPEATS:
            return f"{' '.join(gram)!r} stands in it {times} times"
    for k in range(len(found) - 2):
        if found[k] == found[k + 1] == found[k + 2]:
            return f"{found[k]!r} stands three times in a row"
    return None


def _duplicate(text: str, around: Around) -> Finding:
    other = around.others.find(text, around.owner)
    return f"nearly the text of an answer to '{other}'" if other is not None else None


def _copied(text: str, around: Around) -> Finding:
    if likeness(text, around.question) >= NEAR:
        return "nearly the question itself"
    for post in around.posts:
        if likeness(text, post) >= NEAR:
            return "nearly a post of the user's"
        if run := shared_run(text, post, QUOTE):
            return f"it quotes a post: {run!r}"
    return None


def _leak(text: str, around: Around) -> Finding:
    for key in around.keys:
        hidden = [part for a in key.aspects for part in (a.aspect, a.evidence, a.reason)]
        for other in (*hidden, key.narrative or ""):
            if run := shared_run(text, other, LEAK, allowed=around.question):
                return f"wording of the rubric or narrative: {run!r}"
    return None


def _instructions(text: str, around: Around) -> Finding:
    for prompt in around.instructions:
        if run := shared_run(text, prompt, INSTRUCTION, allowed=around.question):
            return f"wording of the instructions: {run!r}"
    return "a placeholder of a prompt" if "{{" in text or "}}" in text else None


def _characters(text: str, around: Around) -> Finding:
    if not any(c.isalpha() for c in text):
        return "there is no letter in it"
    for c in text:
        odd = unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs") and c not in "\n\t\u200c\u200d"
        if odd or c == "\ufffd":
            return f"the character U+{ord(c):04X}"
    return None


def _alike(chosen: str, rejected: str) -> Finding:
    share = likeness(chosen, rejected)
    return f"the answers are nearly the same (likeness {share:.2f})" if share >= NEAR else None


def _balance(chosen: str, rejected: str) -> Finding:
    if not (is_spaced(chosen) and is_spaced(rejected)):
        return CannotTell("words do not stand apart in this script, so they are not counted")
    short, long = sorted((len(chosen.split()), len(rejected.split())))
    return None if long <= BALANCE * short else f"{short} words against {long}"


ANSWER_GATES: Mapping[str, AnswerGate] = MappingProxyType(
    {
        "words": _words,
        "refusal": _refusal,
        "language": _language,
        "safety": _safety,
        "grammar": _grammar,
        "characters": _characters,
        "duplicate": _duplicate,
        "copied": _copied,
        "leak": _leak,
        "instructions": _instructions,
    }
)
PAIR_GATES: Mapping[str, PairGate] = MappingProxyType({"alike": _alike, "balance": _balance})


@cache
def _list(name: str) -> tuple[str, ...]:
    text = (files("palate.grading") / "lists" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(filter(None, text.splitlines()))
