"""`dpo/<policy>?ref=<reference>`: the reward that a DPO-trained policy carries in itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from palate.errors import ModelError, SpecError
from palate.rewards.causal.likelihood import difference
from palate.rewards.causal.model import CausalModel, CausalScorer
from palate.rewards.local import Options
from palate.rewards.local.scorer import Asked, Numbers
from palate.spec import Spec
from palate.weights import find_weights


class Dpo(CausalScorer):
    """`dpo/<policy>?ref=<reference>[&length=sum|mean]`: log π(answer | view) − log π_ref(answer | view), in nats.

    This is the implicit reward of Rafailov et al. 2023 (arXiv 2305.18290, eq. 5) for β = 1; another β would change no
    comparison. `ref` is a folder or hub id, `@revision` allowed; both models must read the same tokens.
    """

    family = "dpo"

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec, ("ref",))
        self._reference = CausalModel(_reference(spec, self._options), self._length == "mean")

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the numbers, options as they were given; the reference by name and weights, without its path."""
        ref = self._reference.options.weights
        return {
            **super().identity,
            "options": {**self._given, "ref": ref.id},
            "reference": {
                "id": ref.id,
                "revision": ref.revision,
                "weights": ref.digest,
                "settings": ref.settings,
                "parameters": ref.parameters,
            },
        }

    def prepare(self) -> None:
        """Load both models.

        Raises:
            ModelError: they do not read the same tokens.
        """
        super().prepare()
        ours, theirs = self.tokenizer, self._reference.tokenizer
        if ours.get_vocab() != theirs.get_vocab():
            raise ModelError(
                f"model '{self.name}': policy and reference '{self._reference.options.weights.id}' have different "
                "vocabularies, so their likelihoods are of different tokens."
            )
        _ = self._reference.engine

    def _numbers(self, asked: Sequence[Asked]) -> Numbers:
        texts = [one.texts for one in asked]
        policy = list(self.engine.values(texts))
        reference = {(k, place): value for k, place, value in self._reference.engine.values(texts)}
        for k, place, value in policy:
            yield k, place, difference(value, reference[k, place])


def _reference(spec: Spec, options: Options) -> Options:
    text = spec.options.get("ref")
    if text is None:
        raise SpecError(
            f"model '{spec}': a DPO policy's reward is measured against the model that it was trained from; "
            "name it: ?ref=<folder or hub id>"
        )
    ref = Spec.parse(text, "ref")
    return replace(options, weights=find_weights(ref.head, ref.revision, pickles=options.pickle))
