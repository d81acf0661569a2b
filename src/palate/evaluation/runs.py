"""What stands in run folders, own or sent by others, as strict records. Nothing in them is believed unread."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from palate.data.formats.base import fault
from palate.data.problems import explain
from palate.errors import RunError, SpecError
from palate.records import Outcome, Status
from palate.store import RowLog, RunFolder, digest_of
from palate.store.folder import CALLS, METRICS, ROWS, RUN
from palate.views import View

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
Count = Annotated[int, Field(ge=0)]


def _view(text: str) -> str:
    try:
        return View.parse(text).label
    except SpecError as bad:
        raise fault(str(bad)) from None


def _moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise fault(f"expected a date and time, found {text[:40]!r}") from None
    return text


class _Sent(BaseModel):
    """Strict: no type is converted, no number is infinite; what is not known here is kept."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow", allow_inf_nan=False)


class Model(_Sent):
    """The identity of a reward model, as far as the report reads it."""

    family: str
    id: str
    revision: str | None = None
    options: dict[str, str] = {}
    probe: bool = False
    parameters: Annotated[int, Field(ge=1, le=10**18)] | None = None


class Retriever(_Sent):
    """The identity of a retriever."""

    id: str


class DataDigest(_Sent):
    """Which data, by content."""

    digest: str
    skipped: Count = 0


class Config(_Sent):
    """All that decided a run's numbers; `view` becomes its label."""

    model: Model
    view: Annotated[str, AfterValidator(_view)]
    data: DataDigest
    retriever: Retriever | None = None
    prompts: dict[str, str] = {}


class DataName(_Sent):
    """Where the data was for whoever made the run."""

    spec: str
    name: str


class Environment(_Sent):
    """What should not change the numbers but might."""

    dtype: str | None = None
    attention_kernel: str | None = None
    notes: list[str] = []


class Record(_Sent):
    """`run.json`."""

    digest: str
    config: Config
    model: str
    data: DataName
    status: Literal["running", "stopped", "complete"]
    limit: Annotated[int, Field(ge=1)] | None = None
    started: Annotated[str, AfterValidator(_moment)] | None = None
    finished: Annotated[str, AfterValidator(_moment)] | None = None
    environment: Environment | None = None
    earlier_environments: list[Environment] = []
    warnings: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What the model's loader had to say, each once."""
        found = [*self.earlier_environments, *([self.environment] if self.environment else [])]
        return tuple(dict.fromkeys(note for one in found for note in one.notes))

    @property
    def last(self) -> tuple[bool, datetime]:
        """Whether it is complete, and when it ended or at least began: what makes one copy count before another."""
        text = self.finished or self.started
        moment = datetime.fromisoformat(text) if text else datetime.min
        return self.status == "complete", moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Metrics(_Sent):
    """Those figures of `metrics.json` that are compared with the rows."""

    n: Count
    scored: Count
    correct: Count
    wrong: Count
    ties: Count
    accuracy: float | None
    strict_accuracy: float | None
    both_right: float | None = None


class Shown(_Sent):
    """What was shown to the model: ids of entries, best first."""

    posts: list[str]
    dropped: Count = 0
    lost: Count = 0
    donors: list[str] = []
    draws: list[list[str]] = []


class Row(_Sent):
    """A line of `rows.jsonl`."""

    id: str
    status: Status
    outcome: Outcome | None
    chosen_score: float | None = None
    rejected_score: float | None = None
    shown: Shown
    notes: list[str] = []
    judge: dict[str, Any] | None = None
    calls: list[str] = []

    @property
    def derived(self) -> Outcome | None:
        """The outcome that follows from the scores; without scores the one that is told, if the status allows one."""
        up, down = self.chosen_score, self.rejected_score
        if self.status != "ok" or (up is None) != (down is None):
            return None
        if up is None or down is None:
            return self.outcome
        if self.judge is not None and self.outcome == "tie":
            return "tie"  # by a tie rule that is wider than equality
        return "tie" if up == down else "correct" if up > down else "wrong"

    @property
    def follows(self) -> bool:
        """Whether outcome, status and scores agree: only `ok` has an outcome and numbers."""
        if self.status != "ok":
            return self.outcome is None and self.chosen_score is None and self.rejected_score is None
        return self.outcome is not None and self.outcome == self.derived


def run_folders(path: Path) -> Iterable[Path]:
    """Return the run folders at or below `path`.

    Raises:
        RunError: there is no such folder.
    """
    if not path.is_dir():
        raise RunError(f"{path}: no such folder.")
    return [path] if (path / RUN).is_file() else [p.parent for p in path.rglob(RUN)]


def read_record(folder: Path) -> tuple[Record, str]:
    """Return the record of a run and the digest of its configuration.

    Raises:
        RunError: there is none, or it is not one.
    """
    raw = _guarded(folder / RUN, RunFolder(folder).record) or {}
    record = _parsed(Record, raw, str(folder / RUN))
    return record, digest_of(raw["config"])


def read_metrics(folder: Path) -> Metrics | None:
    """Return the figures as sent, or None without a `metrics.json`.

    Raises:
        RunError: it is not readable.
    """
    raw = _guarded(folder / METRICS, RunFolder(folder).metrics)
    return None if raw is None else _parsed(Metrics, raw, str(folder / METRICS))


def read_rows(folder: Path) -> dict[str, Row]:
    """Return the rows by id; a torn tail is left unread.

    Raises:
        RunError: a row that is none, naming its item.
    """
    raw = _guarded(folder / ROWS, lambda: RowLog(folder / ROWS, mend=False).rows) or {}
    return {name: _parsed(Row, row, f"{folder / ROWS}, item '{name[:80]}'") for name, row in raw.items()}


def _guarded(path: Path, read: Callable[[], T]) -> T:
    """Read, and make sure that what was read can be written again as strict JSON in UTF-8."""
    try:
        found = read()
        digest_of(found)
    except RunError:
        raise
    except (OSError, ValueError, RecursionError) as bad:
        raise RunError(f"{path}: not readable ({bad}).") from None
    return found


def _parsed(kind: type[M], raw: Mapping[str, Any], where: str) -> M:
    try:
        return kind.model_validate(raw)
    except ValidationError as bad:
        raise RunError(f"{where}: {'; '.join(explain(bad, dict(raw))[:3])}") from None


def read_replies(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the replies of a model that was asked, by key: status and text, or the cause where there is none.

    Raises:
        RunError: `calls.jsonl` is damaged.
    """
    rows = _guarded(folder / CALLS, lambda: RowLog(folder / CALLS, mend=False).rows)
    found = {}
    for key, row in rows.items():
        text = row.get("text") or row.get("note")
        found[key] = (str(row.get("status")), text if isinstance(text, str) else "")
    return found
