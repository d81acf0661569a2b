"""What is at an address? Ask it, and speak as it does."""

from collections.abc import Callable, Mapping

from palate.errors import ModelError
from palate.rewards.http.dialect import START, TESTED, Dialect
from palate.rewards.http.options import Options
from palate.rewards.http.palate import find_palate
from palate.rewards.http.questions import Questions
from palate.rewards.http.sglang import find_sglang
from palate.rewards.http.vllm import find_vllm

Finder = Callable[[Options, Questions], Dialect | None]
FINDERS: Mapping[str, Finder] = {"palate": find_palate, "sglang": find_sglang, "vllm": find_vllm}


def find_server(options: Options, questions: Questions) -> Dialect:
    """Return the dialect of the server, of all that are known or of the one that is asked for.

    Raises:
        ModelError: nothing answers, or nothing there gives rewards; what was found is told.
    """
    tried = [options.api] if options.api != "auto" else list(FINDERS)
    for name in tried:
        found = FINDERS[name](options, questions)
        if found is not None:
            return found
    raise ModelError(
        f"model '{questions.name}': no reward server of a known kind ({', '.join(tried)}). Found: {questions.told}.\n"
        f"Start one for rewards. {START}.\nTested with {TESTED}."
    )
