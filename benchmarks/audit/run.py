"""The audit of a generated set in the shape of the real one, keys included.

    python benchmarks/audit/run.py [--quick] [--json]

A process of its own; time is wall time of the whole command, memory its peak resident set. The words of the set are
drawn from one stream, so that texts do share runs of words and the checks have something to find.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from shape import FULL, WORK, generated

MOST_SECONDS, MOST_MB = 60, 1500
CHILD = """
import resource, sys
from palate.cli.app import run
code = run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def measure(items: int) -> dict[str, float | str]:
    data = generated(items, keys=True)
    args = ["data", "audit", str(data), "--out", str(WORK / "audit"), "--json"]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CHILD, *args], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    found = json.loads(done.stdout)
    assert found["data"]["items"] == items
    assert done.returncode == (found["verdict"] == "flagged")
    return {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "items": items,
        "data_mb": round(data.stat().st_size / 1e6),
        "seconds": round(seconds, 1),
        "peak_mb": round(int(done.stderr.split()[-1]) / 1024),
        "flagged": found["counts"]["flagged"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    row = measure(FULL // 10 if args.quick else FULL)
    if args.json:
        print(json.dumps(row, indent=2))
    else:
        print(f"{row['items']} items ({row['data_mb']} MB): {row['seconds']} s, peak {row['peak_mb']} MB")
    if float(row["seconds"]) > MOST_SECONDS or float(row["peak_mb"]) > MOST_MB:
        sys.exit(f"over {MOST_SECONDS} s or {MOST_MB} MB")


if __name__ == "__main__":
    main()
