"""From chat turns and an answer to token ids: the model's template once, special tokens once, nothing cut."""

from collections.abc import Sequence
from typing import Any

from palate.errors import ModelError
from palate.records import Message

STAND_IN = "x"


class Encoder:
    """Turns (messages, answer) into ids in one of three named forms.

    - `chat`: the tokenizer's own chat template.
    - `plain`: `User: …` and `Assistant: …` paragraphs, tokenized as the tokenizer does any text.
    - `pair`: the conversation and the answer as the two texts of a sentence pair.

    Raises:
        ModelError: `chat` without a chat template.
    """

    def __init__(self, tokenizer: Any, template: str, name: str) -> None:
        self._tokenizer = tokenizer
        self.template = template
        if template == "chat" and not getattr(tokenizer, "chat_template", None):
            raise ModelError(
                f"model '{name}': its tokenizer has no chat template, so the form it was trained on is not known.\n"
                "Choose one, and it will be recorded: ?template=plain (User: … Assistant: …) or ?template=pair."
            )
        self._prefix, self._suffix = _special(tokenizer)

    def ids(self, messages: Sequence[Message], answer: str) -> list[int]:
        """Return the ids of the conversation with `answer` as the assistant's last turn."""
        if self.template == "pair":
            return self._pair(messages, answer)
        turns = [*messages, Message("assistant", answer)]
        if self.template == "plain":
            text = "\n\n".join(f"{t.role.capitalize()}: {t.content}" for t in turns)
            return list(self._tokenizer(text)["input_ids"])
        return self._chat(turns)

    def count(self, messages: Sequence[Message]) -> int:
        """Return how many tokens `messages` and the frame around an answer take."""
        return len(self.ids(messages, STAND_IN))

    def answer_tokens(self, answer: str) -> int:
        """Return how many tokens an answer takes by itself."""
        return len(self._tokenizer(answer, add_special_tokens=False)["input_ids"])

    def _pair(self, messages: Sequence[Message], answer: str) -> list[int]:
        text = messages[0].content
        if len(messages) > 1:
            text = "\n\n".join(f"{m.role.capitalize()}: {m.content}" for m in messages)
        return list(self._tokenizer(text, answer)["input_ids"])

    def _chat(self, turns: Sequence[Message]) -> list[int]:
        chat = [{"role": t.role, "content": t.content} for t in turns]
        text = self._tokenizer.apply_chat_template(chat, tokenize=False)
        ids = list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        prefix, suffix = self._prefix, self._suffix
        while prefix and ids[: 2 * len(prefix)] == prefix * 2:
            ids = ids[len(prefix) :]
        if prefix and ids[: len(prefix)] != prefix:
            ids = prefix + ids
        if suffix and ids[-len(suffix) :] != suffix:
            ids = ids + suffix
        return ids


def _special(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the ids that the tokenizer puts before and after any text."""
    bare = list(tokenizer(STAND_IN, add_special_tokens=False)["input_ids"])
    whole = list(tokenizer(STAND_IN)["input_ids"])
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[:start], whole[start + len(bare) :]
    return [], []
