"""Of one family? A judge may prefer texts of its own kind, so data and judge of one family are worth a warning."""

import re

FAMILIES = (
    "claude", "command", "deepseek", "falcon", "gemini", "gemma", "glm", "gpt", "grok", "kimi", "llama", "mistral",
    "nemotron", "olmo", "phi", "qwen", "smollm", "yi",
)  # fmt: skip
KIN = {"gemma": "gemini", "mixtral": "mistral", "o1": "gpt", "o3": "gpt", "o4": "gpt", "chatgpt": "gpt"}


def family(name: str) -> str | None:
    """Return the family that a model's name tells, None if it tells none."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    for word in words:
        stem = re.sub(r"\d.*$", "", word)
        for candidate in (word, stem):
            if candidate in KIN:
                return KIN[candidate]
            if candidate in FAMILIES:
                return candidate
    return None


def kinship(model: str, generators: set[str]) -> str | None:
    """Return a warning if `model` and one of the data's generators are of one family."""
    own = family(model)
    shared = sorted(g for g in generators if own is not None and family(g) == own)
    if not shared:
        return None
    return (
        f"{model} judges answers that its own family wrote ({', '.join(shared)}); judges tend to prefer their own kind"
    )
