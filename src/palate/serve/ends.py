"""What other models' templates leave in texts: end tokens behind an answer, and whole conversations as one string."""

import re
from collections.abc import Sequence

from palate.records import Message, Role

ENDS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|EOT|>",
    "<|eot|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|endofassistant|>",
    "<|endofturn|>",
    "<｜end▁of▁sentence｜>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "[EOS]",
    "<pad>",
    "<|pad|>",
    "<|finetune_right_pad_id|>",
)
STARTS = ("<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<｜begin▁of▁sentence｜>", "<|im_start|>")
OTHERS = (
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<start_of_turn>",
    "[INST]",
    "[/INST]",
    "<|assistant|>",
    "<|user|>",
)
_END = "|".join(map(re.escape, ENDS))
_BEHIND = re.compile(rf"(?:(?:{_END})\s*)+\Z")
_ONE = re.compile(_END)
_ANY = re.compile("|".join(map(re.escape, (*ENDS, *STARTS, *OTHERS))))
_BEFORE = re.compile(rf"(?:(?:{'|'.join(map(re.escape, (*ENDS, *STARTS[:-1])))})\s*)*")
ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "model": "assistant"}
FORMS = (
    (re.compile(r"<\|im_start\|>(\w+)\n(.*?)<\|im_end\|>\s*", re.DOTALL), r"<\|im_start\|>assistant\n"),
    (
        re.compile(r"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n(.*?)<\|eot_id\|>\s*", re.DOTALL),
        r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n",
    ),
    (re.compile(r"<start_of_turn>(\w+)\n(.*?)<end_of_turn>\s*", re.DOTALL), r"<start_of_turn>model\n"),
)


def strip_ends(text: str) -> tuple[str, int]:
    """Return `text` without the end tokens at its end, and how many there were; space before them stays."""
    found = _BEHIND.search(text)
    if found is None:
        return text, 0
    return text[: found.start()], len(_ONE.findall(found[0]))


def leftovers(text: str) -> int:
    """Return how many tokens of chat templates are still in a text."""
    return len(_ANY.findall(text))


def strip_starts(text: str) -> str:
    """Return `text` without the tokens that begin or pad one."""
    return text[_BEFORE.match(text).end() :]  # type: ignore[union-attr]


def turns_of(prompt: str) -> Sequence[Message] | None:
    """Return the chat turns of a prompt: a plain text is one turn of the user; ChatML, Llama 3 and Gemma are read.

    None stands for a form that is not known, or a conversation without a user.
    """
    text = strip_starts(prompt)
    if not leftovers(text):
        return (Message("user", text),) if text else None
    for turn, opened in FORMS:
        turns, place = [], 0
        while found := turn.match(text, place):
            turns.append((found[1], found[2]))
            place = found.end()
        if turns and re.fullmatch(opened, text[place:]):
            return _known(turns)
    return None


def _known(turns: Sequence[tuple[str, str]]) -> Sequence[Message] | None:
    if any(name not in ROLES or leftovers(text) for name, text in turns):
        return None
    found = tuple(Message(ROLES[name], text) for name, text in turns)
    return found if any(m.role == "user" for m in found) else None
