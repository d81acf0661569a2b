"""Six reward models' best-of-16 picks: what predicts their published win rates, and what cannot be said.

    python examples/rewardbench_bon.py ../shared/data/rewardbench_bon --out bon-example

The folder holds 805 prompts with 16 samples each: lengths, a judge's preference (1 to 2, above 1.5 a win) for samples
0 to 10 alone, and the sample that each of six reward models picked; and the win rates published for these models.
Samples are stored from the shortest to the longest. So "the first N" are the shortest N, and the picks that were judged
are the short ones. `--seed` shuffles the samples where their order matters. With `--out` two tables are written that
`palate correlate` reads.
"""

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palate.metrics.latent import latent_interval
from palate.metrics.ranking import agreement
from palate.metrics.swap import swap_test

Array = NDArray[np.float64]
SAMPLES = 16
STATISTICS = ("ndcg", "rbo", "weighted_tau", "spearman", "kendall")


@dataclass(frozen=True, slots=True)
class Pick:
    """One model's picks. `judged` is on how many prompts a judged sample was picked, the rest is unknown.

    `preference` is the judge's mean over these (0..1), `beaten` the share of the other judged samples that the pick is
    preferred to (ties half), `length` the mean number of characters over all picks. `published` and `error` are the win
    rate over all prompts and its standard error (0..1), `controlled` the one with length held fixed.
    """

    model: str
    judged: int
    preference: float
    beaten: float
    length: float
    published: float
    error: float
    controlled: float

    def bounds(self, prompts: int) -> tuple[float, float]:
        """Return the least and the largest mean over all prompts that the judged picks leave possible."""
        known = self.preference * self.judged / prompts
        return known, known + 1 - self.judged / prompts

    def unseen(self, prompts: int) -> float:
        """Return the mean over picks that were not judged here, by the published figure."""
        return (self.published * prompts - self.preference * self.judged) / (prompts - self.judged)


def read(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the prompts and the published win rates by model."""
    lines = (folder / "bon16_scores_805.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], json.loads((folder / "bon_eval_results.json").read_text("utf-8"))


def picks(rows: list[dict[str, Any]], published: dict[str, Any]) -> list[Pick]:
    """Return what can be computed for each model, in the order of names."""
    return [_picked(model, rows, published[model]) for model in sorted(rows[0]["rm_pick"])]


def _picked(model: str, rows: list[dict[str, Any]], told: dict[str, Any]) -> Pick:
    preferences, beaten, lengths = [], [], []
    for row in rows:
        chosen, judged = row["rm_pick"][model], row["judge_pref_vs_gpt35"]
        lengths.append(float(np.mean([row["n_chars"][k] for k in chosen])))
        own = [judged[str(k)] for k in chosen if str(k) in judged]  # several indexes are one text given twice
        if not own:
            continue
        others = np.array([value for k, value in judged.items() if int(k) not in chosen])
        preferences.append(float(np.mean(own)) - 1)
        if len(others):
            beaten.append(float(np.mean((others < np.mean(own)) + 0.5 * (others == np.mean(own)))))
    return Pick(
        model,
        len(preferences),
        float(np.mean(preferences)),
        float(np.mean(beaten)),
        float(np.mean(lengths)),
        told["win_rate"] / 100,
        told["standard_error"] / 100,
        told["length_controlled_winrate"] / 100,
    )


def best_of(rows: list[dict[str, Any]], seed: int | None) -> Array:
    """Return the mean of the best judged preference among the first 1 … 11 samples; stored order without a seed."""
    table = np.array([[row["judge_pref_vs_gpt35"][str(k)] for k in range(11)] for row in rows]) - 1
    if seed is not None:
        table = np.random.default_rng(seed).permuted(table, axis=1)
    found: Array = np.maximum.accumulate(table, axis=1).mean(0)
    return found


def told(found: list[Pick], rows: list[dict[str, Any]], seed: int) -> list[str]:
    """Return the report, line by line."""
    n = len(rows)
    lines = [f"{n} prompts, {SAMPLES} samples each, of which 0 to 10 (the shorter ones) were judged", ""]
    lines.append(f"{'model':50} judged  mean  bounds over all  published  unseen")
    for pick in found:
        low, high = pick.bounds(n)
        figures = f"{pick.judged:6}  {pick.preference:.3f}     {low:.3f} – {high:.3f}      {pick.published:.3f}   "
        lines.append(f"{pick.model:50} {figures}{pick.unseen(n):.3f}")
    stored, mixed = best_of(rows, None), best_of(rows, seed)
    lines += ["", f"best of the first 1: {stored[0]:.3f} as stored, {mixed[0]:.3f} shuffled (seed {seed})"]
    lines.append(f"best of the first 4: {stored[3]:.3f} as stored, {mixed[3]:.3f} shuffled")
    truth, errors = [p.published for p in found], [p.error for p in found]
    for label, scores in _predictors(found).items():
        lines += ["", f"{label} → published win rate, n = {len(found)}"]
        lines += [_line(name, truth, errors, scores) for name in STATISTICS]
    one, other = _predictors(found).values()
    swap = swap_test("spearman", truth, one, other)
    lines += ["", f"judged picks against mere length: Spearman {_gap(swap.difference)}, p {swap.p:.3f}"]
    lines[-1] += f" (the smallest possible: {swap.least_p:.3f})"
    return [*lines, "", *conclusions()]


def _predictors(found: list[Pick]) -> dict[str, list[float]]:
    return {
        "judge's mean over judged picks": [p.preference for p in found],
        "length of picks": [p.length for p in found],
    }


def _gap(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}"


def _line(name: str, truth: list[float], errors: list[float], scores: list[float]) -> str:
    found = agreement(name, truth, scores)
    interval = latent_interval(name, truth, scores, truth_errors=errors)
    if found.value is None or found.p_greater is None:
        return f"  {name:13} undefined: {found.reason}"
    span = "no interval" if interval is None else f"{interval.low:+.3f} – {interval.high:+.3f}"
    return f"  {name:13} {found.value:+z.3f}  by chance {found.expected:+z.3f}  p {found.p_greater:.4f}  95 % {span}"


def conclusions() -> list[str]:
    """Return in plain words what these data can and cannot tell."""
    return [
        "Can be said: the mean over judged picks and the published figure share judge, prompts and picks; that they",
        "agree shows that the tables fit together, not that a benchmark predicts. Between 35 and 61 % of",
        "a model's picks were judged; of the models with the longer picks, fewer.",
        "Cannot be said: a model's win rate from these picks alone (the bounds of all six overlap; no weighting helps,",
        "as the five longest samples were never judged); how well a model orders two samples (only its first choice",
        "is known); which of two predictors is better (six models).",
    ]


def write(found: list[Pick], folder: Path) -> None:
    """Write `picks.csv`, `length.csv` and `published.csv` (with 95 % intervals), as `palate correlate` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[list[object]]] = {
        "picks": [["model", "score"], *([p.model, p.preference] for p in found)],
        "length": [["model", "score"], *([p.model, p.length] for p in found)],
        "published": [
            ["model", "score", "low", "high"],
            *([p.model, p.published, p.published - 1.96 * p.error, p.published + 1.96 * p.error] for p in found),
        ],
    }
    for name, table in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows(table)


def main() -> None:
    """Read the folder, print the report, and write the tables if asked."""
    parser = argparse.ArgumentParser(description="Best-of-16 picks of six reward models, and published win rates.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows, published = read(args.folder)
    found = picks(rows, published)
    print("\n".join(told(found, rows, args.seed)))
    if args.out:
        write(found, args.out)


if __name__ == "__main__":
    main()
