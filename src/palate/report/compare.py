"""`palate report --compare`: the same items scored twice, by two engines, dtypes or machines. Do they agree?"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from palate.errors import RunError, SpecError
from palate.evaluation.names import cut, titles
from palate.evaluation.runs import Metrics, Model, Record, Row, read_metrics, read_record, read_rows, run_folders
from palate.report.agreement import NOTHING, VOTES, Gaps, Pair, accuracies, counts, gaps_of, pair_up
from palate.report.load import faulty_rows
from palate.store import digest_of

WORST = 5
Differing = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs: its folder, a short name of its model, and what a reader has to know of it."""

    folder: str
    model: str
    digest: str
    items: int
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far two runs agree on the items that both have.

    `other_model` names the fields by which the two models are not the same one. `pairs` are the items in both runs.
    `gaps`, `accuracy` and `difference` (b minus a) are None where `reasons` says why. `config` and `environment` hold
    both values of each field that differs. `failures` is None without a tolerance.
    """

    a: Side
    b: Side
    data: str
    view: str
    other_model: tuple[str, ...]
    pairs: tuple[Pair, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    shown_differs: int
    gaps: Gaps | None
    accuracy: tuple[float | None, float | None]
    config: Differing
    environment: Differing
    reasons: Mapping[str, str]
    tolerance: float | None
    failures: tuple[str, ...] | None

    @property
    def scored(self) -> tuple[Pair, ...]:
        """The pairs that have an outcome in both runs."""
        return tuple(p for p in self.pairs if p.scored)

    @property
    def flipped(self) -> tuple[Pair, ...]:
        """The pairs that are correct in one run and wrong in the other, the largest gap first."""
        return tuple(sorted((p for p in self.pairs if p.flipped), key=_badness))

    @property
    def tie_changed(self) -> tuple[Pair, ...]:
        """The pairs that are a tie in one run and decided in the other."""
        return tuple(p for p in self.pairs if p.tie_changed)

    @property
    def status_differs(self) -> tuple[Pair, ...]:
        """The items whose status is not the same in both runs."""
        return tuple(p for p in self.pairs if p.a.status != p.b.status)

    @property
    def same(self) -> int:
        """How many pairs have the same outcome in both runs."""
        return sum(p.a.outcome == p.b.outcome for p in self.scored)

    @property
    def share(self) -> float | None:
        """Share of the pairs scored by both that have the same outcome; None of nothing."""
        return self.same / len(self.scored) if self.scored else None

    @property
    def difference(self) -> float | None:
        """Accuracy of b minus that of a, on the pairs scored by both."""
        one, other = self.accuracy
        return None if one is None or other is None else other - one

    @property
    def worst(self) -> tuple[Pair, ...]:
        """The five items with the largest gaps of a score; items whose scores are equal are not among them."""
        return tuple(sorted((p for p in self.pairs if p.gap), key=_badness)[:WORST])

    @property
    def passed(self) -> bool | None:
        """Whether the runs agree within the tolerance; None without one."""
        return None if self.failures is None else not self.failures

    def as_dict(self) -> dict[str, Any]:
        """Return everything as strict JSON can hold it; undefined figures are null and have a reason."""
        return {
            "a": asdict(self.a) | {"remarks": list(self.a.remarks)},
            "b": asdict(self.b) | {"remarks": list(self.b.remarks)},
            "data": self.data,
            "view": self.view,
            "different_models": list(self.other_model),
            "items": self._items(),
            "order": self._order(),
            "gaps": asdict(self.gaps) if self.gaps else None,
            "accuracy": {"a": self.accuracy[0], "b": self.accuracy[1], "difference": self.difference},
            "reasons": dict(self.reasons),
            "differs": {"config": _sides(self.config), "environment": _sides(self.environment)},
            "worst": [_as_dict(p) for p in self.worst],
            "flipped": [_as_dict(p) for p in self.flipped],
            "tie_changed": [_as_dict(p) for p in self.tie_changed],
            "status_differs": [_as_dict(p) for p in self.status_differs],
            "tolerance": self.tolerance,
            "passed": self.passed,
            "failures": None if self.failures is None else list(self.failures),
        }

    def _items(self) -> dict[str, Any]:
        return {
            "common": len(self.pairs),
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "scored": len(self.scored),
            "status_differs": len(self.status_differs),
            "statuses": _table(counts(self.pairs, "status")),
            "shown_differs": self.shown_differs,
        }

    def _order(self) -> dict[str, Any]:
        return {
            "same": self.same,
            "share": self.share,
            "flipped": len(self.flipped),
            "tie_changed": len(self.tie_changed),
            "outcomes": _table(counts(self.scored, "outcome")),
        }


@dataclass(frozen=True, slots=True)
class _Found:
    """What stands in a run folder."""

    folder: Path
    record: Record
    digest: str
    rows: Mapping[str, Row]
    metrics: Metrics | None

    @property
    def config(self) -> dict[str, Any]:
        """All that was asked for: the configuration, and what is recorded beside it."""
        protocol = (self.record.model_extra or {}).get("protocol")
        return self.record.config.model_dump() | {"limit": self.record.limit, "protocol": protocol}

    @property
    def grade(self) -> Any:
        """How verdicts were made, which an unfinished run does not tell yet."""
        return (self.metrics.model_extra or {}).get("grade") if self.metrics else None

    @property
    def environment(self) -> dict[str, Any]:
        """Where and with what it was computed; nothing if that was not written."""
        return self.record.environment.model_dump() if self.record.environment else {}

    @property
    def judged(self) -> bool:
        """Whether its outcomes are votes."""
        return self.record.config.model.family == "judge" or any(r.judge is not None for r in self.rows.values())


def compare_runs(a: str | Path, b: str | Path, tolerance: float | None = None) -> Comparison:
    """Compare two runs of one view on one data set, item by item.

    Args:
        a: a run folder, or a folder that holds exactly one.
        b: the same for the other run.
        tolerance: the largest gap of a single score at which the runs still agree, in the units of the scores.

    Raises:
        SpecError: a tolerance that is none.
        RunError: not a run folder, the same one twice, other data, another view, or no item in common.
    """
    if tolerance is not None and not (isfinite(tolerance) and tolerance >= 0):
        raise SpecError(f"tolerance must be a number of 0 or more, not {tolerance}.")
    one, other = _one_run(Path(a)), _one_run(Path(b))
    if one.samefile(other):
        raise RunError(f"{a} and {b} are the same run folder. Give two.")
    return _compared(_read(one), _read(other), tolerance)


def _one_run(path: Path) -> Path:
    found = sorted(run_folders(path))
    if not found:
        raise RunError(f"{path}: not a run folder: there is no run.json in it. Make one: palate eval --out {path}")
    if len(found) > 1:
        raise RunError(f"{path}: holds {len(found)} runs. Name one, such as {found[0]}")
    return found[0]


def _read(folder: Path) -> _Found:
    return _Found(folder, *read_record(folder), read_rows(folder), read_metrics(folder))


def _compared(a: _Found, b: _Found, tolerance: float | None) -> Comparison:
    pairs = pair_up(a.rows, b.rows)
    _comparable(a, b, pairs)
    judged = [name for name, run in (("a", a), ("b", b)) if run.judged]
    gaps = f"{VOTES}: {' and '.join(judged)}" if judged else gaps_of(pairs)
    accuracy = accuracies(pairs)
    grades = [{"grade": run.grade} if a.grade and b.grade else {} for run in (a, b)]
    reasons = {} if isinstance(gaps, Gaps) else {"gaps": gaps}
    if None in accuracy:
        reasons |= dict.fromkeys(("share", "accuracy", "difference"), NOTHING)
    names = titles({_key(run.record.config.model): run.record.config.model for run in (a, b)})
    return Comparison(
        a=_side(a, names),
        b=_side(b, names),
        data=a.record.data.name,
        view=a.record.config.view,
        other_model=_other_model(a.record.config.model, b.record.config.model),
        pairs=tuple(pairs),
        only_a=tuple(name for name in a.rows if name not in b.rows),
        only_b=tuple(name for name in b.rows if name not in a.rows),
        shown_differs=sum(a.rows[p.id].shown != b.rows[p.id].shown for p in pairs),
        gaps=gaps if isinstance(gaps, Gaps) else None,
        accuracy=accuracy,
        config=differing(a.config | grades[0], b.config | grades[1]),
        environment=differing(a.environment, b.environment),
        reasons=reasons,
        tolerance=tolerance,
        failures=None if tolerance is None else tuple(_failures(pairs, gaps, tolerance)),
    )


def _comparable(a: _Found, b: _Found, pairs: list[Pair]) -> None:
    """Raise RunError unless both runs are about the same questions."""
    one, other = a.record, b.record
    if one.config.data.digest != other.config.data.digest:
        raise RunError(
            f"{a.folder} and {b.folder} are about different data: {_data(one)} and {_data(other)}. "
            "Only runs on the same data can be compared."
        )
    if one.config.view != other.config.view:
        raise RunError(
            f"{a.folder} and {b.folder} have different views, {one.config.view} and {other.config.view}: these ask "
            "other questions, so scores need not agree. Compare runs of one view; palate eval compares views."
        )
    if not pairs:
        raise RunError(f"{a.folder} and {b.folder} have no item in common ({len(a.rows)} and {len(b.rows)} rows).")


def _data(record: Record) -> str:
    return cut(f"{record.data.name} ({record.config.data.digest[:8]})")


def _failures(pairs: list[Pair], gaps: Gaps | str, tolerance: float) -> list[str]:
    """Say what keeps the runs from agreeing within the tolerance. What could not be measured does not agree."""
    found = []
    if isinstance(gaps, str):
        found.append(f"no gaps to measure ({gaps})")
    elif gaps.largest > tolerance:
        found.append(f"largest gap {gaps.largest:.6g} over {tolerance:g}")
    bare = 0 if isinstance(gaps, str) else sum(p.scored and p.gaps is None for p in pairs)
    found += [f"{bare} {'pair' if bare == 1 else 'pairs'} without scores"] if bare else []
    flips, other = sum(p.flipped for p in pairs), sum(p.a.status != p.b.status for p in pairs)
    found += [f"{flips} {'pair' if flips == 1 else 'pairs'} flipped"] if flips else []
    found += [f"{other} {'item' if other == 1 else 'items'} with another status"] if other else []
    return found


def _side(run: _Found, names: Mapping[str, str]) -> Side:
    record = run.record
    found = [] if run.digest == record.digest else ["the record does not fit its own digest"]
    found += faulty_rows(run.rows, None)
    found += [f"unfinished ({record.status})"] if record.status != "complete" else []
    if record.earlier_environments:
        found.append(f"computed in {1 + len(record.earlier_environments)} environments; the last one is compared")
    return Side(str(run.folder), names[_key(record.config.model)], record.digest, len(run.rows), tuple(found))


def _key(model: Model) -> str:
    return digest_of(model.model_dump())


def _other_model(a: Model, b: Model) -> tuple[str, ...]:
    """Return the fields by which two models are not the same: the weights if both tell them, else their names."""
    one, other = a.model_dump(), b.model_dump()
    told = one.get("weights") and other.get("weights")
    names = ("weights",) if told else ("family", "id", "revision")
    return tuple(f"model.{name}" for name in names if one.get(name) != other.get(name))


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return both values of each field that differs, under dotted names; None stands for what is not told."""
    one, other = dict(_flat(a)), dict(_flat(b))
    names = dict.fromkeys([*one, *other])
    return {n: (one.get(n), other.get(n)) for n in names if digest_of(one.get(n)) != digest_of(other.get(n))}


def _flat(value: Mapping[str, Any], start: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, each in value.items():
        if isinstance(each, Mapping) and each:
            found += _flat(each, f"{start}{name}.")
        else:
            found.append((start + name, each))
    return found


def _badness(pair: Pair) -> tuple[float, float]:
    return -(pair.gap or 0.0), -(pair.margin_gap or 0.0)


def _sides(fields: Differing) -> dict[str, dict[str, Any]]:
    return {name: {"a": a, "b": b} for name, (a, b) in fields.items()}


def _table(found: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [{"a": a, "b": b, "count": n} for (a, b), n in found.items()]


def _as_dict(pair: Pair) -> dict[str, Any]:
    return {"id": pair.id, "a": asdict(pair.a), "b": asdict(pair.b), "gap": pair.gap, "margin_gap": pair.margin_gap}
