"""A policy and a grader behind one stub: texts differ by seed, and grades follow what stands in them."""

import json
from typing import Any

from llm.stub import Asked, Reply
from rows import make_row

ASPECTS = [
    {"aspect": "Beans", "evidence": "I eat beans", "reason": "They have plenty."},
    {"aspect": "Short", "evidence": "I have no time", "reason": "They are busy."},
]
LEVELS = ((0, 0), (0, 1), (1, 1), (2, 1), (2, 2))


def rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [make_row(k, **{"rubric_aspects": ASPECTS, **changes}) for k in range(1, count + 1)]


def is_grading(asked: Asked) -> bool:
    return "You check how well an answer" in asked.prompt


def level_of(prompt: str) -> int:
    """Return the level of the aspect asked about: the answer names its own."""
    number = int(prompt.partition("quality ")[2][0])
    return LEVELS[number][0 if "is checked: Beans" in prompt else 1]


def answer_in(prompt: str) -> str:
    """Return the answer that a grader is shown."""
    return prompt.partition("=====\n")[2].partition("\n=====")[0]


def world(asked: Asked) -> Reply:
    """Sample for a policy, grade for a grader."""
    if is_grading(asked):
        return Reply(json.dumps({"reason": "so", "score": level_of(asked.prompt)}))
    seed = asked.body["seed"]
    return Reply(f"An answer of quality {seed % 5}, " + "long " * (seed % 7))


def sample(item: int, place: int, text: str | None = "Some words.", status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"item_id": f"q{item}", "k": place, "status": status, "text": text, **more}
