"""Scoring of stored samples: `palate bon` on 8 answers an item beside the field's loop, as a share of the token limit.

    python benchmarks/bon/run.py [--items 4] [--turns 3]

Prompts are of 900 tokens, answers of 125 on average, the model is that of `benchmarks/scalar`. `limit` is
N(P+R)/(P+NR) = 4.3, the ratio of the tokens that go through the model. What is timed is the step as the command
runs it: reading samples, groups, scores, rows on disk.
"""

import argparse
import json
import platform
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scalar"))
from fixtures import ANSWER, WORK, classifier, field_loop, letters

from palate.bon import Request, best_of_n
from palate.bon.job import open_job
from palate.bon.samples import answer_of
from palate.records import Group
from palate.views import Looker, View

N, PROMPT, MEAN = 8, 900, 125
FOLDER = WORK / "bon"


def written(items: int) -> tuple[Path, Path]:
    """Write data and samples; return both paths."""
    rng = random.Random(8)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    data, samples = FOLDER / "data.jsonl", FOLDER / "samples.jsonl"
    rows = [{"id": f"i{k}", "question": letters(rng, PROMPT), "profile": []} for k in range(items)]
    low, high = ANSWER
    sizes = [low + round((high - low) * (k + 0.5) / N) for k in range(N)]
    texts = [
        {"item_id": row["id"], "k": k, "status": "ok", "text": letters(rng, size)}
        for row in rows
        for k, size in enumerate(rng.sample(sizes, N))
    ]
    for path, found in ((data, rows), (samples, texts)):
        path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return data, samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    data, samples = written(args.items)
    model, out = f"hf/{classifier()}", FOLDER / "out"
    request = Request(str(data), [model], ["question"], out, samples=samples, n=N)
    job = open_job(request)
    scorer: Any = job.scorings[0].model
    scorer.prepare()
    looker, held = Looker(job.data), {row["id"]: row for row in job.given}
    groups = [
        Group(looker.query(i, View("question")), tuple(answer_of(held[f"{i}@{k}"]) for k in range(N)))  # type: ignore[arg-type]
        for i in job.ids
    ]
    field_loop(scorer.engine.model, scorer.tokenizer, groups[:1])
    best_of_n(Request(str(data), [model], ["question"], out, samples=samples, n=N))
    ours, loop = [], []
    for _ in range(args.turns):
        shutil.rmtree(out)
        ours.append(scored(job, out, held))
        start = time.perf_counter()
        plain = field_loop(scorer.engine.model, scorer.tokenizer, groups)
        loop.append(time.perf_counter() - start)
    [path] = out.glob("*/rows.jsonl")
    found = {row["id"]: row["score"] for row in map(json.loads, path.read_text().splitlines())}
    ratio, limit = min(loop) / min(ours), N * (PROMPT + MEAN) / (PROMPT + N * MEAN)
    print(f"{platform.machine()}, N = {N}, P = {PROMPT}, R = {MEAN}, {args.items} items, best of {args.turns}")
    print(f"ours {min(ours):.2f} s, loop {min(loop):.2f} s, ratio {ratio:.2f}, {ratio / limit:.0%} of {limit:.2f}")
    print(f"largest difference {max(abs(found[k] - plain[k]) for k in plain):.1e}")
    shutil.rmtree(FOLDER)


def scored(job: Any, out: Path, held: dict[str, Any]) -> float:
    """Return the seconds of the scoring step, from the stored samples to rows on disk."""
    start = time.perf_counter()
    job.scorings[0].run(out, held, list(held), (), lambda *now: None)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
