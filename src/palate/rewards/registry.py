"""The families of reward models by name: the one registry of the project."""

from collections.abc import Callable

from palate.errors import SpecError, did_you_mean
from palate.rewards.base import PairSource, Scorer
from palate.spec import Spec

Factory = Callable[[Spec, PairSource | None], Scorer]
_FAMILIES: dict[str, Factory] = {}


def register(family: str, factory: Factory) -> None:
    """Add a family; `factory` gets the parsed string and the data that probes may learn from.

    Raises:
        ValueError: the name is taken.
    """
    if family in _FAMILIES:
        raise ValueError(f"the family '{family}' is already registered")
    _FAMILIES[family] = factory


def families() -> list[str]:
    """Return the names of the registered families."""
    return sorted(_FAMILIES)


def open_model(text: str, data: PairSource | None = None) -> Scorer:
    """Return the reward model that a string names, such as `builtin/length` or `hf/org/model@rev?dtype=bfloat16`.

    Raises:
        SpecError: an unknown family, name or option.
        ModelError: a model that cannot be trusted.
        MissingExtra: a family whose extra is not installed.
    """
    spec = Spec.parse(text, "model")
    family, slash, name = spec.head.partition("/")
    if family not in _FAMILIES:
        raise SpecError(f"model '{text}': unknown family '{family}'.{did_you_mean(family, _FAMILIES)}")
    if not slash or not name:
        raise SpecError(f"model '{text}': a name is needed after '{family}/'.")
    return _FAMILIES[family](spec, data)


def _builtin(spec: Spec, data: PairSource | None) -> Scorer:
    from palate.rewards.baselines import make_baseline

    return make_baseline(spec, data)


def _hf(spec: Spec, data: PairSource | None) -> Scorer:
    from palate.rewards.classifier import Classifier

    return Classifier(spec)


register("builtin", _builtin)
register("hf", _hf)
