"""`board.json`: every result in the schema that all parts share, the undefined ones too, with the reason."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palate.contrasts import Kind
from palate.evaluation.measure import figures
from palate.metrics import by_group
from palate.report.bare import ABSENT
from palate.report.lines import AGAINST, Line
from palate.report.load import Board, LoadedRun

LENGTHS = ((-0.15, "much shorter"), (-0.03, "shorter"), (0.03, "alike"), (0.15, "longer"))
LONGEST = "much longer"
Row = dict[str, Any]


def length_groups(board: Board) -> dict[str, str]:
    """Return how much longer each item's chosen answer is than the rejected one, relative to the longer of both."""
    if board.data is None:
        return {}
    return {i: _length_group(*(len(a.text) for a in board.data.answers(i))) for i in board.data.ids}


def by_length(board: Board, run: LoadedRun, groups: Mapping[str, str]) -> dict[str, Row]:
    """Return accuracy by the group of each item's difference in length."""
    assert board.data is not None
    outcomes = [run.rows[i]["outcome"] if i in run.rows else None for i in run.ids]
    units = [board.data.entries[i].unit for i in run.ids]
    found = by_group(outcomes, [groups[i] for i in run.ids], units)
    return {name: figures(found[name]) for name in (*(n for _, n in LENGTHS), LONGEST) if name in found}


def _length_group(chosen: int, rejected: int) -> str:
    gap = (chosen - rejected) / max(chosen, rejected, 1)
    return next((name for limit, name in LENGTHS if gap < limit), LONGEST)


def board_rows(board: Board, found: Sequence[Line]) -> list[Row]:
    """Return results as `{system, metric, value, ci95, n, source}`; a value that is null has its reason in source."""
    rows: list[Row] = []
    for line in found:
        for view, run in line.runs.items():
            rows += _run_rows(board, line, view, run)
        rows += _gap_rows(board, line)
    return rows


def _run_rows(board: Board, line: Line, view: str, run: LoadedRun) -> Iterator[Row]:
    m, config = run.metrics, run.record.config
    source = {
        **_source(board, line),
        "run": run.record.digest,
        "retriever": config.retriever.id if config.retriever else None,
        "ranked": run.ranked,
        "marks": list(run.marks),
        "of": m["n"],
        "coverage": m["coverage"],
    }
    for name in ("accuracy", "strict_accuracy", "both_right"):
        n = m["twin_pairs"] if name == "both_right" else m["scored"]
        told = {"of": _pairs(board, run)} if name == "both_right" else {}
        ci = m["ci95"] if name == "accuracy" else None
        yield _result(line, f"{name}/{view}", m[name], ci, n, source | told, m["reasons"].get(name))


def _pairs(board: Board, run: LoadedRun) -> int | None:
    """Return how many twin pairs the run's items have."""
    if board.data is None:
        return None
    ids = set(run.ids)
    twins = {i: board.data.entries[i].twin for i in ids}
    return len({frozenset((a, b)) for a, b in twins.items() if b in ids})


def _gap_rows(board: Board, line: Line) -> Iterator[Row]:
    for kind, view in AGAINST.items():
        gap = line.gaps.get(kind)
        if gap is None:
            yield _result(line, kind, None, None, 0, _source(board, line), _missing(board, line, kind, view))
            continue
        told = {"p": gap.p, "method": gap.method, "bounds": list(gap.bounds) if gap.bounds else None, "of": gap.n}
        told["coverage"] = gap.common / gap.n if gap.n else None
        reason = None if gap.value is not None else "no item is scored on both sides"
        yield _result(line, kind, gap.value, gap.ci95, gap.common, _source(board, line) | told, reason)


def _missing(board: Board, line: Line, kind: Kind, view: str) -> str:
    gone = [v for v in ("history", view) if v not in line.runs]
    return f"not run under {' and '.join(gone)}" if gone else ABSENT


def _source(board: Board, line: Line) -> Row:
    return {"data": board.name, "data_digest": board.digest, "probe": line.probe}


def _result(line: Line, metric: str, value: Any, ci: Any, n: int, source: Row, reason: str | None) -> Row:
    told = source if value is not None else source | {"reason": reason or "undefined"}
    interval = list(ci) if ci else None
    return {"system": line.system, "metric": metric, "value": value, "ci95": interval, "n": n, "source": told}
