"""Stems, as far as comparing short phrases needs them."""

_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "ness", "ment", "ments", "er", "ers", "est")
_SHORTEST = 3


def stem(word: str) -> str:
    """Return a word without its commonest English ending, so that "rides", "riding" and "ride" meet."""
    for ending in sorted(_ENDINGS, key=len, reverse=True):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word[: -len(ending)]
            if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    return word[:-1] if len(word) > _SHORTEST and word[-1] in "ey" else word
