"""Loading tokenizers and models that can be trusted: no remote code, no pickles unless allowed, one clear message."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from palate.errors import MissingExtra, ModelError
from palate.rewards.local.options import Options
from palate.weights import PICKLES_OFF, loading


def load_tokenizer(options: Options) -> Any:
    """Return the tokenizer.

    Raises:
        ModelError: it cannot be loaded, or only with code from its repository.
        MissingExtra: without the extra `hf`.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingExtra(f"the local model '{options.weights.id}'", "hf") from None
    with explained(options, "tokenizer"):
        return AutoTokenizer.from_pretrained(options.weights.folder, trust_remote_code=options.remote_code)


def load_weights(options: Options, auto: str, what: str) -> tuple[Any, dict[str, Any]]:
    """Return a model in eval mode on its device, and what transformers tells of the loading.

    Args:
        options: which and how.
        auto: the class of transformers that makes it, such as `AutoModelForCausalLM`.
        what: what it should be, for errors.

    Raises:
        ModelError: the weights cannot be loaded or used here.
    """
    import torch
    import transformers

    device = device_of(options)
    dtype = options.dtype if options.dtype != "auto" else "float32" if device == "cpu" else "auto"
    with explained(options, what), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # an untrained head is the same each time
        model, info = getattr(transformers, auto).from_pretrained(
            options.weights.folder,
            dtype=dtype,
            trust_remote_code=options.remote_code,
            use_safetensors=None if options.pickle else True,
            output_loading_info=True,
            **({"attn_implementation": options.attn} if options.attn else {}),
        )
        model = model.eval().to(device)
    return model, info


def device_of(options: Options) -> str:
    """Return the device to use.

    Raises:
        ModelError: it cannot be used here.
    """
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as bad:
        first = str(bad).partition("\n")[0]
        raise ModelError(f"model '{options.weights.id}': device '{device}' cannot be used here: {first}") from None
    return device


def missing_tensors(info: dict[str, Any]) -> str:
    """Return the first names of what the checkpoint lacks, or an empty string."""
    missing = sorted(info["missing_keys"])
    return ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")


@contextmanager
def explained(options: Options, what: str) -> Iterator[None]:
    """Turn what transformers says of a model that it cannot load into one message."""
    with loading(lambda text: _reason(options, what, text)):
        yield


def _reason(options: Options, what: str, text: str) -> str:
    name, folder = options.weights.id, options.weights.folder
    if "trust_remote_code" in text or "custom code" in text:
        return (
            f"model '{name}': loading it would run code from its repository, which is off.\n"
            "If you trust that code: ?remote_code=allow (the run records it)."
        )
    if not options.pickle and not any(folder.glob("*.safetensors")):
        return f"model '{name}': {PICKLES_OFF}"
    return f"model '{name}': cannot be loaded as a {what}: {text}"
