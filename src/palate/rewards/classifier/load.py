"""Loading a classifier that can be trusted: no random head, no remote code, no pickles, one number an answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from palate.errors import MissingExtra, ModelError
from palate.rewards.classifier.options import Options


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
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = options.dtype if options.dtype != "auto" else "float32" if device == "cpu" else "auto"
    with _quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=options.remote_code)
            model, info = AutoModelForSequenceClassification.from_pretrained(
                folder,
                dtype=dtype,
                trust_remote_code=options.remote_code,
                use_safetensors=None if options.pickle else True,
                output_loading_info=True,
                **({"attn_implementation": options.attn} if options.attn else {}),
            )
        except (OSError, ValueError, ImportError, RuntimeError) as bad:
            raise ModelError(_reason(name, options, bad)) from bad
    notes = _head(name, options, info)
    label = _label(name, options, model.config)
    model = model.eval().to(device)
    return Loaded(
        model,
        tokenizer,
        label,
        str(model.dtype).removeprefix("torch."),
        device,
        getattr(model.config, "_attn_implementation", None),
        notes,
    )


def _head(name: str, options: Options, info: dict[str, Any]) -> tuple[str, ...]:
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
    if options.label.isdigit() and int(options.label) < len(labels):
        return int(options.label)
    raise ModelError(f"model '{name}': no output '{options.label}'. Outputs: {', '.join(labels)}.")


def _reason(name: str, options: Options, bad: Exception) -> str:
    text = " ".join(str(bad).split())
    if "trust_remote_code" in text or "custom code" in text:
        return (
            f"model '{name}': loading it would run code from its repository, which is off.\n"
            "If you trust that code: ?remote_code=allow (the run records it)."
        )
    folder = options.weights.folder
    if not options.pickle and not any(folder.glob("*.safetensors")):
        return (
            f"model '{name}': it has only pickled weights (.bin), which are off because loading them can run code.\n"
            "?pickle=allow reads them with torch's weights-only loader."
        )
    return f"model '{name}': cannot be loaded as a sequence classifier: {text}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' own warnings back while loading: what matters of them is checked and told by us."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
