"""From rows to `metrics.json`: every figure of the contract, each undefined one null with a reason."""

from collections.abc import Mapping, Sequence
from typing import Any

from palate.data import Dataset, Entry
from palate.metrics import Result, both_right, by_group, macro_mean, mean_interval, spread
from palate.store import digest_of

SIZES = ((0, "0"), (3, "1-3"), (9, "4-9"), (29, "10-29"), (99, "30-99"))
LARGEST = "100+"
SCORE_GRADE: Mapping[str, Any] = {"rule": "the higher score wins, equal ones tie", "ties": "half"}
Rows = Mapping[str, Mapping[str, Any]]


def measure(
    data: Dataset, rows: Rows, ids: Sequence[str], by: Sequence[str] = (), grade: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the metrics of a run.

    Args:
        data: what was evaluated.
        rows: verdict rows by id; items without one count as not scored.
        ids: the items that belong to the run.
        by: further columns to split by.
        grade: how the verdicts were made; by default from scores.
    """
    outcomes = [rows[i]["outcome"] if i in rows else None for i in ids]
    entries = [data.entries[i] for i in ids]
    users = [e.unit for e in entries]
    reasons: dict[str, str] = {}
    found = figures(mean_interval(outcomes, users))
    found["status"] = _statuses(rows, ids)
    found |= _twins(data, dict(zip(ids, outcomes, strict=True)), reasons)
    found |= _domains(by_group(outcomes, [e.domain for e in entries], users))
    found |= _users(outcomes, [e.user_id for e in entries], reasons)
    sizes = by_group(outcomes, [size_of(e) for e in entries], users)
    found["by_history_size"] = _each({s: sizes[s] for _, s in (*SIZES, (0, LARGEST)) if s in sizes})
    found["cold_start"] = sum(e.posts == 0 for e in entries)
    found["dropped_posts"] = _counted(rows, ids, "dropped")
    found["lost_posts"] = _counted(rows, ids, "lost")
    columns = {name: [data.column(i, name) or "(none)" for i in ids] for name in by}
    found["by"] = {name: _each(by_group(outcomes, values, users)) for name, values in columns.items()}
    grade = SCORE_GRADE if grade is None else grade
    found["grade"] = {**grade, "digest": grade_digest(grade)}
    if (position := position_of([rows[i] for i in ids if i in rows])) is not None:
        found["position"] = position
    found["reasons"] = reasons | _undefined(found)
    return found


def grade_digest(grade: Mapping[str, Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of how verdicts are made."""
    return digest_of(dict(grade))[:16]


def position_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return how much a judge's verdicts depend on the seat; None if no row is a judge's.

    `first_seat_rate`: share of verdicts other than ties that went to the first seat. `flip_rate`: share of items with a
    verdict in both orders whose verdict changed with the order. `by_order`: accuracy of each order alone.
    """
    judged = [r["judge"] for r in rows if r.get("judge")]
    if not judged:
        return None
    seats = [v for j in judged for v in j["first_seat"] if v != 0.5]
    both = [list(j["orders"].values()) for j in judged if len(j["orders"]) == 2]
    orders: dict[str, list[float]] = {}
    for j in judged:
        for name, value in j["orders"].items():
            orders.setdefault(name, []).append(1.0 if value > 0.5 else 0.5 if value == 0.5 else 0.0)
    return {
        "first_seat_rate": sum(v > 0.5 for v in seats) / len(seats) if seats else None,
        "flip_rate": sum((a - 0.5) * (b - 0.5) < 0 for a, b in both) / len(both) if both else None,
        "by_order": {name: {"n": len(v), "accuracy": sum(v) / len(v)} for name, v in orders.items()},
    }


def size_of(entry: Entry) -> str:
    """Return the name of the bucket of an item's history size."""
    return next((name for limit, name in SIZES if entry.posts <= limit), LARGEST)


def figures(result: Result) -> dict[str, Any]:
    """Return a result as it stands in `metrics.json`."""
    t, ci = result.tally, result.interval
    return {
        "n": t.n,
        "scored": t.scored,
        "coverage": t.coverage,
        "correct": t.correct,
        "wrong": t.wrong,
        "ties": t.ties,
        "accuracy": t.accuracy,
        "strict_accuracy": t.strict_accuracy,
        "ci95": [ci.low, ci.high] if ci else None,
        "ci_method": ci.method if ci else None,
    }


def _each(results: Mapping[str, Result]) -> dict[str, Any]:
    return {name: figures(result) for name, result in results.items()}


def _undefined(found: Mapping[str, Any]) -> dict[str, str]:
    """Return why figures of the whole are null."""
    why = {
        "accuracy": "nothing was scored",
        "strict_accuracy": "nothing was scored",
        "ci95": "fewer than two independent units were scored",
        "macro_accuracy": "a domain without scored items",
        "macro_strict_accuracy": "a domain without scored items",
    }
    return {name: reason for name, reason in why.items() if found[name] is None}


def _statuses(rows: Rows, ids: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in ids:
        status = rows[name]["status"] if name in rows else "missing"
        counts[status] = counts.get(status, 0) + 1
    return counts


def _twins(data: Dataset, outcomes: Mapping[str, str | None], reasons: dict[str, str]) -> dict[str, Any]:
    twins = {i: data.entries[i].twin for i in outcomes}
    share, pairs = both_right(outcomes, twins)
    if share is None:
        reasons["both_right"] = "no twin pair with both sides scored" if any(twins.values()) else "no twins"
    return {"both_right": share, "twin_pairs": pairs}


def _domains(domains: Mapping[str, Result]) -> dict[str, Any]:
    tallies = [r.tally for r in domains.values()]
    return {
        "macro_accuracy": macro_mean([t.accuracy for t in tallies]),
        "macro_strict_accuracy": macro_mean([t.strict_accuracy for t in tallies]),
        "by_domain": _each(domains),
    }


def _users(outcomes: Sequence[str | None], users: Sequence[str | None], reasons: dict[str, str]) -> dict[str, Any]:
    named = [(o, u) for o, u in zip(outcomes, users, strict=True) if u is not None]
    if not named:
        reasons["users"] = reasons["by_user"] = "no user ids"
        return {"by_user": {}, "users": None}
    results = by_group([o for o, _ in named], [u for _, u in named], None, intervals=False)
    brief = {
        name: {"n": r.tally.n, "scored": r.tally.scored, "accuracy": r.tally.accuracy} for name, r in results.items()
    }
    across = spread([r.tally.accuracy for r in results.values() if r.tally.accuracy is not None])
    if across is None:
        reasons["users"] = "fewer than two users were scored"
    return {"by_user": brief, "users": across}


def _counted(rows: Rows, ids: Sequence[str], name: str) -> dict[str, int]:
    counts = [rows[i]["shown"].get(name, 0) for i in ids if i in rows]
    return {"items": sum(c > 0 for c in counts), "posts": sum(counts)}
