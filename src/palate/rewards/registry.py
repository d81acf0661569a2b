"""The families of reward models by name: the one registry of the project."""

from collections.abc import Callable
from dataclasses import dataclass, field

from palate.data import Dataset
from palate.errors import SpecError, did_you_mean
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.rewards.base import RewardModel
from palate.spec import Spec


@dataclass(frozen=True, slots=True)
class Setting:
    """What a reward model may need besides its string.

    `data` is what probes learn from; `base_url`, `spending` and `told` are for models behind servers.
    """

    data: Dataset | None = None
    base_url: str | None = None
    spending: Spending = field(default_factory=Spending)
    told: Told | None = None


Factory = Callable[[Spec, Setting], RewardModel]
_FAMILIES: dict[str, Factory] = {}


def register(family: str, factory: Factory) -> None:
    """Add a family. `factory` gets the parsed string `family/name?…` and a `Setting`, and returns a reward model.

    Raises:
        ValueError: the name is taken.
    """
    if family in _FAMILIES:
        raise ValueError(f"the family '{family}' is already registered")
    _FAMILIES[family] = factory


def families() -> list[str]:
    """Return the names of the registered families."""
    return sorted(_FAMILIES)


def open_model(text: str, data: Dataset | None = None, *, setting: Setting | None = None) -> RewardModel:
    """Return the reward model that a string names, such as `builtin/length` or `hf/org/model@rev?dtype=bfloat16`.

    Args:
        text: the string.
        data: what probes learn from, if no `setting` is given.
        setting: all that it may need.

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
    return _FAMILIES[family](spec, setting or Setting(data))


def _builtin(spec: Spec, setting: Setting) -> RewardModel:
    from palate.rewards.baselines import make_baseline

    return make_baseline(spec, setting.data)


def _hf(spec: Spec, setting: Setting) -> RewardModel:
    from palate.rewards.classifier import Classifier

    return Classifier(spec)


def _likelihood(spec: Spec, setting: Setting) -> RewardModel:
    from palate.rewards.causal import Likelihood

    return Likelihood(spec)


def _dpo(spec: Spec, setting: Setting) -> RewardModel:
    from palate.rewards.causal import Dpo

    return Dpo(spec)


def _http(spec: Spec, setting: Setting) -> RewardModel:
    from palate.rewards.http import HttpScorer

    return HttpScorer(spec, setting.spending, setting.told)


def _judge(spec: Spec, setting: Setting) -> RewardModel:
    from palate.rewards.judge.compare import PairJudge

    return PairJudge(spec, setting.base_url, setting.spending, setting.told)


def _rate(spec: Spec, setting: Setting) -> RewardModel:
    from palate.rewards.judge.rate import Rater

    return Rater(spec, setting.base_url, setting.spending, setting.told)


register("builtin", _builtin)
register("hf", _hf)
register("likelihood", _likelihood)
register("dpo", _dpo)
register("http", _http)
register("judge", _judge)
register("rate", _rate)
