"""Taking a model's thoughts out of its reply. Thoughts are never parsed, and an unfinished one is no answer."""

import re

from palate.llm.replies.outcome import OPEN_THOUGHT, Unparsed

_TAG = re.compile(r"<\s*(/?)\s*(?:think|thinking|reasoning|thought)\b[^<>]*>|\[\s*(/?)\s*think\s*\]", re.IGNORECASE)


def without_thoughts(text: str) -> str | Unparsed:
    """Return `text` without its closed blocks `<think>…</think>` (also thinking, reasoning, thought, `[THINK]`).

    A closing tag alone means that all before it was thought (some servers swallow the opening tag). Blocks may be
    nested; case and white space inside a tag do not matter.
    """
    kept: list[str] = []
    depth = start = 0
    for tag in _TAG.finditer(text):
        closes, empty = bool(tag[1] or tag[2]), tag[0].endswith("/>")
        if depth == 0:
            kept = [] if closes else [*kept, text[start : tag.start()]]
        if not empty:
            depth = max(0, depth - 1) if closes else depth + 1
        start = tag.end()
    return OPEN_THOUGHT if depth else "".join([*kept, text[start:]])
