"""A stub of a generator and of a judge: plausible answers, each once, and verdicts that know what was asked of them."""

import json
import random
import re
from collections.abc import Callable
from itertools import cycle

from llm.stub import Asked, Reply, Rule

OPENINGS = ("Begin with", "Look out for", "Set aside", "Think about", "Put together", "Come back to", "Try out", "Plan")
THINGS = (
    "a quiet corner", "the old toolbox", "two free evenings", "a borrowed map", "fresh bread", "the market square",
    "a warm jacket", "some printed sheets", "the local library", "a simple recipe", "good company", "a long walk",
    "the spare room", "an early start", "a short list", "the river path", "a steady rhythm", "the garden shed",
)  # fmt: skip
ENDINGS = (
    "before the week is over", "whenever the weather allows it", "since it makes the rest easier", "without any hurry",
    "as soon as you feel ready", "because habits grow slowly", "while the mood is good", "and keep notes on it",
    "until it feels natural", "so that nothing gets lost", "as others have done before you", "on a calm morning",
)  # fmt: skip
WISH = re.compile(r"^\d+\. (.+)$", re.MULTILINE)


def prose(seed: str, words: int = 80) -> str:
    """Return about so many words of connected English, the same for the same seed."""
    draw, text = random.Random(seed), ""
    mixed = [draw.sample(part, len(part)) for part in (OPENINGS, THINGS, ENDINGS)]
    opening, thing, ending = (cycle(part) for part in mixed)
    while len(text.split()) < words - 6:
        text += f"{next(opening)} {next(thing)} and {next(thing)} {next(ending)}. "
    return text.strip()


def part(prompt: str, start: str, end: str) -> str:
    """Return what stands in a prompt between two lines."""
    return prompt.split(start, 1)[1].split(end, 1)[0].strip()


def kind(prompt: str) -> str:
    """Return which of the prompts a request is."""
    for name, mark in {
        "opposed": "You say whether they want opposite answers",
        "quality": "You say how good an answer is",
        "aspect": "You say what an answer does about one wish",
        "key": "You work out what one person wants",
        "twin": "Another person asks the same and wants the opposite",
        "break": "Take each of these things as unwanted",
        "keep": "Write an answer that gives this person every one",
    }.items():
        if mark in prompt:
            return name
    raise AssertionError(prompt)


class Author:
    """Writes answers and remembers what each was to keep and to break, so that it can judge them too."""

    def __init__(self, write: Callable[[str], str | Reply] = prose, judge: Rule | None = None) -> None:
        self.write = write
        self.judge = judge
        self.wanted: dict[str, tuple[list[str], list[str]]] = {}

    def __call__(self, asked: Asked) -> Reply:
        prompt = asked.prompt
        what = kind(prompt)
        if what in ("keep", "break", "twin"):
            return self._answer(what, prompt)
        if what == "opposed":
            return Reply(json.dumps({"reason": "They differ.", "verdict": "opposed"}))
        if self.judge is not None:
            return self.judge(asked)
        if what == "quality":
            return Reply(json.dumps({"reason": "It is sound.", "score": 4, "safe": "yes"}))
        kept, broken = self.wanted[asked.first]
        wish = part(prompt, "The wish of a person who asks it:", "The answer follows")
        verdict = "kept" if wish in kept else "broken" if wish in broken else "neither"
        return Reply(json.dumps({"reason": "So it is.", "verdict": verdict}))

    def _answer(self, what: str, prompt: str) -> Reply:
        found = self.write(prompt)
        if isinstance(found, Reply):
            return found
        if what == "twin":
            wanted = part(prompt, "What the first person wants of an answer:", "What the other person wants")
            unwanted = part(prompt, "What the other person wants of an answer:", "Write an answer for")
            self.wanted[found] = WISH.findall(wanted), WISH.findall(unwanted)
        else:
            wishes = WISH.findall(part(prompt, "What this person wants of an answer:", "Rules for the answer"))
            self.wanted[found] = (wishes, []) if what == "keep" else ([], wishes)
        return Reply(found)
