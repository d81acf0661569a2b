"""`prepare`: questions and what the policy may see of their users, as the Parquet rows that verl trains on.

The prompt is the query of the view, fitted to the policy; what stands in `extra_info` for the reward server is that
same query's question and entries. So policy and reward model see one template and one k, in training and after it.
An answer key is never read here.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.errors import DataError, MissingExtra, SpecError
from palate.ppo.prompts import Source, open_source
from palate.records import Item, Message, Query
from palate.views import Budget

PROMPT_TOKENS = 8192
ROWS_AT_ONCE = 256
ABOUT = b"palate"
FIELDS = {"posts": "history", "plan": "plan"}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was written: rows, entries dropped to fit, and items left out by status."""

    rows: int
    dropped: int
    left_out: dict[str, int]
    about: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"rows": self.rows, "dropped": self.dropped, "left_out": self.left_out, **self.about}


def prepare(
    data: str,
    view: str,
    out: Path,
    *,
    retriever: str = "bm25",
    limit: int | None = None,
    tokenizer: str | None = None,
    max_prompt_tokens: int | None = None,
) -> Prepared:
    """Write verl's Parquet file of `data` under `view` to `out`.

    Args:
        data: a data string.
        view: a view string; `oracle` is refused.
        out: the file, which ends in `.parquet`.
        retriever: ranks the posts.
        limit: only the first items.
        tokenizer: folder or hub id of the policy; prompts are fitted with its chat template, from the bottom of the
            ranking. Without it nothing is dropped.
        max_prompt_tokens: room for the prompt, 8,192 if there is a tokenizer.

    Raises:
        SpecError: a view that shows the rubric, a room without a tokenizer, or another ending.
        DataError: no item has a prompt.
        MissingExtra: without the extra `hub`, or `hf` for a tokenizer.
    """
    if out.suffix != ".parquet":
        raise SpecError(f"--out {out}: verl reads Parquet files, so the name has to end in .parquet.")
    if max_prompt_tokens and not tokenizer:
        raise SpecError("--max-prompt-tokens needs --tokenizer, the policy's: tokens are counted with it.")
    _pyarrow()
    budget, policy = _budget(tokenizer, max_prompt_tokens or PROMPT_TOKENS) if tokenizer else (None, None)
    source = open_source(data, view, retriever, limit, out.parent)
    tally = _Tally()
    about = {**source.identity, "policy": policy, "max_prompt_tokens": budget.prompt if budget else None}
    _write(out, _rows(source, budget, tally), about)
    return Prepared(tally.rows, tally.dropped, dict(tally.left_out), about)


def read_about(path: Path) -> dict[str, Any]:
    """Return what `prepare` wrote down in a file about how it was made.

    Raises:
        DataError: not a Parquet file, or not one of `palate ppo prepare`.
    """
    from pyarrow import ArrowInvalid

    _, parquet = _pyarrow()
    try:
        found = parquet.read_schema(path).metadata or {}
    except (ArrowInvalid, OSError) as bad:
        raise DataError(f"{path}: not a readable Parquet file ({bad}).") from None
    if ABOUT not in found:
        raise DataError(f"{path}: was not written by palate ppo prepare, so its view and k are not known.")
    about: dict[str, Any] = json.loads(found[ABOUT])
    return about


@dataclass(slots=True)
class _Tally:
    rows: int
    dropped: int
    left_out: Counter[str]

    def __init__(self) -> None:
        self.rows, self.dropped, self.left_out = 0, 0, Counter()


def _rows(source: Source, budget: Budget | None, tally: _Tally) -> Iterator[dict[str, Any]]:
    for item_id in source.ids:
        query = source.query(item_id, budget)
        if not isinstance(query, Query):
            tally.left_out[query.status] += 1
            continue
        yield _row(source.data.get(item_id), query, tally.rows, source.data.name)
        tally.rows += 1
        tally.dropped += query.dropped
    if not tally.rows:
        why = ", ".join(f"{status} {n}" for status, n in tally.left_out.items()) or "there are none"
        raise DataError(f"{source.data.name}: no item gives a prompt under '{source.view}' ({why}).")


def _row(item: Item, query: Query, index: int, name: str) -> dict[str, Any]:
    """Return verl's row; the true answer has no place in it, so `ground_truth` holds the item's id."""
    return {
        "data_source": f"palate/{name}",
        "prompt": _turns(query.messages),
        "ability": item.domain,
        "reward_model": {"style": "model", "ground_truth": item.id},
        "extra_info": {
            "index": index,
            "item_id": item.id,
            "user_id": item.user_id,
            "view": query.view,
            "posts": [b.id for b in query.context.blocks] if query.context else [],
            "dropped": query.dropped,
            **_record(query),
        },
    }


def _record(query: Query) -> dict[str, Any]:
    """Return what the reward server needs of the user: question and entries, or the turns of a longer conversation."""
    found: dict[str, Any] = dict.fromkeys(("question", "history", "plan", "messages"))
    if len(query.turns) > 1:
        return found | {"messages": _turns(query.messages)}
    found["question"] = query.turns[0].content
    if query.context:
        found[FIELDS[query.context.kind]] = [b.text for b in query.context.blocks]
    return found


def _turns(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    return [{"role": m.role, "content": m.content} for m in messages]


def _write(path: Path, rows: Iterator[dict[str, Any]], about: dict[str, Any]) -> None:
    pyarrow, parquet = _pyarrow()
    schema = _schema(pyarrow).with_metadata({ABOUT: json.dumps(about, ensure_ascii=False, allow_nan=False).encode()})
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with parquet.ParquetWriter(part, schema) as writer:
            waiting: list[dict[str, Any]] = []
            for row in rows:
                waiting.append(row)
                if len(waiting) == ROWS_AT_ONCE:
                    writer.write_table(pyarrow.Table.from_pylist(waiting, schema=schema))
                    waiting.clear()
            writer.write_table(pyarrow.Table.from_pylist(waiting, schema=schema))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _schema(pyarrow: Any) -> Any:
    text, whole = pyarrow.string(), pyarrow.int64()
    texts, turns = pyarrow.list_(text), pyarrow.list_(pyarrow.struct([("role", text), ("content", text)]))
    info = [("index", whole), ("item_id", text), ("user_id", text), ("view", text), ("posts", texts)]
    info += [("dropped", whole), ("question", text), ("history", texts), ("plan", texts), ("messages", turns)]
    return pyarrow.schema(
        [
            ("data_source", text),
            ("prompt", turns),
            ("ability", text),
            ("reward_model", pyarrow.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", pyarrow.struct(info)),
        ]
    )


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("verl's Parquet files", "hub") from None
    return pyarrow, parquet


def _budget(text: str, room: int) -> tuple[Budget, dict[str, Any]]:
    """Return the room for a prompt in the policy's tokens, counted as verl counts: with the answer's turn opened."""
    from palate.rewards.http.local import load_local

    local = load_local(text)
    return Budget(room, 0, lambda messages: len(local.encoder.prompt(messages))), local.identity
