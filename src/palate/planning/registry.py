"""Planners by name."""

from palate.data import Dataset
from palate.errors import SpecError, did_you_mean
from palate.llm.client import Spending
from palate.llm.served import SERVER_OPTIONS
from palate.llm.transport import Told
from palate.planning.base import Planner
from palate.spec import Spec

NAMES = ("keyphrase", "question-only", "llm/<model>", "stored/<folder>")
STORED = "stored/"


def make_planner(
    text: str,
    data: Dataset,
    base_url: str | None = None,
    spending: Spending | None = None,
    told: Told | None = None,
) -> Planner:
    """Return the planner that a string names.

    Args:
        text: `keyphrase`, `question-only` or `llm/<model>[?base_url=…&max_tokens=…&temperature=…]`.
        data: whose posts tell what is common in a domain; its keys are not read.
        base_url: the server of `llm/…`, unless the string names one.
        spending: limits of calls and tokens.
        told: told of retries.

    Raises:
        SpecError: an unknown name or option.
    """
    spec = Spec.parse(text, "planner")
    family, _, rest = spec.head.partition("/")
    if family == "llm" and rest:
        from palate.planning.llm import LlmPlanner

        return LlmPlanner(spec, base_url, spending or Spending(), told)
    if spec.head in ("keyphrase", "question-only"):
        if spec.revision:
            raise SpecError(f"planner '{text}': '{spec.head}' takes no revision.")
        spec.only((), "planner")
        from palate.planning.keyphrase import Keyphrase

        return Keyphrase(data, reads_posts=spec.head == "keyphrase")
    raise SpecError(f"planner '{text}': unknown.{did_you_mean(spec.head, NAMES)}")


def neutral(text: str) -> str:
    """Return a planner string without the options that say where a server is, which do not decide plans."""
    spec = Spec.parse(text, "planner")
    return str(Spec(spec.head, spec.revision, {k: v for k, v in spec.options.items() if k not in SERVER_OPTIONS}))
