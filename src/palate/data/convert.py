"""Bringing data into Palate's own form: known forms as they are, others by a map of fields."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from palate.data.dataset import Dataset, open_data
from palate.data.formats import FIELDS
from palate.data.lines import BadLine, parse_object, read_lines
from palate.data.source import locate, parse
from palate.data.written import new_file
from palate.errors import DataError, SpecError, did_you_mean
from palate.records import Key, Post
from palate.spec import Spec


def convert_data(data: str, out: Path, maps: Sequence[str] = ()) -> int:
    """Write `data` to `out` and check the result; return the number of records.

    Args:
        data: a data string.
        out: a `.jsonl` file that does not exist yet.
        maps: `field=source`; a source is a column, or a path such as `options.0`.

    Raises:
        DataError: the output exists, a source is not there, or the result has problems; nothing is left behind then.
        SpecError: a map that cannot be read.
    """
    pairs = [_pair(text) for text in maps]
    rows = _mapped(data, pairs) if pairs else _known(open_data(data))
    with new_file(out, ".jsonl") as temporary:
        try:
            with temporary.open("w", encoding="utf-8") as handle:
                for row in rows:
                    handle.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
            return len(open_data(str(Spec(str(temporary)))))
        except DataError as bad:
            texts = [text.replace(temporary.stem, out.stem) for text in (str(bad), *bad.problems)]
            raise DataError(texts[0], tuple(texts[1:])) from None


def _pair(text: str) -> tuple[str, str]:
    field, eq, source = text.partition("=")
    if not eq or not source:
        raise SpecError(f"map {text!r} must look like field=source.")
    if field not in FIELDS:
        raise SpecError(f"map {text!r}: unknown field '{field}'.{did_you_mean(field, FIELDS)}")
    return field, source


def _mapped(data: str, pairs: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield rows with the mapped fields set; columns that are not mapped stay."""
    for part in locate(parse(data)).parts:
        with part.path.open("rb") as handle:
            for line in read_lines(handle):
                if not line.raw.strip():
                    continue
                where = part.at(line.number)
                try:
                    row = parse_object(line.raw)
                except BadLine as bad:
                    raise DataError(f"{where}: {bad}") from None
                moved = {field: _take(row, source, where) for field, source in pairs}
                used = {source for _, source in pairs}
                kept = {k: v for k, v in row.items() if k not in used}
                yield ({} if part.domain == "all" else {"domain": part.domain}) | kept | moved


def _take(row: Mapping[str, Any], source: str, where: str) -> Any:
    if source in row:
        return row[source]
    value: Any = row
    for part in source.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            known = list(value) if isinstance(value, Mapping) else []
            raise DataError(f"{where}: no '{part}' of '{source}'.{did_you_mean(part, known)}")
    return value


def _known(data: Dataset) -> Iterator[dict[str, Any]]:
    for item_id in data.ids:
        item, key, answers = data.get(item_id), data.key(item_id), data.answers(item_id)
        row: dict[str, Any] = {
            "id": item.id,
            "user_id": item.user_id,
            "domain": item.domain,
            "category": item.category,
        }
        if len(item.messages) == 1:
            row["question"] = item.question
        else:
            row["messages"] = [{"role": m.role, "content": m.content} for m in item.messages]
        row |= {"profile": [_post(p) for p in item.posts], "persona": item.persona, "twin": item.twin}
        row |= _key(key) | _answers(answers)
        yield {k: v for k, v in row.items() if v is not None} | {k: v for k, v in item.extra.items() if k not in row}


def _post(post: Post) -> dict[str, str]:
    fields = ("id", "category", "text", "date", "prompt", "rejected")
    return {name: getattr(post, name) for name in fields if getattr(post, name) is not None}


def _key(key: Key | None) -> dict[str, Any]:
    if key is None:
        return {}
    aspects = [{"aspect": a.aspect, "evidence": a.evidence, "reason": a.reason} for a in key.aspects]
    return {"rubric_aspects": aspects, "narrative": key.narrative}


def _answers(answers: Sequence[Any]) -> dict[str, Any]:
    if answers and answers[0].role == "sample":
        return {"responses": [a.text for a in answers]}
    return {a.role: a.text for a in answers}
