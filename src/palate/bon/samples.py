"""Samples: N answers an item, one line each in `samples.jsonl`, made by a policy, read from a file, or of the data."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from palate.data import Dataset
from palate.errors import DataError
from palate.llm.replies import Unparsed, without_thoughts
from palate.records import Answer, Call, Status

SAMPLES = "samples.jsonl"
MOST_SHOWN = 20
Row = Mapping[str, Any]


class SampleRow(BaseModel):
    """A line of a file of samples; unknown fields are left alone."""

    model_config = ConfigDict(extra="allow", strict=True)

    item_id: str
    k: int
    status: Status
    text: str | None = None
    id: str | None = None
    finish_reason: str | None = None
    policy: str | None = None
    view: str | None = None


def sample_id(item_id: str, place: int) -> str:
    """Return the id of an item's sample number `place`, counted from 0 in the order of sampling."""
    return f"{item_id}@{place}"


def sample_row(item_id: str, place: int, call: Call, policy: str, view: str, seed: int) -> dict[str, Any]:
    """Return the line of a sample; a model's thoughts are no part of its answer, and an open thought is none."""
    text = without_thoughts(call.text or "") if call.status in ("ok", "truncated") else ""
    status, note = call.status, call.note
    if isinstance(text, Unparsed):
        status, note, text = "truncated", text.reason, ""
    elif status in ("ok", "truncated") and not text.strip():
        status, note = "unparsed" if status == "ok" else status, note or "the reply is empty"
    return {
        "id": sample_id(item_id, place),
        "item_id": item_id,
        "k": place,
        "status": status,
        "text": text.strip() or None,
        "finish_reason": call.finish_reason,
        "policy": policy,
        "view": view,
        "seed": seed,
        "usage": call.usage,
        "note": note,
    }


def is_live(row: Row | None) -> bool:
    """Whether a sample can be scored: it has a text. One that was cut at the limit of tokens is an answer too."""
    return row is not None and row["status"] in ("ok", "truncated") and bool((row.get("text") or "").strip())


def answer_of(row: Row) -> Answer:
    """Return a live sample as an answer."""
    return Answer(row["id"], row["item_id"], row["text"], "sample")


def read_samples(path: Path, data: Dataset) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a file of samples in its order, and the digest of the file.

    Raises:
        DataError: up to 20 problems at once, each with its line.
    """
    if not path.is_file():
        raise DataError(f"samples '{path}': no such file.")
    raw = path.read_bytes()
    rows: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        found = _row(line, data)
        if isinstance(found, dict) and found["id"] in rows:
            found = f"sample {found['id']} is there twice"
        if isinstance(found, str):
            problems.append(f"line {number}: {found}")
        else:
            rows[found["id"]] = found
    if problems:
        shown = "\n".join(problems[:MOST_SHOWN])
        more = f"\n… and {len(problems) - MOST_SHOWN} more" if len(problems) > MOST_SHOWN else ""
        raise DataError(f"{path}: {len(problems)} lines are no samples.\n{shown}{more}", tuple(problems[:MOST_SHOWN]))
    if not rows:
        raise DataError(f"{path}: it holds no samples.")
    return list(rows.values()), hashlib.sha256(raw).hexdigest()


def _row(line: bytes, data: Dataset) -> dict[str, Any] | str:
    try:
        given = SampleRow.model_validate(json.loads(line, parse_constant=_refuse))
    except ValidationError as bad:
        first = bad.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except ValueError as bad:
        return f"not strict JSON ({bad})"
    if given.item_id not in data.entries:
        return f"no item '{given.item_id}' in the data"
    if given.k < 0:
        return f"k is {given.k}; it counts from 0"
    name = sample_id(given.item_id, given.k)
    if given.id not in (None, name):
        return f"id '{given.id}' should be '{name}'"
    if given.status == "ok" and not (given.text or "").strip():
        return "status is ok but there is no text"
    return given.model_dump() | {"id": name}


def _refuse(name: str) -> Any:
    raise ValueError(name)


def of_data(data: Dataset) -> list[dict[str, Any]]:
    """Return the answers of best-of-N data as samples.

    Raises:
        DataError: the data has none.
    """
    if data.format != "best-of-n":
        raise DataError(
            f"{data.name}: it holds no samples ({data.format}). Name a policy (--policy llm/<model>) or a file "
            "of samples (--samples FILE)."
        )
    rows = []
    for item_id in data.ids:
        for place, answer in enumerate(data.answers(item_id)):
            status = "ok" if answer.text.strip() else "unparsed"
            row = {"item_id": item_id, "k": place, "status": status, "text": answer.text.strip() or None}
            rows.append({"id": sample_id(item_id, place), **row})
    return rows


def slots_of(ids: Sequence[str], n: int) -> list[tuple[str, int]]:
    """Return item and place of every sample, an item's places together."""
    return [(item_id, place) for item_id in ids for place in range(n)]


def unsampled(rows: Mapping[str, Row], ids: Sequence[str], n: int, retry: Collection[str]) -> list[tuple[str, int]]:
    """Return the samples that are missing, failed, or asked for again."""
    found = []
    for slot in slots_of(ids, n):
        row = rows.get(sample_id(*slot))
        if row is None or row["status"] == "error" or row["status"] in retry:
            found.append(slot)
    return found


def copied(rows: Sequence[Row], todo: Collection[str]) -> Iterator[Row]:
    """Yield the rows of a file that are still to be taken over."""
    return (row for row in rows if row["id"] in todo)
