"""Which language is a text in? By py3langid, a naive Bayes model over byte sequences; honest when it cannot tell."""

from functools import cache
from importlib.util import find_spec
from typing import Any

from palate.errors import MissingExtra

SURE = 0.8
METHOD = "py3langid"


def require() -> None:
    """Make sure that languages can be told.

    Raises:
        MissingExtra: the library is not installed.
    """
    if find_spec("py3langid") is None:
        raise MissingExtra("telling languages apart", "llm")


def language_of(text: str) -> str | None:
    """Return the ISO code of the text's language, or None if the model gives it less than 80 %."""
    code, share = _identifier().classify(text)
    return str(code) if share >= SURE else None


@cache
def _identifier() -> Any:
    require()
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
