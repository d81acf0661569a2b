"""From groups of token lists to one number a text: the prompt encoded once where that works, else whole texts.

Sharing is tried on one group before it is believed, for each way of going through the model: its numbers must be those
of the texts alone. If they are not, or if anything fails, whole texts are encoded and the run says so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite, log10
from typing import Any

from palate.errors import ModelError
from palate.rewards.prefix.plan import Bundle, Row, Text, bundle, chunks, packs

LEAST_SAVED = 32
TOLERANCE = {"float32": 1e-4, "float64": 1e-4}
COARSE = 5e-2


@dataclass(frozen=True, slots=True)
class Limits:
    """What goes through the model at once.

    `batch` bounds the tokens of a pass over whole texts, padding counted; `answers` those of a pass over answers
    behind a prompt, and `cells` its pairs of a token with one it may look at; `pack` the tokens of several short
    groups that go together.
    """

    batch: int
    answers: int
    cells: int
    pack: int

    @classmethod
    def of(cls, batch: int | None, device: str, vocabulary: int | None = None) -> "Limits":
        """Return limits for a device; with a `vocabulary` the logits of a pass stay under half a gigabyte.

        Without a `batch` it is 2,048 tokens on a CPU, whose caches more would not fit, and 8,192 elsewhere.
        """
        cpu = device == "cpu"
        batch = batch or (2048 if cpu else 8192)
        answers = min(batch, max(1, 2**27 // vocabulary)) if vocabulary else batch
        return cls(batch, answers, 2**21 if cpu else 2**25, min(batch, 1024) if cpu else batch)


@dataclass(frozen=True, slots=True)
class Why:
    """Why a text has no number."""

    text: str


Whole = Callable[[Sequence[Text]], list[float]]
Read = Callable[[Any, Sequence[Row]], list[float]]


@dataclass(slots=True)
class Engine:
    """Runs one loaded model.

    `whole` gives the numbers of a batch of whole texts, `read` those of rows behind a prompt from the model's output;
    `pad` chooses an id for padding and may tell the model. `window` is that of sliding attention. `alone` says why
    texts cannot share a batch, if so; `off` why prompts are not shared; `two_parts` whether attention may look at the
    prompt and at the answer apart.
    """

    model: Any
    whole: Whole
    read: Read
    pad: Callable[[Sequence[Sequence[int]]], int]
    limits: Limits
    tolerance: float
    window: int | None = None
    off: str | None = None
    alone: str | None = None
    two_parts: bool = True
    _gaps: dict[str, float] = field(default_factory=dict)
    _tried: set[tuple[str, bool]] = field(default_factory=set)

    @property
    def sharing(self) -> str:
        """Whether prompts are shared, and how near shared numbers came to those of whole texts, for the record."""
        if self.off:
            return f"off: {self.off}"
        if not self._gaps:
            return "on; not needed yet"
        told = ", ".join(f"{kind} within {_power(gap):.0e}" for kind, gap in sorted(self._gaps.items()))
        return f"on; against whole texts: {told}"

    def check_batches(self, texts: Sequence[Text]) -> None:
        """Try once whether a batch gives the numbers of single texts; if not, batches are off."""
        together = self.whole(texts)
        gap = max(abs(a - self.whole([t])[0]) for a, t in zip(together, texts, strict=True))
        if gap > self.tolerance:
            self.alone = f"one text at a time: a batch moved a score by {gap:.2g}"

    def values(self, groups: Sequence[Sequence[Text]]) -> Iterator[tuple[int, int, float | Why]]:
        """Yield (group, place in it, number or reason) for each text, in any order."""
        numbered = [(k, bundle(texts)) for k, texts in enumerate(groups) if texts]
        shared = [] if self.off else [(k, b) for k, b in numbered if b.saved >= LEAST_SAVED and not _paired(b)]
        taken = {k for k, _ in shared}
        for pack in packs([b for _, b in shared], self.limits.pack):
            part = [shared[n] for n in pack]
            found = self._shared([b for _, b in part])
            if found is None:
                taken -= {k for k, _ in part}
            else:
                yield from _spread(part, found)
        yield from self._whole([(k, b) for k, b in numbered if k not in taken])

    def _shared(self, pack: Sequence[Bundle]) -> list[list[float]] | None:
        """Return the numbers of each bundle's texts, or None if they have to take the ordinary path."""
        import torch

        if self.off:
            return None
        try:
            return self._checked(pack)
        except torch.cuda.OutOfMemoryError:
            return None
        except ModelError:
            raise
        except Exception as bad:  # noqa: BLE001 - whatever a stranger's model does with a cache, whole texts still work
            self.off = f"{type(bad).__name__}: {str(bad).partition(chr(10))[0][:200]}"
        return None

    def _checked(self, pack: Sequence[Bundle]) -> list[list[float]] | None:
        """Return the numbers if they can be believed; attention in two parts is given up before sharing is."""
        while not self.off:
            two_parts = self.two_parts
            try:
                found = self._pass(pack)
                why = self._differs(pack, found)
            except (RuntimeError, NotImplementedError, AttributeError, KeyError, TypeError):
                if not two_parts:
                    raise
                why = "it failed"
            if why is None:
                return found
            if two_parts:
                self.two_parts = False
            else:
                self.off = why
        return None

    def _pass(self, pack: Sequence[Bundle]) -> list[list[float]]:
        from palate.rewards.prefix.encoded import Prompts

        pad = self.pad([t.ids for b in pack for t in b.texts])
        prompts = Prompts(self.model, [b.prefix for b in pack], pad, self.two_parts)
        rows = sorted((r for k, b in enumerate(pack) for r in b.rows(k)), key=lambda r: len(r.ids))
        longest = max(b.size for b in pack)
        found: dict[int, float] = {}
        limits = self.limits
        for span in chunks([len(r.ids) for r in rows], longest, limits.answers, limits.cells):
            part = [rows[k] for k in span]
            found.update(zip(map(id, part), self._continued(prompts, part), strict=True))
        values: list[list[float]] = [[] for _ in pack]
        for row in rows:
            values[row.prompt].append(found[id(row)])
        return values

    def _continued(self, prompts: Any, rows: Sequence[Row]) -> list[float]:
        import torch

        try:
            return self.read(prompts.continued(rows), rows)
        except torch.cuda.OutOfMemoryError:
            if len(rows) == 1:
                raise
        middle = len(rows) // 2
        return self._continued(prompts, rows[:middle]) + self._continued(prompts, rows[middle:])

    def _differs(self, pack: Sequence[Bundle], found: Sequence[Sequence[float]]) -> str | None:
        """Return how far shared numbers lie from those of whole texts if that is too far, once for each way."""
        kind = "one prompt" if len(pack) == 1 else "several prompts"
        if self.window and max(b.size + b.longest for b in pack) > self.window:
            kind += " beyond the sliding window"
        if (kind, self.two_parts) in self._tried:
            return None
        tried = list(zip(pack[0].texts, found[0], strict=True))[-2:]
        gap = max(_gap(value, self.whole([text])[0]) for text, value in tried)
        if not gap <= self.tolerance:
            return f"{kind}: a shared prompt moved a score by {gap:.2g}"
        self._tried.add((kind, self.two_parts))
        self._gaps[kind] = max(gap, self._gaps.get(kind, 0.0))
        return None

    def _whole(self, numbered: Sequence[tuple[int, Bundle]]) -> Iterator[tuple[int, int, float | Why]]:
        texts = [(k, owners, t) for k, b in numbered for t, owners in zip(b.texts, b.owners, strict=True)]
        texts.sort(key=lambda one: len(one[2]))
        for span in self._batches([len(t) for *_, t in texts]):
            part = [texts[n] for n in span]
            for (k, owners, _), value in zip(part, self._batch([t for *_, t in part]), strict=True):
                for place in owners:
                    yield k, place, value

    def _batches(self, lengths: Sequence[int]) -> Iterator[range]:
        if self.alone:
            return iter([range(k, k + 1) for k in range(len(lengths))])
        return chunks(lengths, 0, self.limits.batch, 2**62)

    def _batch(self, texts: Sequence[Text]) -> list[float | Why]:
        import torch

        try:
            return list(self.whole(texts))
        except torch.cuda.OutOfMemoryError as full:
            if len(texts) == 1:
                return [Why(f"out of memory: {len(texts[0])} tokens ({full})")]
        middle = len(texts) // 2
        return self._batch(texts[:middle]) + self._batch(texts[middle:])


def _paired(made: Bundle) -> bool:
    return any(t.segments for t in made.texts)


def _spread(
    part: Sequence[tuple[int, Bundle]], found: Sequence[Sequence[float]]
) -> Iterator[tuple[int, int, float | Why]]:
    for (k, made), values in zip(part, found, strict=True):
        for owners, value in zip(made.owners, values, strict=True):
            for place in owners:
                yield k, place, value


def _gap(shared: float, whole: float) -> float:
    """Return how far two numbers lie apart, large ones in proportion; two that are not finite are alike."""
    if not isfinite(shared) and not isfinite(whole):
        return 0.0
    return abs(shared - whole) / max(1.0, abs(whole))


def _power(gap: float) -> float:
    """Return the power of ten at or above a gap, 1e-5 at least, so that a record does not move with the last digits."""
    return float(10.0 ** max(-5, ceil(log10(gap)))) if gap > 0 else 1e-5


def tolerance_of(dtype: Any) -> float:
    """Return how far two ways of computing a number may lie apart in a dtype of torch."""
    return TOLERANCE.get(str(dtype).removeprefix("torch."), COARSE)


def sliding_window(model: Any) -> int | None:
    """Return the tokens that a sliding attention layer sees, or None if the model has none."""
    size = getattr(model.config.get_text_config(), "sliding_window", None)
    return size if isinstance(size, int) else None


def unused(texts: Sequence[Sequence[int]], own: int | None) -> int:
    """Return an id for padding that occurs in no text: the tokenizer's own if it can be used, else the smallest."""
    used = set[int]().union(*texts)
    if own is not None and own not in used:
        return int(own)
    return next(k for k in range(len(used) + 1) if k not in used)
