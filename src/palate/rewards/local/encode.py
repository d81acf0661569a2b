"""From chat turns and an answer to token ids: the model's template once, special tokens once, nothing cut."""

from collections.abc import Sequence
from typing import Any

from palate.errors import ItemError, ModelError
from palate.records import Message
from palate.rewards.prefix import Text

STAND_IN = "x"


class Encoder:
    """Turns (messages, answer) into tokens in one of three named forms.

    - `chat`: the tokenizer's own chat template.
    - `plain`: `User: …` and `Assistant: …` paragraphs, tokenized as the tokenizer does any text.
    - `pair`: the conversation and the answer as the two texts of a sentence pair.

    Raises:
        ModelError: `chat` without a chat template.
        ItemError: (when encoding) a conversation that the template refuses.
    """

    def __init__(self, tokenizer: Any, template: str, name: str) -> None:
        self._tokenizer = tokenizer
        self._name = name
        self.template = template
        if template == "chat" and not getattr(tokenizer, "chat_template", None):
            raise ModelError(
                f"model '{name}': its tokenizer has no chat template, so the form it was trained on is not known.\n"
                "Choose one, and it will be recorded: ?template=plain (User: … Assistant: …) or ?template=pair."
            )
        self._prefix, self._suffix = _special(tokenizer)

    def tokens(self, messages: Sequence[Message], answer: str) -> Text:
        """Return the tokens of the conversation with `answer` as the assistant's last turn."""
        if self.template == "pair":
            return self._pair(messages, answer)
        turns = [*messages, Message("assistant", answer)]
        if self.template == "plain":
            return _text(self._tokenizer(_plain(turns), verbose=False))
        return Text(tuple(self._chat(turns)))

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of the conversation up to where the assistant's answer begins."""
        if self.template == "plain":
            asked = f"{_plain(messages)}\n\nAssistant:"
            return tuple(self._tokenizer(asked, verbose=False)["input_ids"])
        return tuple(self._chat(messages, opened=True))

    def count(self, messages: Sequence[Message]) -> int:
        """Return how many tokens `messages` and the frame around an answer take."""
        return len(self.tokens(messages, STAND_IN).ids)

    def answer_tokens(self, answer: str) -> int:
        """Return how many tokens an answer takes by itself."""
        return len(self._tokenizer(answer, add_special_tokens=False, verbose=False)["input_ids"])

    def _pair(self, messages: Sequence[Message], answer: str) -> Text:
        text = messages[0].content
        if len(messages) > 1:
            text = _plain(messages)
        return _text(self._tokenizer(text, answer, verbose=False))

    def _chat(self, turns: Sequence[Message], opened: bool = False) -> list[int]:
        from jinja2 import TemplateError

        chat = [{"role": t.role, "content": t.content} for t in turns]
        try:
            text = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=opened)
        except TemplateError as bad:
            roles = ", ".join(t.role for t in turns)
            raise ItemError(
                f"model '{self._name}': its chat template refuses a conversation of {roles}: {bad}\n"
                "Choose another form, and it will be recorded: ?template=plain or ?template=pair."
            ) from None
        ids = list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
        prefix, suffix = self._prefix, self._suffix
        while prefix and ids[: 2 * len(prefix)] == prefix * 2:
            ids = ids[len(prefix) :]
        if prefix and ids[: len(prefix)] != prefix:
            ids = prefix + ids
        if suffix and not opened and ids[-len(suffix) :] != suffix:
            ids = ids + suffix
        return ids


def _plain(turns: Sequence[Message]) -> str:
    return "\n\n".join(f"{t.role.capitalize()}: {t.content}" for t in turns)


def _text(encoded: Any) -> Text:
    segments = encoded.get("token_type_ids")
    return Text(tuple(encoded["input_ids"]), tuple(segments) if segments and any(segments) else None)


def _special(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the ids that the tokenizer puts before and after any text."""
    bare = list(tokenizer(STAND_IN, add_special_tokens=False)["input_ids"])
    whole = list(tokenizer(STAND_IN)["input_ids"])
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[:start], whole[start + len(bare) :]
    return [], []
