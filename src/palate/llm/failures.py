"""What a server's refusal means: the status of the call, and what to leave out of the next request."""

import re
from dataclasses import dataclass
from json import JSONDecodeError

from palate.records import Status

MOST_LOGPROBS = 20
FEWER_LOGPROBS = 5
HEAD = 500
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|too (?:long|large)|too many tokens"
    r"|exceeds? the (?:available|maximum|model)",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"content[ _](?:filter|policy|management)|safety (?:system|policy)|moderation", re.IGNORECASE)
_NOT_TAKEN = re.compile(r"support|deprecated|unknown|unrecognized|not (?:allowed|permitted)|unexpected", re.IGNORECASE)
_FORM = (400, 415, 422, 501)


@dataclass(slots=True)
class Habits:
    """What a server turned out not to understand; learned from its refusals."""

    schema: bool = True
    temperature: bool = True
    seed: bool = True
    token_field: str = "max_tokens"
    logprobs: int = MOST_LOGPROBS


def is_fatal(bad: Exception) -> bool:
    """Whether every further call would fail in the same way: a wrong key, no such model, an empty account."""
    import openai

    if isinstance(bad, openai.PermissionDeniedError):
        return not _REFUSED.search(str(bad))
    empty = isinstance(bad, openai.RateLimitError) and getattr(bad, "code", None) == "insufficient_quota"
    return empty or isinstance(bad, openai.AuthenticationError | openai.NotFoundError)


def status_of(bad: Exception) -> Status:
    """Return the status of a failed call: too long for the model, refused, or an error."""
    text = str(bad)
    if getattr(bad, "status_code", None) in (400, 403, 413, 422):
        if _TOO_LONG.search(text) or getattr(bad, "code", None) == "context_length_exceeded":
            return "overlong"
        if _REFUSED.search(text):
            return "refused"
    return "error"


def cause_of(bad: BaseException) -> str:
    """Return what went wrong in one line, with the cause below it and the head of what was sent instead."""
    found = [f"{type(bad).__name__}: {bad}"]
    if bad.__cause__ is not None and str(bad.__cause__) not in found[0]:
        found.append(f"({type(bad.__cause__).__name__}: {bad.__cause__})")
    if isinstance(bad, JSONDecodeError):
        found.append(f"in {bad.doc[:HEAD]!r}")
    return " ".join(found)


def about_form(bad: Exception) -> bool:
    """Whether a server may have refused the form of a request, not what it says."""
    return getattr(bad, "status_code", None) in _FORM and status_of(bad) == "error"


def learn(habits: Habits, bad: Exception) -> None:
    """Note what the server does not take, as far as its refusal names it."""
    low = str(bad).lower()
    if any(w in low for w in ("response_format", "json_schema", "structured output", "grammar")):
        habits.schema = False
    elif "max_completion_tokens" in low:
        habits.token_field = "max_completion_tokens"
    elif "logprobs" in low:
        habits.logprobs = FEWER_LOGPROBS
    elif re.search(r"\bseed\b", low) and _NOT_TAKEN.search(low):
        habits.seed = False
    elif "temperature" in low and _NOT_TAKEN.search(low):
        habits.temperature = False
