"""Many answers to one prompt: a shared prompt beside the field's loop, dense retrieval, and a whole `palate eval`.

    python benchmarks/scalar/run.py [--quick] [--json] [--device cuda]

Everything runs in one process on the same model and inputs; each figure is the better of several turns taken one
after the other. `ratio` is the loop's time over ours, `limit` is N(P+R)/(P+NR), the ratio of the tokens that go
through the model; `peak_mb` is the largest resident set while ours ran.
"""

import argparse
import json
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fixtures import WORK, classifier, field_loop, group
from pairs import pairs_row

from palate.rewards import open_model
from retrieval import retrieval_rows

ANSWERS, PROMPTS = (2, 4, 16, 64), (50, 300, 1500, 4000)
QUICK = ((2, 1500), (16, 1500))
MEAN_ANSWER = 125
TOKENS = 40_000


def peak_reset() -> None:
    """Make the kernel count the peak resident set anew, where it can (Linux)."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")


def peak_mb() -> int | None:
    """Return the peak resident set since the reset."""
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    line = next(li for li in path.read_text().splitlines() if li.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def timed(step: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = step()
    return time.perf_counter() - start, found


def row(scorer: Any, answers: int, prompt: int) -> dict[str, Any]:
    """Measure one cell of the table."""
    whole = answers * (prompt + MEAN_ANSWER)
    groups = [group(prompt, answers, seed) for seed in range(max(1, min(8, TOKENS // 4 // whole)))]
    model, tokenizer = scorer.engine.model, scorer.tokenizer
    turns = max(1, min(2, 4 * TOKENS // (whole * len(groups))))
    ours, loop, peak = [], [], None
    for _ in range(turns):
        peak_reset()
        seconds, shared = timed(lambda: {s.answer_id: s.value for s in scorer.score(groups)})
        peak = max(filter(None, (peak, peak_mb())), default=None)
        ours.append(seconds)
        seconds, plain = timed(lambda: field_loop(model, tokenizer, groups))
        loop.append(seconds)
    ratio, limit = min(loop) / min(ours), whole / (prompt + answers * MEAN_ANSWER)
    return {
        "answers": answers,
        "prompt_tokens": prompt,
        "groups": len(groups),
        "turns": turns,
        "seconds": round(min(ours), 3),
        "loop_seconds": round(min(loop), 3),
        "ratio": round(ratio, 2),
        "limit": round(limit, 2),
        "share_of_limit": round(ratio / limit, 2),
        "max_difference": max(abs(shared[k] - plain[k]) for k in plain),
        "peak_mb": peak,
    }


def rows(quick: bool, device: str | None) -> Iterator[dict[str, Any]]:
    scorer = open_model(f"hf/{classifier()}" + (f"?device={device}" if device else ""))
    list(scorer.score([group(300, 2), group(50, 2, 1), group(50, 2, 2)]))
    cells = QUICK if quick else [(n, p) for p in PROMPTS for n in ANSWERS]
    for answers, prompt in cells:
        yield row(scorer, answers, prompt)
    assert scorer.environment["shared_prefix"].startswith("on; against"), scorer.environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="P = 1,500 and N = 2, 16 only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--device", help="as in ?device=")
    args = parser.parse_args()
    import torch

    machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    result: dict[str, Any] = {"machine": machine, "device": args.device or "cpu", "rows": []}

    def say(line: str) -> None:
        print(line, file=sys.stderr if args.json else sys.stdout, flush=True)

    say(machine)
    say("   N      P    ours s    loop s   ratio   limit  of it      diff     MB")
    for r in rows(args.quick, args.device):
        result["rows"].append(r)
        say(
            f"{r['answers']:>4} {r['prompt_tokens']:>6} {r['seconds']:>9.3f} {r['loop_seconds']:>9.3f} "
            f"{r['ratio']:>7.2f} "
            f"{r['limit']:>7.2f} {r['share_of_limit']:>6.2f} {r['max_difference']:>9.1e} {r['peak_mb'] or 0:>6}"
        )
    if not args.quick:
        result["retrieval"] = list(retrieval_rows())
        result["pairs"] = pairs_row()
        say(json.dumps({k: result[k] for k in ("retrieval", "pairs")}, indent=2))
    if args.json:
        print(json.dumps(result, indent=2))
    shutil.rmtree(WORK / "scalar-runs", ignore_errors=True)


if __name__ == "__main__":
    main()
