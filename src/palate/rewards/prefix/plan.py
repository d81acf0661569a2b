"""What is shared, and what goes through the model together: token lists only, no model.

A group's texts are tokenized whole, each as if it were alone, and share their longest common run of first tokens. So a
tokenizer that merges the end of the prompt with the start of an answer only makes the shared part one token shorter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHORT = 64


@dataclass(frozen=True, slots=True)
class Text:
    """A text as a model reads it.

    `segments` tells the two texts of a pair apart, where the tokenizer does. `answer` is the place of the answer's
    first token, for models whose number is about the answer's tokens.
    """

    ids: tuple[int, ...]
    segments: tuple[int, ...] | None = None
    answer: int = 0

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Row:
    """One text behind an encoded prompt: the number of the prompt, the tokens after it, and where the answer starts."""

    prompt: int
    ids: Sequence[int]
    answer: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """The distinct texts of one group, shortest first, which have their first `size` tokens in common.

    `owners[i]` are the places of `texts[i]` in the group: equal texts are scored once, so that they tie exactly.
    """

    size: int
    texts: tuple[Text, ...]
    owners: tuple[tuple[int, ...], ...]

    @property
    def prefix(self) -> tuple[int, ...]:
        """The common tokens."""
        return self.texts[0].ids[: self.size]

    @property
    def longest(self) -> int:
        """Tokens of the longest text after the common ones."""
        return len(self.texts[-1]) - self.size

    @property
    def saved(self) -> int:
        """Tokens that need not be encoded again."""
        return (len(self.texts) - 1) * self.size

    def rows(self, prompt: int) -> list[Row]:
        """Return what follows the common tokens in each text; `prompt` is the number these get."""
        return [Row(prompt, t.ids[self.size :], t.answer - self.size) for t in self.texts]


def bundle(texts: Sequence[Text]) -> Bundle:
    """Find what the texts of a group, none of them empty, have in common.

    At least the last token of each text stays outside, and if the answers' tokens count, the token before the answer:
    the model's output there is what is read.
    """
    places: dict[Text, list[int]] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, []).append(place)
    order = sorted(places, key=lambda t: (len(t), t.ids))
    most = min((t.answer or len(t)) - 1 for t in order)
    return Bundle(_common(order, most), tuple(order), tuple(tuple(places[t]) for t in order))


def _common(texts: Sequence[Text], most: int) -> int:
    first, last = min(t.ids for t in texts), max(t.ids for t in texts)
    return next((k for k in range(most) if first[k] != last[k]), max(most, 0))


def packs(bundles: Sequence[Bundle], tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of bundles of like length that go together: prompts and answers, padded, within `tokens`.

    A bundle that is longer than that goes alone.
    """
    held: list[int] = []
    for number in sorted(range(len(bundles)), key=lambda k: (bundles[k].size, bundles[k].longest)):
        if held and _padded([bundles[k] for k in (*held, number)]) > tokens:
            yield held
            held = []
        held.append(number)
    if held:
        yield held


def _padded(held: Sequence[Bundle]) -> int:
    prompts = len(held) * max(b.size for b in held)
    return prompts + sum(len(b.texts) for b in held) * max(b.longest for b in held)


def chunks(lengths: Sequence[int], prompt: int, tokens: int, cells: int) -> Iterator[range]:
    """Yield ranges of answers, given shortest first, that go through the model together; at least one each.

    Args:
        lengths: tokens of each answer, ascending.
        prompt: tokens of the longest prompt before them.
        tokens: most answer tokens of a pass, padding counted.
        cells: most pairs of an answer token and a token that it may look at. Bounds attention scores and masks, and,
            since an answer counts as at least 64 tokens, the copies of the prompt's keys and values.
    """
    start = 0
    for end in range(1, len(lengths) + 1):
        if end < len(lengths):
            width, count = lengths[end], end + 1 - start
            if count * width <= tokens and count * max(width, SHORT) * (prompt + width) <= cells:
                continue
        yield range(start, end)
        start = end
