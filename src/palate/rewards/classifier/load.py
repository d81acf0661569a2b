"""Loading a classifier that can be trusted: no random head, no remote code, no pickles, one number an answer."""

from dataclasses import dataclass
from typing import Any

from palate.errors import MissingExtra, ModelError
from palate.rewards.classifier.options import Options
from palate.weights import PICKLES_OFF, loading


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to score: `label` is the output that counts, `notes` is what a reader has to know."""

    model: Any
    tokenizer: Any
    label: int
    dtype: str
    device: str
    kernel: str | None
    notes: tuple[str, ...]


def load(options: Options) -> Loaded:
    """Load model and tokenizer.

    Raises:
        ModelError: no weights that may be loaded, a missing head, several outputs without a choice, remote code.
        MissingExtra: without the extra `hf`.
    """
    try:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
    except ImportError:
        raise MissingExtra("models of the family 'hf'", "hf") from None
    name, folder = options.weights.id, options.weights.folder
    device = _device(name, options)
    dtype = options.dtype if options.dtype != "auto" else "float32" if device == "cpu" else "auto"
    with loading(lambda text: _reason(name, options, text)), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # an untrained head is the same each time
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=options.remote_code)
        model, info = AutoModelForSequenceClassification.from_pretrained(
            folder,
            dtype=dtype,
            trust_remote_code=options.remote_code,
            use_safetensors=None if options.pickle else True,
            output_loading_info=True,
            **({"attn_implementation": options.attn} if options.attn else {}),
        )
        model = model.eval().to(device)
    untrained = _untrained(name, options, info)
    label = 0 if untrained and options.label is None else _label(name, options, model.config)
    return Loaded(
        model,
        tokenizer,
        label,
        str(model.dtype).removeprefix("torch."),
        device,
        getattr(model.config, "_attn_implementation", None),
        (*untrained, *_pad(tokenizer)),
    )


def _device(name: str, options: Options) -> str:
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as bad:
        first = str(bad).partition("\n")[0]
        raise ModelError(f"model '{name}': device '{device}' cannot be used here: {first}") from None
    return device


def _pad(tokenizer: Any) -> tuple[str, ...]:
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id != tokenizer.eos_token_id:
        return ()
    return ("the pad token is the end token; a batch that holds it is padded with an id that it does not hold",)


def _untrained(name: str, options: Options, info: dict[str, Any]) -> tuple[str, ...]:
    missing = sorted(info["missing_keys"])
    if not missing:
        return ()
    listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    if not options.untrained_head:
        raise ModelError(
            f"model '{name}': the checkpoint has no {listed}, so its scores would be random numbers.\n"
            "It is probably not a sequence classifier (a causal LM, or saved under another class). "
            "?head=untrained scores with it all the same, and the run says so."
        )
    return (f"UNTRAINED: {listed} not in the checkpoint, made at random",)


def _label(name: str, options: Options, config: Any) -> int:
    labels = [str(config.id2label.get(k, k)) for k in range(config.num_labels)]
    if options.label is None:
        if len(labels) == 1:
            return 0
        raise ModelError(
            f"model '{name}': it has {len(labels)} outputs ({', '.join(labels)}); which is the reward is a choice.\n"
            "Choose by name or number: ?label=" + labels[-1]
        )
    if options.label in labels:
        return labels.index(options.label)
    if options.label.isdecimal() and int(options.label) < len(labels):
        return int(options.label)
    raise ModelError(f"model '{name}': no output '{options.label}'. Outputs: {', '.join(labels)}.")


def _reason(name: str, options: Options, text: str) -> str:
    if "trust_remote_code" in text or "custom code" in text:
        return (
            f"model '{name}': loading it would run code from its repository, which is off.\n"
            "If you trust that code: ?remote_code=allow (the run records it)."
        )
    folder = options.weights.folder
    if not options.pickle and not any(folder.glob("*.safetensors")):
        return f"model '{name}': {PICKLES_OFF}"
    return f"model '{name}': cannot be loaded as a sequence classifier: {text}"
