"""A whole `palate eval` of 200 pairs under `history` beside the field's loop over the same prompts."""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

from fixtures import WORK, classifier, field_loop, letters

from palate.data import open_data
from palate.evaluation import evaluate
from palate.evaluation.verdicts import groups_of, queries_of
from palate.retrieval import make_retriever
from palate.rewards import open_model
from palate.views import Looker, View

PAIRS, POSTS, TOKENS = 200, 12, 130


def data() -> Path:
    """Return 200 items with twelve posts of 130 tokens: prompts of about 1,350 tokens."""
    rng = random.Random(2)
    path = WORK / "pairs.jsonl"
    with path.open("w") as handle:
        for k in range(PAIRS):
            posts = [{"id": f"{k}-{n}", "text": letters(rng, TOKENS)} for n in range(POSTS)]
            row = {"id": str(k), "user_id": f"u{k}", "question": letters(rng, 12), "profile": posts}
            handle.write(json.dumps({**row, "chosen": letters(rng, 125), "rejected": letters(rng, 125)}) + "\n")
    return path


def pairs_row() -> dict[str, Any]:
    """Measure both; reading the data, ranking and writing rows count on our side only."""
    path, model = data(), f"hf/{classifier()}"
    out = WORK / "scalar-runs"
    shutil.rmtree(out, ignore_errors=True)
    start = time.perf_counter()
    run = evaluate(str(path), model, "history", out).runs[0]
    ours = time.perf_counter() - start
    opened, scorer = open_data(str(path)), open_model(model)
    scorer.prepare()  # type: ignore[union-attr]
    looker = Looker(opened, make_retriever("bm25"), None)
    groups = []
    for name in opened.ids:
        queries = queries_of(looker, View.parse("history"), name, None)
        groups += groups_of(opened.answers(name), queries)  # type: ignore[arg-type]
    start = time.perf_counter()
    plain = field_loop(scorer.engine.model, scorer.tokenizer, groups)  # type: ignore[union-attr]
    loop = time.perf_counter() - start
    ids = {a.id: (a.item_id, f"{a.role}_score") for g in groups for a in g.answers}
    gap = max(abs(run.rows[item][side] - plain[name]) for name, (item, side) in ids.items())
    return {
        "pairs": PAIRS,
        "seconds": round(ours, 1),
        "loop_seconds": round(loop, 1),
        "ratio": round(loop / ours, 2),
        "max_difference": gap,
    }
