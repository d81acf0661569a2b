"""What is measured on: a Qwen2 classifier of 12 layers and width 512, and texts of an exact number of tokens."""

import random
import shutil
from pathlib import Path
from typing import Any

from palate.records import Answer, Group, Message, Query

WORK = Path(__file__).resolve().parent.parent / ".work"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHAT = "{% for m in messages %}{{ m.content }}{% endfor %}"
ANSWER = (100, 150)


def letters(rng: random.Random, tokens: int) -> str:
    """Return a text of so many tokens: the tokenizer knows letters only."""
    return "".join(rng.choices(LETTERS, k=tokens))


def classifier() -> Path:
    """Return the model's folder, made once: random weights, one token a letter."""
    folder = WORK / "qwen2-12x512"
    if folder.exists():
        return folder
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForSequenceClassification

    alphabet = ["<pad>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    inner = Tokenizer(models.BPE({letter: k for k, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<pad>")
    tokenizer.chat_template = CHAT
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=4000,
        hidden_size=512,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        num_labels=1,
        pad_token_id=0,
    )
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    Qwen2ForSequenceClassification(config).save_pretrained(part)
    tokenizer.save_pretrained(part)
    part.rename(folder)
    return folder


def group(prompt: int, answers: int, seed: int = 0) -> Group:
    """Return one query of `prompt` tokens with `answers` answers of 100 to 150 tokens, 125 on average."""
    rng = random.Random(f"{prompt} {answers} {seed}")
    turns = (Message("user", letters(rng, prompt)),)
    low, high = ANSWER
    sizes = [low + round((high - low) * (k + 0.5) / answers) for k in range(answers)]
    rng.shuffle(sizes)
    name = f"g{seed}"
    made = tuple(Answer(f"{name}/{k}", name, letters(rng, size), "sample") for k, size in enumerate(sizes))
    return Group(Query(name, "history", turns, turns, None), made)


def field_loop(model: Any, tokenizer: Any, groups: list[Group], batch: int = 8) -> dict[str, float]:
    """Score as scripts of the field do: whole texts, eight at a time in their order, padded to the longest."""
    import torch

    names, texts = [], []
    for one in groups:
        for answer in one.answers:
            chat = [{"role": m.role, "content": m.content} for m in one.query.messages]
            chat.append({"role": "assistant", "content": answer.text})
            names.append(answer.id)
            texts.append(tokenizer.apply_chat_template(chat, tokenize=False))
    found: list[float] = []
    model.config.pad_token_id = tokenizer.pad_token_id
    for start in range(0, len(texts), batch):
        inputs = tokenizer(texts[start : start + batch], padding=True, return_tensors="pt")
        with torch.inference_mode():
            found += model(**inputs.to(model.device)).logits[:, 0].tolist()
    return dict(zip(names, found, strict=True))
