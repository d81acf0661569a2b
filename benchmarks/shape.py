"""A generated data set in the shape of the real one: 2,830 items, 130 posts of 110 words, answers of 85 words."""

import json
import random
from pathlib import Path

WORK = Path(__file__).resolve().parent / ".work"
POSTS, WORDS, FULL = 130, 110, 2830


def generate(path: Path, items: int) -> None:
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
            handle.write(json.dumps(row) + "\n")


def generated(items: int) -> Path:
    """Return a set of that size, made once."""
    WORK.mkdir(exist_ok=True)
    path = WORK / f"set-{items}.jsonl"
    if not path.exists():
        generate(path, items)
    return path
