"""Exact permutation tests of nine models, and joint resamples of twenty models on 2,830 shared items.

python benchmarks/correlate/run.py [--json]
"""

import argparse
import json
import platform
import time

import numpy as np

from palate.metrics.latent import joint_resamples
from palate.metrics.ranking import MEASURES, agreement

MODELS, ITEMS, RESAMPLES = 20, 2830, 10_000


def exact() -> float:
    """Return the seconds that five statistics of nine models take, all 362,880 orders each."""
    rng = np.random.default_rng(0)
    truth, scores = rng.standard_normal((2, 9))
    start = time.perf_counter()
    for name in MEASURES:
        assert agreement(name, truth, scores).exact
    return time.perf_counter() - start


def resampled() -> float:
    """Return the seconds that the joint resamples take."""
    outcomes = (np.random.default_rng(0).random((MODELS, ITEMS)) < 0.7).astype(float)
    start = time.perf_counter()
    assert joint_resamples(outcomes, RESAMPLES, 0).shape == (RESAMPLES, MODELS)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "exact_nine_seconds": round(exact(), 2),
        "joint_resamples_seconds": round(resampled(), 2),
    }
    print(json.dumps(found, indent=2) if args.json else found)


if __name__ == "__main__":
    main()
