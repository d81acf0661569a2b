"""Groups made of a few words, and their numbers from transformers alone, one unpadded text after the other."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from palate.records import Answer, Group, Message, Query


def group(name: str, question: str, *answers: str, shown: str = "") -> Group:
    turns = (Message("user", question),)
    messages = (Message("user", f"{shown}\n{question}"),) if shown else turns
    named = tuple(Answer(f"{name}/{k}", name, text, "sample") for k, text in enumerate(answers))
    return Group(Query(name, "history", turns, messages, None), named)


@cache
def loaded(folder: Path, auto: str) -> tuple[Any, Any]:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer, getattr(transformers, auto).from_pretrained(folder).eval()


def alone(folder: Path, groups: Sequence[Group]) -> dict[str, float]:
    """Score one unpadded text after the other with transformers alone."""
    import torch

    tokenizer, model = loaded(folder, "AutoModelForSequenceClassification")
    found = {}
    for one in groups:
        for answer in one.answers:
            chat = [{"role": m.role, "content": m.content} for m in one.query.messages]
            chat.append({"role": "assistant", "content": answer.text})
            text = tokenizer.apply_chat_template(chat, tokenize=False)
            with torch.inference_mode():
                ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
                found[answer.id] = model(input_ids=ids).logits[0, 0].item()
    return found


def likelihoods(folder: Path, groups: Sequence[Group], turns: str = "messages") -> dict[str, float]:
    """Sum the log-probabilities of what follows the opened turn, token by token, with transformers alone."""
    import torch

    tokenizer, model = loaded(folder, "AutoModelForCausalLM")
    found = {}
    for one in groups:
        chat = [{"role": m.role, "content": m.content} for m in getattr(one.query, turns)]
        turn = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        for answer in one.answers:
            whole = tokenizer.apply_chat_template(
                [*chat, {"role": "assistant", "content": answer.text}], tokenize=False
            )
            ids = tokenizer(whole, add_special_tokens=False)["input_ids"]
            begin = len(tokenizer(turn, add_special_tokens=False)["input_ids"])
            with torch.inference_mode():
                logs = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
            found[answer.id] = sum(logs[k - 1, ids[k]].item() for k in range(begin, len(ids)))
    return found
