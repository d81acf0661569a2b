"""Loading a classifier that can be trusted: no random head, one number an answer."""

from dataclasses import dataclass
from typing import Any

from palate.errors import ModelError
from palate.rewards.local.load import load_weights, missing_tensors
from palate.rewards.local.options import Options
from palate.spec import Spec


@dataclass(frozen=True, slots=True)
class Head:
    """Which output is the reward, and whether an untrained one is allowed."""

    label: str | None
    untrained: bool

    @classmethod
    def from_spec(cls, spec: Spec) -> "Head":
        """Read `?label=` and `?head=`."""
        allowed = spec.choice("head", ("trained", "untrained"), "trained", "model") == "untrained"
        return cls(spec.options.get("label"), allowed)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to score: `label` is the output that counts, `notes` is what a reader has to know."""

    model: Any
    label: int
    notes: tuple[str, ...]


def load(options: Options, head: Head) -> Loaded:
    """Load the model.

    Raises:
        ModelError: no weights that may be loaded, a missing head, several outputs without a choice, remote code.
    """
    name = options.weights.id
    model, info = load_weights(options, "AutoModelForSequenceClassification", "sequence classifier")
    untrained = _untrained(name, head, info)
    label = 0 if untrained and head.label is None else _label(name, head.label, model.config)
    return Loaded(model, label, untrained)


def _untrained(name: str, head: Head, info: dict[str, Any]) -> tuple[str, ...]:
    missing = missing_tensors(info)
    if not missing:
        return ()
    if not head.untrained:
        raise ModelError(
            f"model '{name}': the checkpoint has no {missing}, so its scores would be random numbers.\n"
            "It is probably not a sequence classifier (a causal LM, or saved under another class). "
            "?head=untrained scores with it all the same, and the run says so."
        )
    return (f"UNTRAINED: {missing} not in the checkpoint, made at random",)


def _label(name: str, wanted: str | None, config: Any) -> int:
    labels = [str(config.id2label.get(k, k)) for k in range(config.num_labels)]
    if wanted is None:
        if len(labels) == 1:
            return 0
        raise ModelError(
            f"model '{name}': it has {len(labels)} outputs ({', '.join(labels)}); which is the reward is a choice.\n"
            "Choose by name or number: ?label=" + labels[-1]
        )
    if wanted in labels:
        return labels.index(wanted)
    if wanted.isdecimal() and int(wanted) < len(labels):
        return int(wanted)
    raise ModelError(f"model '{name}': no output '{wanted}'. Outputs: {', '.join(labels)}.")
