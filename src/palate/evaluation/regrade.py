"""Grading finished runs again by another parser or tie rule: rows and metrics change, no call is repeated."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palate.data import Dataset, open_data
from palate.errors import RunError
from palate.evaluation.grading import settle_again
from palate.evaluation.measure import measure
from palate.rewards import AskedModel, open_model
from palate.spec import Spec
from palate.store import RowLog, RunFolder
from palate.views import Looker, View


@dataclass(frozen=True, slots=True)
class Regraded:
    """A run before and after."""

    folder: Path
    model: str
    view: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def regrade(path: Path, data: str | None = None, *, parser: str | None = None, tie: str | None = None) -> Regraded:
    """Decide the stored replies of the run in `path` again.

    Args:
        path: a run folder of a judge or rater.
        data: where the data is, if not where the run says.
        parser: the name of another parser, see `palate.llm.replies`.
        tie: another tie rule: `exact`, `agree`, or a margin around one half.

    Raises:
        RunError: not a finished run of a model that is asked, other data, or replies that are missing.
        SpecError: an unknown parser or tie rule.
    """
    folder = RunFolder(path)
    record, metrics = folder.record(), folder.metrics()
    if record is None or metrics is None:
        raise RunError(f"{path}: not the folder of a finished run.")
    spec = Spec.parse(record["model"], "model")
    changed = {k: v for k, v in (("parser", parser), ("tie", tie)) if v is not None}
    if not folder.calls.is_file():
        raise RunError(f"{path}: '{record['model']}' gives numbers, not replies; there is nothing to grade again.")
    model = open_model(str(Spec(spec.head, spec.revision, {**spec.options, **changed})))
    assert isinstance(model, AskedModel)
    view = View.parse(record["config"]["view"])
    opened = _data(path, record, data)
    ids = opened.ids[: record.get("limit")]
    with folder:
        settle_again(folder, opened, Looker(opened), model, view, metrics["grade"]["digest"])
        columns = [c for c in metrics.get("by", {}) if c in opened.columns]
        after = measure(opened, RowLog(folder.rows).rows, ids, columns, model.grade)
        folder.write_metrics(after)
    return Regraded(path, record["model"], view.label, metrics, after)


def _data(path: Path, record: Mapping[str, Any], data: str | None) -> Dataset:
    opened = open_data(data or record["data"]["spec"])
    if opened.digest != record["config"]["data"]["digest"]:
        raise RunError(f"{path}: the run was made on other data than '{data or record['data']['spec']}'.")
    return opened
