"""Collecting what is wrong with a data file, so that many faults are told at once and none is dropped in silence."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from palate.data.lines import describe
from palate.errors import DataError, did_you_mean

SHOWN = 20
SYNONYMS = {
    "question": ("prompt", "query", "instruction", "input", "questions"),
    "prompt": ("question", "query", "instruction", "input"),
    "chosen": ("answer", "preferred", "winner", "accepted", "response", "positive", "chosen_response"),
    "rejected": ("dispreferred", "loser", "response", "negative", "other", "rejected_response"),
    "responses": ("response", "answers", "completions", "samples", "candidates", "outputs"),
    "profile": ("history", "posts"),
    "text": ("content", "body", "post"),
    "content": ("text", "value"),
    "role": ("from", "speaker"),
    "context": ("messages", "conversation", "prompt"),
    "user_id": ("user", "userid", "author"),
    "id": ("qid", "item_id", "question_id", "uid"),
}
_EXPECTED = {
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "int_type": "a whole number",
    "bool_type": "true or false",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: where (file, and line or record), and what."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(slots=True)
class Problems:
    """Faults met so far: the first `SHOWN` are kept in words, the others counted."""

    kept: list[Problem] = field(default_factory=list)
    total: int = 0

    def add(self, where: str, text: str) -> None:
        """Note one fault."""
        self.total += 1
        if len(self.kept) < SHOWN:
            self.kept.append(Problem(where, text))

    def extend(self, where: str, texts: Iterable[str]) -> None:
        """Note several faults of one record."""
        for text in texts:
            self.add(where, text)

    def error(self, name: str, advice: str) -> DataError:
        """Return the error that tells them all."""
        shown = tuple(str(p) for p in self.kept)
        more = f"\n  … and {self.total - len(shown)} more" if self.total > len(shown) else ""
        noun = "problem" if self.total == 1 else "problems"
        listing = "\n".join(f"  {line}" for line in shown)
        return DataError(f"{name}: {self.total} {noun}\n{listing}{more}\n{advice}", shown)


def explain(error: ValidationError, row: dict[str, Any]) -> list[str]:
    """Return pydantic's findings about `row` in our words: field, expected, found, nearest name."""
    texts: list[str] = []
    types: dict[str, tuple[list[str], Any]] = {}
    deeper: set[str] = set()
    for finding in error.errors(include_url=False):
        missing = finding["type"] == "missing"
        loc = _real(finding["loc"], row, missing=missing)
        where = path_of(loc)
        deeper.update(path_of(loc[:k]) for k in range(1, len(loc)))
        if missing:
            texts.append(_missing(where, loc, row))
        elif finding["type"] in _EXPECTED:
            types.setdefault(where, ([], finding["input"]))[0].append(_EXPECTED[finding["type"]])
        else:
            prefix = "" if where == "record" else f"{where}: "
            found = "" if where == "record" else f", found {describe(finding['input'])}"
            texts.append(f"{prefix}{finding['msg']}{found}")
    for where, (expected, found) in types.items():
        if where in deeper:
            continue  # another branch of the union fits better, and its faults are told
        texts.append(f"{where}: expected {' or '.join(dict.fromkeys(expected))}, found {describe(found)}")
    return list(dict.fromkeys(texts))


def path_of(loc: tuple[int | str, ...]) -> str:
    """Return a place in a record as `profile[3].text`."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path or "record"


def _real(loc: tuple[int | str, ...], row: Any, *, missing: bool) -> tuple[int | str, ...]:
    """Return `loc` without the names pydantic adds for the branches of a union."""
    kept: list[int | str] = []
    holder = row
    for k, part in enumerate(loc):
        if isinstance(holder, list) and isinstance(part, int):
            holder = holder[part]
        elif isinstance(holder, dict) and (part in holder or (missing and k == len(loc) - 1)):
            holder = holder.get(part)
        else:
            continue
        kept.append(part)
    return tuple(kept)


def _missing(where: str, loc: tuple[int | str, ...], row: dict[str, Any]) -> str:
    holder: Any = row
    for part in loc[:-1]:
        holder = holder[part]
    return f"{where}: the required field is missing.{likely(str(loc[-1]), [k for k in holder if isinstance(k, str)])}"


def likely(name: str, found: Collection[str]) -> str:
    """Return the field that may have been meant by `name`, and all that were found."""
    near = next((s for s in SYNONYMS.get(name, ()) if s in found), None)
    hint = f" Did you mean '{near}'?" if near else did_you_mean(name, found)
    listed = f" Found: {', '.join(found) or 'nothing'}."
    return listed if not hint or hint.startswith(" Known") else f"{hint}{listed}"
