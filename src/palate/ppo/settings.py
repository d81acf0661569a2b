"""What a training is told: one frozen record, the same from the command line, a recipe and Python."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from palate.errors import SpecError

Method = Literal["ppo", "rloo", "grpo"]
OnFailure = Literal["stop", "mask"]
METHODS: tuple[str, ...] = get_args(Method)
GROUP = 4
PPO_EPOCHS = 4

Whole = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Training:
    """How a policy is trained.

    Attributes:
        method: `ppo`, `rloo` or `grpo`.
        policy: `<folder or hub id>[@revision][?template=…&dtype=…&window=…]`.
        reward: a model string; it has to give numbers.
        data: a data string; its questions are the prompts.
        view: what policy and reward model see of the user; never the rubric.
        retriever: ranks the posts of the view.
        limit: only the first items.
        steps: updates; else as many as `epochs` over the questions take.
        epochs: passes over the questions.
        batch: answers a step.
        group: answers to one question among them (4; with PPO 1).
        minibatch: answers a gradient is taken of at once: PPO updates after each, RLOO and GRPO once a step.
        ppo_epochs: PPO's passes over the answers of a step (4).
        response: the longest answer in the policy's tokens.
        temperature: of sampling.
        lr: learning rate of AdamW, constant.
        kl: weight of the divergence from the untrained policy.
        lora: rank of LoRA; 0 trains all weights.
        seed: of everything.
        on_failure: `stop` at the first failed reward, or `mask` (RLOO, GRPO): the answer has no advantage.
        max_failure_rate: with `mask`, the share of failures over the last ten steps that stops the run.
        save_every: steps between checkpoints.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    method: Method
    policy: str
    reward: str
    data: str
    view: str = "history"
    retriever: str = "bm25"
    limit: Whole | None = None
    steps: Whole | None = None
    epochs: Positive = 1.0
    batch: Whole = 32
    group: Whole | None = None
    minibatch: Whole | None = None
    ppo_epochs: Whole | None = None
    response: Whole = 256
    temperature: Positive = 1.0
    lr: Positive = 1e-6
    kl: NotNegative = 0.05
    lora: Annotated[int, Field(ge=0)] = 0
    seed: Annotated[int, Field(ge=0)] = 0
    on_failure: OnFailure = "stop"
    max_failure_rate: Share = 0.1
    save_every: Whole = 10

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Training":
        """Return checked settings; what is None counts as not given.

        Raises:
            SpecError: an unknown setting, a value that is not possible, or two that do not go together.
        """
        found = checked(_ADAPTER, given, "ppo train")
        found.check()
        return found

    def check(self) -> None:
        """Make sure that the settings go together.

        Raises:
            SpecError: they do not.
        """
        if self.batch % self.answers:
            raise SpecError(f"ppo train: a batch of {self.batch} answers is no multiple of {self.answers} a question.")
        if self.batch % self.at_once:
            raise SpecError(f"ppo train: a batch of {self.batch} is no multiple of minibatch = {self.at_once}.")
        if self.method == "ppo" and self.on_failure == "mask":
            raise SpecError(
                "ppo train: on_failure = mask needs rloo or grpo: PPO pays every answer and cannot leave one out, "
                "so a failed reward can only stop it."
            )
        if self.method != "ppo" and self.ppo_epochs is not None:
            raise SpecError(f"ppo train: ppo_epochs is a setting of ppo, not of {self.method}.")
        if self.method != "ppo" and self.answers < 2:
            raise SpecError(f"ppo train: {self.method} compares answers to one question, so group must be 2 or more.")

    @property
    def answers(self) -> int:
        """Answers to one question in a step."""
        return self.group or (1 if self.method == "ppo" else GROUP)

    @property
    def at_once(self) -> int:
        """Answers a gradient is taken of at once."""
        return self.minibatch or min(self.batch, 8)

    @property
    def questions(self) -> int:
        """Questions in a step."""
        return self.batch // self.answers

    def as_dict(self) -> dict[str, Any]:
        """Return the settings with what their defaults come to."""
        resolved = {"group": self.answers, "minibatch": self.at_once}
        if self.method == "ppo":
            resolved["ppo_epochs"] = self.ppo_epochs or PPO_EPOCHS
        return asdict(self) | resolved


def checked(adapter: TypeAdapter[T], given: Mapping[str, Any], what: str) -> T:
    """Return a record made of settings; what is None counts as not given.

    Raises:
        SpecError: an unknown setting, one that is missing, or a value that is not possible.
    """
    try:
        return adapter.validate_python({k: v for k, v in given.items() if v is not None})
    except ValidationError as bad:
        first = bad.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            raise SpecError(f"{what}: '{name}' is needed.") from None
        raise SpecError(f"{what}: {name} = {first['input']!r}: {first['msg'].lower()}.") from None


_ADAPTER: TypeAdapter[Training] = TypeAdapter(Training)
