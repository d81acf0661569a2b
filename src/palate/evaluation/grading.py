"""Grading again: other rows from the same replies, without a call."""

from palate.data import Dataset
from palate.errors import RunError
from palate.evaluation.asked import FORGET, settled_row
from palate.evaluation.verdicts import groups_of
from palate.llm.served import stored_call
from palate.records import Call, Query
from palate.rewards import AskedModel
from palate.store import RowLog, RunFolder
from palate.views import Looker, View


def settle_again(
    folder: RunFolder, data: Dataset, looker: Looker, model: AskedModel, view: View, old_grade: str
) -> None:
    """Make the rows of a run again from `calls.jsonl`; the old rows are kept as `rows-<old grade>.jsonl`.

    Raises:
        RunError: a reply that a row rests on is not in `calls.jsonl`.
    """
    log = RowLog(folder.calls, forget=FORGET)
    rows = []
    for item_id, row in RowLog(folder.rows).rows.items():
        if "calls" not in row:
            rows.append(row)
            continue
        queries = queries_again(looker, item_id, view, row)
        groups = groups_of(data.answers(item_id), queries)
        calls: dict[str, Call] = {}
        for group in groups:
            for ask in model.asks(group):
                call = stored_call(log.rows.get(ask.key))
                if call is None:
                    raise RunError(
                        f"{folder.path}: the reply {ask.key} is not in calls.jsonl, so it cannot be graded again."
                    )
                calls[ask.key] = call
        rows.append(settled_row(model, model.settle(groups, calls), queries, view, calls))
    folder.replace_rows(rows, f"rows-{old_grade}.jsonl")


def queries_again(looker: Looker, item_id: str, view: View, row: dict[str, object]) -> list[Query]:
    """Return the queries of all draws of a row, as they were shown."""
    shown = dict(row["shown"])  # type: ignore[call-overload]
    if "draws" not in shown:
        return [looker.again(item_id, view, shown)]
    donors = shown.get("donors", [])
    each = [
        {**shown, "posts": posts, "donors": donors[k : k + 1], "dropped": 0, "lost": 0}
        for k, posts in enumerate(shown["draws"])
    ]
    return [looker.again(item_id, view, one) for one in each]
