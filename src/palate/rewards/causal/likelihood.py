"""`likelihood/<causal LM>`: how much more likely what is shown of a user makes an answer."""

from collections.abc import Sequence

from palate.rewards.causal.model import CausalScorer
from palate.rewards.local.scorer import Asked, Numbers
from palate.rewards.prefix import Why


class Likelihood(CausalScorer):
    """`likelihood/<hub id or folder>[?length=sum|mean]`: log P(answer | view) − log P(answer | question).

    The difference is the pointwise mutual information of answer and context, in nats: what is likely anyway cancels
    out, and with it most of the preference for short answers. `sum` (the default) adds up over the answer's tokens,
    `mean` divides both terms by their number. Under `question` both terms are one, so there is nothing to score.
    """

    family = "likelihood"
    needs_context = True

    def _numbers(self, asked: Sequence[Asked]) -> Numbers:
        texts = [one.texts for one in asked]
        bare = [[self._model.text(one.query.turns, a.text) for a in one.answers] for one in asked]
        both = {(k, place): value for k, place, value in self.engine.values([*texts, *bare])}
        for k, some in enumerate(texts):
            for place in range(len(some)):
                yield k, place, difference(both[k, place], both[k + len(texts), place])


def difference(shown: float | Why, bare: float | Why) -> float | Why:
    """Return the difference of two numbers, or why one of them is missing."""
    if isinstance(shown, Why):
        return shown
    return bare if isinstance(bare, Why) else shown - bare
