"""A model behind the server beside the same model in process, on the same groups: answers a second, and their ratio.

    python benchmarks/serve/run.py [--quick] [--json]

The server is a process of its own on the same cores; four clients send it a group a request, or four pairs. Each
figure is the best of several turns, taken one after the other. `cpu_ratio` compares the processor's seconds instead,
which other work on the machine does not move.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scalar"))
import psutil
from fixtures import classifier, group

from palate.records import Group
from palate.rewards import open_model

CLIENTS, TURNS = 4, 2
CELLS = ((16, 1500, 4, 1), (2, 1500, 8, 4))
QUICK = ((16, 400, 3, 1), (2, 400, 8, 4))


@contextmanager
def served(model: str) -> Iterator[tuple[str, int]]:
    """Run a server and yield its address and process id."""
    command = [sys.executable, "-m", "palate", "serve", "--model", model, "--port", "0", "--timeout", "300"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    try:
        yield process.stderr.readline().partition(" at ")[2].split()[0], process.pid
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0


def ask(url: str, groups: Sequence[Group]) -> dict[str, float]:
    """Return the scores of some groups by one request."""
    items = [
        {
            "id": a.id,
            "messages": [{"role": m.role, "content": m.content} for m in g.query.messages],
            "response": a.text,
        }
        for g in groups
        for a in g.answers
    ]
    body, head = json.dumps({"items": items}).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/score", body, head), timeout=300) as reply:
        return {r["id"]: r["score"] for r in json.load(reply)["results"]}


def by_server(url: str, groups: Sequence[Group], at_once: int) -> dict[str, float]:
    parts = [groups[k : k + at_once] for k in range(0, len(groups), at_once)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        return {k: v for found in pool.map(lambda part: ask(url, part), parts) for k, v in found.items()}


def cpu(pid: int) -> float:
    """Return the seconds of the processor that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def timed(pid: int, step: Callable[[], dict[str, Any]]) -> tuple[float, float, dict[str, Any]]:
    """Return seconds, seconds of the processor in `pid`, and the result."""
    start, used = time.perf_counter(), cpu(pid)
    found = step()
    return time.perf_counter() - start, cpu(pid) - used, found


def rows(model: str, cells: Sequence[tuple[int, int, int, int]]) -> Iterator[dict[str, Any]]:
    scorer: Any = open_model(model)
    with served(model) as (url, pid):
        warm = [group(300, 2), group(50, 2, 1)]
        list(scorer.score(warm))
        by_server(url, warm, 2)
        for answers, prompt, count, at_once in cells:
            yield row(scorer, url, pid, [group(prompt, answers, seed) for seed in range(count)], at_once)


def row(scorer: Any, url: str, pid: int, groups: list[Group], at_once: int) -> dict[str, Any]:
    """Measure one cell."""
    home, away, gap = [], [], 0.0
    for _ in range(TURNS):
        *used, ours = timed(os.getpid(), lambda: {s.answer_id: s.value for s in scorer.score(groups)})
        home.append(used)
        *used, theirs = timed(pid, lambda: by_server(url, groups, at_once))
        away.append(used)
        gap = max(gap, *(abs(ours[k] - theirs[k]) for k in ours))
    (seconds, cpu_home), (served_seconds, cpu_away) = (list(map(min, zip(*of, strict=True))) for of in (home, away))
    return {
        "answers": len(groups[0].answers),
        "prompt_tokens": len(groups[0].query.messages[0].content),
        "groups": len(groups),
        "seconds_in_process": round(seconds, 2),
        "seconds_served": round(served_seconds, 2),
        "ratio": round(seconds / served_seconds, 2),
        "cpu_ratio": round(cpu_home / cpu_away, 2),
        "max_difference": gap,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="prompts of 400 tokens instead of 1,500")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    found = []
    for one in rows(f"hf/{classifier()}", QUICK if args.quick else CELLS):
        found.append(one)
        print(one, file=sys.stderr if args.json else sys.stdout, flush=True)
    if args.json:
        print(json.dumps({"rows": found}, indent=2))


if __name__ == "__main__":
    main()
