"""SGLang: `/classify` takes texts or token ids and gives the head's output as an `embedding`.

It applies no chat template, so the tokens are made here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from palate.errors import ModelError
from palate.records import Score
from palate.rewards.http.dialect import START, TESTED, Facts, Piece, score_of, value_of
from palate.rewards.http.options import Options
from palate.rewards.http.questions import Questions

CLASSIFY = "/classify"
ABOUT = ("/model_info", "/get_model_info")
SERVER = ("/server_info", "/get_server_info")


@dataclass(frozen=True, slots=True)
class Sglang:
    """The answers of a query together, as token ids; results come in their order."""

    facts: Facts
    label: int | None
    name: str
    at_once: int = 8
    parallel: int = 16
    takes_tokens: bool = True
    checks_room: bool = False

    def body(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """Return the request."""
        return {"input_ids": [p.ids for p in pieces]}

    def read(self, reply: Any, pieces: Sequence[Piece]) -> list[Score]:
        """Return the scores in the order of the request, which is all that SGLang promises."""
        rows = [reply] if isinstance(reply, dict) else reply
        if not isinstance(rows, list) or len(rows) != len(pieces) or not all(isinstance(r, dict) for r in rows):
            found = f"{len(rows)} rows" if isinstance(rows, list) else type(rows).__name__
            raise ValueError(f"expected a row for each of {len(pieces)} answers, found {found}")
        return [
            score_of(self.name, p.answer_id, value_of(row, "embedding"), self.label)
            for p, row in zip(pieces, rows, strict=True)
        ]


def find_sglang(options: Options, questions: Questions) -> Sglang | None:
    """Return the dialect if this is an SGLang server.

    Raises:
        ModelError: it is, but serves no reward model, or there is no tokenizer for its texts.
    """
    about = next((found for path in ABOUT if _is_about(found := questions.get(path))), None)
    if about is None:
        return None
    if about.get("is_generation"):
        raise ModelError(
            f"model '{questions.name}': the SGLang server serves a language model, not a reward model. "
            f"Start it for rewards. {START}.\nTested with {TESTED}."
        )
    if options.tokenizer is None:
        raise ModelError(
            f"model '{questions.name}': SGLang's {CLASSIFY} takes bare texts, so the chat template has to be applied "
            "here. Name the model's tokenizer: ?tokenizer=<folder or hub id>"
        )
    server = next((found for path in SERVER if isinstance(found := questions.get(path), dict)), {})
    version, window = server.get("version"), server.get("context_length")
    facts = Facts(
        server="sglang",
        version=version if isinstance(version, str) else None,
        endpoint=CLASSIFY,
        model=options.model or about["model_path"],
        weights={k: str(about[k]) for k in ("model_path", "weight_version") if about.get(k) is not None},
        window=window if isinstance(window, int) and window > 0 else None,
        activation="none (the head's output, as SGLang gives it)",
    )
    return Sglang(facts, options.label, questions.name)


def _is_about(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("model_path"), str)
