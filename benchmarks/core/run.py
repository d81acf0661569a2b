"""How the core grows: a generated set in the shape of the real one through `builtin/lexical` under `history`.

    python benchmarks/core/run.py [--quick] [--json]

Each size is a process of its own; time is wall time of the whole command, memory its peak resident set.
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from shape import FULL, WORK, generated

CHILD = """
import resource, sys
from palate.cli import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def measure(items: int) -> dict[str, float]:
    data, out = generated(items), WORK / "runs"
    shutil.rmtree(out, ignore_errors=True)
    args = ["eval", "--data", str(data), "--model", "builtin/lexical", "--view", "history", "--out", str(out), "--json"]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CHILD, *args], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    assert json.loads(done.stdout)["runs"][0]["metrics"]["scored"] == items
    return {
        "items": items,
        "seconds": round(seconds, 2),
        "peak_mb": round(int(done.stderr.split()[-1]) / 1024),
        "data_mb": round(data.stat().st_size / 1e6),
    }


def help_time() -> float:
    def best(args: list[str]) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, *args], capture_output=True, check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    return best(["-m", "palate", "--help"]) - best(["-c", "pass"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    scale = 10 if args.quick else 1
    rows = [measure(items // scale) for items in (FULL // 4, FULL // 2, FULL)]
    result = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "help_seconds_beyond_python": round(help_time(), 3),
        "rows": rows,
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    print(f"palate --help beyond a bare Python start: {result['help_seconds_beyond_python']} s")
    for row in rows:
        per = 1000 * row["seconds"] / row["items"]
        print(
            f"{row['items']:>6.0f} items ({row['data_mb']} MB): {row['seconds']} s, "
            f"{per:.1f} ms an item, peak {row['peak_mb']} MB"
        )


if __name__ == "__main__":
    main()
