"""Reading graders' replies: 0, 1 or 2, strictly. What is not exactly that is unparsed, never 0."""

from typing import Any

from palate.llm.replies import SCORE_PARSERS, Parsed, Unparsed, number, read_object

LOW, HIGH = 0, 2
NOT_WHOLE = Unparsed("not 0, 1 or 2")


def read_level(text: str, parser: str = "score") -> Parsed[int] | Unparsed:
    """Return the level that a reply about one aspect gives, by one of `SCORE_PARSERS`.

    `{"score": 2}`, `{"score": "2"}` and `2/2` are 2, in a fence or after words too; 1.5, `8/10` and `[2, 1, 0]` are
    nothing.
    """
    found = SCORE_PARSERS[parser](text, LOW, HIGH)
    return found if isinstance(found, Unparsed) else _whole(found.value)


def read_levels(text: str, count: int) -> Parsed[tuple[int, ...]] | Unparsed:
    """Return the levels of aspects 1 to `count` from `{"scores": [{"aspect": 1, "score": 2}, …]}`.

    There has to be exactly one entry for each aspect, in any order.
    """
    found = read_object(text)
    if isinstance(found, Unparsed):
        return found
    entries = found.get("scores")
    if not isinstance(entries, list):
        return Unparsed("no list of scores")
    levels: dict[int, int] = {}
    for entry in entries:
        one = _entry(entry, count)
        if isinstance(one, Unparsed):
            return one
        name, level = one.value
        if name in levels:
            return Unparsed(f"two scores for aspect {name}")
        levels[name] = level
    missing = [k for k in range(1, count + 1) if k not in levels]
    if missing:
        return Unparsed(f"no score for aspect {', '.join(map(str, missing))}")
    return Parsed(tuple(levels[k] for k in range(1, count + 1)))


def _entry(entry: Any, count: int) -> Parsed[tuple[int, int]] | Unparsed:
    if not isinstance(entry, dict) or not {"aspect", "score"} <= entry.keys():
        return Unparsed("an entry without aspect and score")
    name = number(entry["aspect"], 1, count)
    if isinstance(name, Unparsed) or not name.is_integer():
        return Unparsed("an entry for an aspect that was not asked about")
    level = number(entry["score"], LOW, HIGH)
    if isinstance(level, Unparsed):
        return level
    whole = _whole(level)
    return whole if isinstance(whole, Unparsed) else Parsed((int(name), whole.value))


def _whole(value: float) -> Parsed[int] | Unparsed:
    return Parsed(int(value)) if value.is_integer() else NOT_WHOLE
