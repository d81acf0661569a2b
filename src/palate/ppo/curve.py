"""The curve of a training: one row a step, a drawing, and what it comes to on the board."""

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from palate.pages.figures import INK, figure, to_svg
from palate.ppo.reward import Tally
from palate.store import RowLog

CURVE, PICTURE, BOARD = "curve.jsonl", "curve.svg", "board.json"
Row = Mapping[str, Any]
PANELS = (
    ("reward", "reward, ± 1 SD of the answers"),
    ("kl", "KL from the untrained policy"),
    ("length", "length in tokens"),
)


class Curve:
    """The rows of a training, keyed by step; a step that is done again replaces its row."""

    def __init__(self, folder: Path) -> None:
        self.log = RowLog(folder / CURVE)

    def add(self, step: int, tally: Tally, kl: float | None) -> Row:
        """Append a step's row."""
        row = {"id": f"{step:06d}", "step": step, **tally.as_dict, "kl": kl}
        self.log.append(row)
        return row

    def rows(self, steps: int) -> list[Row]:
        """Return the rows of the first `steps` steps in order."""
        return sorted((r for r in self.log.rows.values() if r["step"] <= steps), key=lambda r: int(r["step"]))


def gain(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how much the mean reward rose from the first steps to the last ones, and its standard error.

    A fifth of the steps, at most ten, stands for either end. The standard error takes answers as independent:
    sqrt(s₁²/n₁ + s₂²/n₂).
    """
    some = max(1, min(10, len(rows) // 5))
    first, last = _pooled(rows[:some]), _pooled(rows[-some:])
    if first is None or last is None or len(rows) < 2:
        return {"value": None, "se": None, "n": 0, "steps": some}
    se = sqrt(first[1] + last[1])
    return {"value": last[0] - first[0], "se": se, "n": last[2], "steps": some}


def _pooled(rows: Sequence[Row]) -> tuple[float, float, int] | None:
    """Return mean, squared standard error and number of the rewards of some steps; None with fewer than two."""
    parts = [(r["scored"], r["reward"], r["reward_sd"] or 0.0) for r in rows if r["scored"]]
    n = sum(k for k, _, _ in parts)
    if n < 2:
        return None
    mean = sum(k * m for k, m, _ in parts) / n
    squares = sum((k - 1) * s**2 + k * (m - mean) ** 2 for k, m, s in parts)
    return mean, squares / (n - 1) / n, n


def board_rows(rows: Sequence[Row], system: str, source: Row) -> list[dict[str, Any]]:
    """Return a training's results as `{system, metric, value, ci95, n, source}`."""
    found = gain(rows)
    value, se = found["value"], found["se"]
    ci = None if value is None else [value - 1.96 * se, value + 1.96 * se]
    told = {**source, "steps": found["steps"], "method": "normal; answers taken as independent"}
    reason = {} if value is not None else {"reason": "fewer than two steps with rewards"}
    results = [_result(system, "train/reward_gain", value, ci, found["n"], told | reason)]
    for name, _ in PANELS:
        last = [(r[name], r["n"]) for r in rows[-found["steps"] :] if r[name] is not None]
        n = sum(k for _, k in last)
        mean = sum(v * k for v, k in last) / n if n else None
        missing = {} if n else {"reason": "not measured"}
        results.append(_result(system, f"train/{name}", mean, None, n, {**source, "steps": found["steps"], **missing}))
    return results


def _result(system: str, metric: str, value: Any, ci: Any, n: int, source: Row) -> dict[str, Any]:
    return {"system": system, "metric": metric, "value": value, "ci95": ci, "n": n, "source": dict(source)}


def draw(rows: Sequence[Row], name: str) -> str:
    """Return reward, KL and length by step as an SVG document; the band is one standard deviation of the rewards."""
    from matplotlib.ticker import MaxNLocator

    with figure(9.0, 2.6) as (made, first):
        first.remove()
        for axes, (field, label) in zip(made.subplots(1, len(PANELS)), PANELS, strict=True):
            some = [r for r in rows if r[field] is not None]
            steps = [r["step"] for r in some]
            axes.plot(steps, [r[field] for r in some], color="#0072b2", linewidth=1.2)
            if field == "reward":
                low = [r["reward"] - (r["reward_sd"] or 0.0) for r in some]
                high = [r["reward"] + (r["reward_sd"] or 0.0) for r in some]
                axes.fill_between(steps, low, high, color="#0072b2", alpha=0.15, linewidth=0)
            if not some:
                axes.text(0.5, 0.5, "not measured", ha="center", color=INK, transform=axes.transAxes)
            axes.set_xlabel("step")
            axes.set_title(label, fontsize=9)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(visible=True)
        return to_svg(made, name)
