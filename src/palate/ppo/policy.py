"""The policy: a causal language model that is read and asked in one form only, in training and after it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from palate.errors import ModelError
from palate.records import Message
from palate.rewards.causal.model import TEMPLATES
from palate.rewards.local.encode import Encoder
from palate.rewards.local.load import load_tokenizer, load_weights, missing_tensors
from palate.rewards.local.options import Options
from palate.spec import Spec
from palate.views import Budget


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy whose tokenizer is loaded and whose weights are not yet. `options.room` is the longest answer."""

    options: Options
    tokenizer: Any
    encoder: Encoder

    @property
    def name(self) -> str:
        """The policy's name for people."""
        return self.options.weights.id

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its answers."""
        o = self.options
        return {
            "id": o.weights.id,
            "revision": o.weights.revision,
            "weights": o.weights.digest,
            "settings": o.weights.settings,
            "parameters": o.weights.parameters,
            "template": o.template,
            "window": o.window,
            "room": o.room,
        }

    @property
    def budget(self) -> Budget:
        """Tokens for a prompt and for an answer."""
        o = self.options
        return Budget(o.window - o.room, o.room, self.encoder.count)

    @property
    def end(self) -> int:
        """The token that ends an answer."""
        return int(self.tokenizer.eos_token_id)

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of a conversation up to where the answer begins."""
        return self.encoder.prompt(messages)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of an answer's tokens, special ones left out."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def load(self) -> Any:
        """Return the model in eval mode on its device.

        Raises:
            ModelError: it cannot be loaded, or not all of it.
        """
        model, info = load_weights(self.options, "AutoModelForCausalLM", "causal language model")
        if missing := missing_tensors(info):
            raise ModelError(f"policy '{self.name}': the checkpoint has no {missing}. It is no causal language model.")
        return model


def open_policy(text: str, response: int) -> Policy:
    """Return the policy that `<folder or hub id>[@revision][?options]` names.

    Args:
        text: the string; options are those of local models.
        response: the longest answer in tokens.

    Raises:
        SpecError: an option that is not known.
        ModelError: no such model, no room for a prompt, no end token.
    """
    spec = Spec.parse(text, "policy")
    if "room" in spec.options:
        raise ModelError(f"policy '{text}': the room for an answer is the setting 'response'.")
    named = Spec(f"policy/{spec.head}", spec.revision, {**spec.options, "room": str(response)})
    options = Options.from_spec(named, (), TEMPLATES)
    tokenizer = load_tokenizer(options)
    if tokenizer.eos_token_id is None:
        raise ModelError(f"policy '{text}': its tokenizer has no end token, so its answers would never end.")
    return Policy(options, tokenizer, Encoder(tokenizer, options.template, options.weights.id))


def unused_pad(policy: Policy, prompts: Iterable[Sequence[int]]) -> int:
    """Return a token to pad with that neither ends an answer nor stands in any prompt.

    TRL's PPO tells padding by the token alone. Many chat models pad with the very token that ends each turn; taken
    as padding, it would vanish from the prompts.

    Raises:
        ModelError: there is none.
    """
    tokenizer = policy.tokenizer
    used = {policy.end}.union(*prompts)
    candidates = [tokenizer.pad_token_id, *tokenizer.all_special_ids]
    found = next((c for c in candidates if c is not None and c not in used), None)
    if found is None:
        raise ModelError(
            f"policy '{policy.name}': PPO needs a token for padding that is neither the end token nor in a prompt, and "
            "its tokenizer has no such special token. Use rloo or grpo."
        )
    return int(found)
