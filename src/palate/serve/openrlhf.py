"""OpenRLHF's remote reward model: `query` is prompt and response as one text, `prompts` the prompt by itself.

`POST /get_reward {"query": […], "prompts": […], "labels": …}` → `{"rewards": […], "scores": […], "extra_logs": {}}`, as
in its `openrlhf/cli/serve_rm.py`. The form has no place for a failure, so one failed answer fails the whole reply.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from palate.records import Message
from palate.rewards.wire import MOST_ITEMS, Filled, ScoreResult, WireError
from palate.serve.ends import strip_starts, turns_of

Texts = Annotated[list[Filled], Field(min_length=1, max_length=MOST_ITEMS)]
FIRST = 3


class RewardRequest(BaseModel):
    """What OpenRLHF and its kin send; labels and further fields are not read."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    query: Texts
    prompts: Texts

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if len(self.query) != len(self.prompts):
            raise ValueError(f"'query' has {len(self.query)} texts, 'prompts' {len(self.prompts)}")
        return self


def split(request: RewardRequest) -> list[tuple[Sequence[Message], str]]:
    """Return the chat turns and the response of each text.

    Raises:
        WireError: a query that does not go on from its prompt, or a prompt in an unknown template; with the fields.
    """
    found, faults = [], {}
    for k, (query, prompt) in enumerate(zip(request.query, request.prompts, strict=True)):
        bare, whole = strip_starts(prompt), strip_starts(query)
        turns = turns_of(prompt)
        if not whole.startswith(bare):
            faults[f"query.{k}"] = f"does not begin with prompts.{k}"
        elif turns is None:
            faults[f"prompts.{k}"] = "no text, or a chat template that is not known (ChatML, Llama 3 and Gemma are)"
        else:
            found.append((turns, whole[len(bare) :]))
    if faults:
        raise WireError("; ".join(f"{name}: {fault}" for name, fault in list(faults.items())[:FIRST]), faults)
    return found


def rewards(results: Sequence[ScoreResult]) -> dict[str, Any] | str:
    """Return the reply, or why there is none."""
    failed = [r for r in results if r.status != "ok"]
    if failed:
        told = "; ".join(f"{r.id}: {r.status}: {r.error}" for r in failed[:FIRST])
        return f"{len(failed)} of {len(results)} answers have no reward, and this form cannot say so of one: {told}"
    values = [r.score for r in results]
    return {"rewards": values, "scores": values, "extra_logs": {}}
