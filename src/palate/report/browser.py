"""What the item browser shows: a small list that is always there, and texts packed in chunks until asked for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palate.data import Dataset
from palate.errors import PalateError
from palate.report.load import Board, LoadedRun
from palate.views import PROMPT_DIGESTS, Looker, View

CHUNK = 40
LETTERS: Mapping[str | None, str] = {"correct": "c", "wrong": "w", "tie": "t", None: "-"}
Turns = list[str]
NOT_YET = "This run has no verdict on this item yet."
NOT_ASKED = "The model was not asked about this item under this view"
OVERLONG = "Not shown to the model, because it is too long for it"
UNTOLD = "What was shown cannot be told: the row does not fit this data."
OTHER_PROMPTS = "What was shown cannot be told: the run was made with other prompts than this version of Palate has."


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
    contexts: list[Turns | str] = []
    said = []
    for run in runs:
        row = run.rows.get(item_id)
        context = _context(looker, item_id, run, row)
        if context not in contexts:
            contexts.append(context)
        said.append([*_said(row, contexts.index(context)), _replies(run, row)])
    return {
        "turns": [[m.role, m.content] for m in item.messages],
        "user": item.user_id,
        "chosen": answers["chosen"],
        "rejected": answers["rejected"],
        "wants": [[a.aspect, a.reason] for a in key.aspects] if key else [],
        "contexts": contexts,
        "said": said,
    }


def _context(looker: Looker, item_id: str, run: LoadedRun, row: Mapping[str, Any] | None) -> Turns | str:
    """Return the chat turns exactly as they were shown, as `[role, text, …]`, or why there are none to show."""
    if row is None:
        return NOT_YET
    view, shown = View.parse(run.view), row["shown"]
    bare = view.name == "question"
    if row["status"] == "no_context" or (row["status"] != "ok" and not shown["posts"] and not bare):
        return _unasked(row)
    if not bare and run.record.config.prompts != PROMPT_DIGESTS:
        return OTHER_PROMPTS
    if (view.user == "other") != bool(shown["donors"]):
        return UNTOLD
    try:
        query = looker.again(item_id, view, shown)
    except (PalateError, KeyError, IndexError, TypeError, ValueError):
        return UNTOLD
    return [part for m in query.messages for part in (m.role, m.content)]


def _unasked(row: Mapping[str, Any]) -> str:
    start = OVERLONG if row["status"] == "overlong" else NOT_ASKED
    return f"{start}: {'; '.join(row['notes']) or row['status'].replace('_', ' ')}."


def _replies(run: LoadedRun, row: Mapping[str, Any] | None) -> list[list[str]]:
    """Return what a model that was asked replied: which question, status, text."""
    keys = row["calls"] if row else []
    return [[_asked(key), *run.replies[key]] for key in keys if key in run.replies]


def _asked(key: str) -> str:
    """Return the middle of a call's key, `answer|order|repeat`, in words."""
    _, _, *middle, _ = key.split("|")
    return ", ".join(part.replace("-", " ") if not part.isdigit() else f"try {int(part) + 1}" for part in middle)


def _said(row: Mapping[str, Any] | None, context: int) -> list[Any]:
    if row is None:
        return ["missing", None, None, None, context, 0, [], 1]
    scores = [row["chosen_score"], row["rejected_score"]]
    shown = row["shown"]
    return [row["status"], row["outcome"], *scores, context, shown["dropped"], row["notes"], len(shown["draws"]) or 1]
