"""What the item browser shows: a small list that is always there, and texts packed in chunks until asked for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palate.data import Dataset
from palate.errors import PalateError
from palate.report.load import Board, LoadedRun
from palate.views import Looker, View

CHUNK = 40
LETTERS: Mapping[str | None, str] = {"correct": "c", "wrong": "w", "tie": "t", None: "-"}


def overview(board: Board) -> dict[str, Any]:
    """Return the list: ids, domains and questions, and for each run a letter an item (c, w, t, - not scored)."""
    assert board.data is not None
    items = []
    for item in board.data:
        entry = board.data.entries[item.id]
        question = " ".join(item.question.split())
        items.append([item.id, entry.domain, question[:90] + ("…" if len(question) > 90 else ""), entry.twin or ""])
    runs = [
        {
            "model": run.title,
            "view": run.view,
            "letters": "".join(LETTERS[run.rows[i]["outcome"] if i in run.rows else None] for i in board.data.ids),
        }
        for run in board.runs
    ]
    return {"items": items, "runs": runs, "chunk": CHUNK}


def chunks(board: Board) -> Iterator[list[dict[str, Any]]]:
    """Yield the details of `CHUNK` items at a time, in the order of the list."""
    assert board.data is not None
    looker = Looker(board.data)
    ids = board.data.ids
    for start in range(0, len(ids), CHUNK):
        yield [_detail(board.data, looker, board.runs, i) for i in ids[start : start + CHUNK]]


def _detail(data: Dataset, looker: Looker, runs: Sequence[LoadedRun], item_id: str) -> dict[str, Any]:
    item, key = data.get(item_id), data.key(item_id)
    answers = {a.role: a.text for a in data.answers(item_id)}
    contexts: list[list[str] | None] = []
    said = []
    for run in runs:
        row = run.rows.get(item_id)
        context = _context(looker, item_id, run, row)
        if context not in contexts:
            contexts.append(context)
        said.append(_said(row, contexts.index(context)))
    return {
        "turns": [[m.role, m.content] for m in item.messages],
        "user": item.user_id,
        "chosen": answers["chosen"],
        "rejected": answers["rejected"],
        "wants": [[a.aspect, a.reason] for a in key.aspects] if key else [],
        "contexts": contexts,
        "said": said,
    }


def _context(looker: Looker, item_id: str, run: LoadedRun, row: Mapping[str, Any] | None) -> list[str] | None:
    """Return the chat turns exactly as they were shown, as `[role, text, …]`; None if they cannot be told."""
    if row is None or row["status"] in ("no_context", "overlong"):
        return None
    try:
        query = looker.again(item_id, View.parse(run.view), row["shown"])
    except (PalateError, KeyError, IndexError, TypeError, ValueError):
        return None
    return [part for m in query.messages for part in (m.role, m.content)]


def _said(row: Mapping[str, Any] | None, context: int) -> list[Any]:
    if row is None:
        return ["missing", None, None, None, context, 0, []]
    scores = [row.get("chosen_score"), row.get("rejected_score")]
    dropped = row["shown"].get("dropped", 0)
    return [row["status"], row["outcome"], *scores, context, dropped, list(row.get("notes", []))]
