"""Does training learn what pays, and nothing where nothing does? A tiny random policy, three seeds a method, on a CPU.

    python benchmarks/ppo/run.py [--json]

Needs the extra `ppo`. The reward is the share of the letter e in an answer; the control pays every answer 0.5. Both
are measured by that share: last fifth of the answers minus first, in standard errors of answers taken as independent.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from models import TinyModels
from palate.ppo import METHODS, train
from ppo.parts import Ruled, constant, letter, settings, share_of_e

SEEDS = (0, 1, 2)
SIZES = {"steps": 20, "batch": 32, "minibatch": 32, "response": 12}


def measure(method: str, seed: int, pays: bool, policy: Path, out: Path) -> dict[str, Any]:
    scorer = Ruled(letter if pays else constant)
    start = time.perf_counter()
    train(settings(method, policy, seed=seed, **SIZES), out, scorer=scorer)
    shares = [share_of_e(a.text) for g in scorer.groups for a in g.answers]
    some = len(shares) // 5
    first, last = shares[:some], shares[-some:]
    se = (statistics.variance(first) / some + statistics.variance(last) / some) ** 0.5
    return {
        "method": method,
        "seed": seed,
        "reward": "letter" if pays else "constant",
        "first": round(statistics.mean(first), 3),
        "last": round(statistics.mean(last), 3),
        "standard_errors": round((statistics.mean(last) - statistics.mean(first)) / se, 1),
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        policy = TinyModels(Path(folder))("llama", causal=True, num_hidden_layers=1)
        for method in METHODS:
            for seed in SEEDS:
                for pays in (True, False):
                    out = Path(folder) / f"{method}-{seed}-{pays}"
                    rows.append(measure(method, seed, pays, policy, out))
                    print(rows[-1], file=sys.stderr)
    assert all(r["standard_errors"] > 3 and r["seconds"] < 180 for r in rows if r["reward"] == "letter")
    if asked.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
