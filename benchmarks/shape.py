"""A generated data set in the shape of the real one: 2,830 items, 130 posts of 110 words, answers of 85 words.

With keys, an item also has 5 aspects of 40 words and a narrative of 110.
"""

import json
import random
from pathlib import Path

WORK = Path(__file__).resolve().parent / ".work"
POSTS, WORDS, FULL, ASPECTS = 130, 110, 2830, 5


def generate(path: Path, items: int, *, keys: bool = False) -> None:
    rng = random.Random(1)
    vocabulary = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10))) for _ in range(30_000)]
    weights = [1 / (k + 1) for k in range(len(vocabulary))]
    stream = rng.choices(vocabulary, weights, k=2_000_000)

    def text(words: int) -> str:
        start = rng.randrange(len(stream) - words)
        return " ".join(stream[start : start + words])

    with path.open("w") as handle:
        for k in range(items):
            row = {
                "id": str(k),
                "user_id": f"u{k}",
                "domain": f"domain-{k % 3}",
                "question": text(12),
                "profile": [{"id": f"{k}-{n}", "category": "any", "text": text(WORDS)} for n in range(POSTS)],
                "chosen": text(85),
                "rejected": text(85),
            }
            if keys:
                parts = {"aspect": 5, "evidence": 15, "reason": 20}
                row["rubric_aspects"] = [{name: text(words) for name, words in parts.items()} for _ in range(ASPECTS)]
                row["narrative"] = text(WORDS)
            handle.write(json.dumps(row) + "\n")


def generated(items: int, *, keys: bool = False) -> Path:
    """Return a set of that size, made once."""
    WORK.mkdir(exist_ok=True)
    path = WORK / f"set-{items}{'-keys' if keys else ''}.jsonl"
    if not path.exists():
        generate(path, items, keys=keys)
    return path
