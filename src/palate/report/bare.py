"""The figures that rows give without the data: no users, domains or twins are known, so items are resampled."""

from collections.abc import Mapping
from typing import Any

from palate.evaluation.measure import figures
from palate.metrics import mean_interval

ABSENT = "the data is not at hand"
UNKNOWN: Mapping[str, Any] = {
    "both_right": None,
    "macro_accuracy": None,
    "macro_strict_accuracy": None,
    "by_domain": {},
    "by_user": {},
    "users": None,
    "by_history_size": {},
    "cold_start": None,
}


def measure_alone(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metrics that `rows` give by themselves; each one that needs the data is empty, with the reason."""
    result = mean_interval([row["outcome"] for row in rows.values()], None)
    statuses = [row["status"] for row in rows.values()]
    found = {
        **figures(result),
        "status": {name: statuses.count(name) for name in dict.fromkeys(statuses)},
        "twin_pairs": 0,
        **UNKNOWN,
    }
    missing = (
        {} if result.tally.scored else dict.fromkeys(("accuracy", "strict_accuracy", "ci95"), "nothing was scored")
    )
    return found | {"reasons": dict.fromkeys(UNKNOWN, ABSENT) | missing}
