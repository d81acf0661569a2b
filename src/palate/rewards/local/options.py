"""The options of local models and the figures that can be known before the weights are loaded."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from palate.errors import ModelError
from palate.spec import Spec
from palate.weights import Weights, find_weights, positions_of

COMMON = ("attn", "batch_tokens", "device", "dtype", "pickle", "remote_code", "room", "share", "template", "window")
DTYPES = ("auto", "float32", "bfloat16", "float16")
TEMPLATES = ("chat", "plain", "pair")
SHARE = ("auto", "off")
ROOM = 1024


@dataclass(frozen=True, slots=True)
class Options:
    """How to load and run one model. `window` and `room` are in tokens; `share` says whether prompts may be shared.

    `batch_tokens` is None where the device decides.
    """

    weights: Weights
    window: int
    room: int
    template: str
    dtype: str
    attn: str | None
    device: str | None
    batch_tokens: int | None
    share: bool
    remote_code: bool
    pickle: bool

    @classmethod
    def from_spec(cls, spec: Spec, further: Iterable[str] = (), templates: Sequence[str] = TEMPLATES) -> "Options":
        """Read `<family>/<hub id or folder>[@revision][?option=…]`.

        Args:
            spec: the parsed string.
            further: options that the family reads by itself.
            templates: the forms that it can take.

        Raises:
            SpecError: an unknown option or value.
            ModelError: no such model, or its window cannot be told.
        """
        what = "model"
        spec.only(sorted((*COMMON, *further)), what)
        allow = {name: spec.choice(name, ("no", "allow"), "no", what) == "allow" for name in ("pickle", "remote_code")}
        weights = find_weights(spec.head.partition("/")[2], spec.revision, pickles=allow["pickle"])
        window = _window(weights, spec.whole("window", None, what, least=8))
        room = spec.whole("room", None, what, least=1) or min(ROOM, window // 2)
        if room >= window:
            raise ModelError(
                f"model '{spec}': room={room} leaves no space for a prompt in a window of {window} tokens."
            )
        return cls(
            weights=weights,
            window=window,
            room=room,
            template=spec.choice("template", templates, "chat", what),
            dtype=spec.choice("dtype", DTYPES, "auto", what),
            attn=spec.options.get("attn"),
            device=spec.options.get("device"),
            batch_tokens=spec.whole("batch_tokens", None, what, least=1),
            share=spec.choice("share", SHARE, "auto", what) == "auto",
            remote_code=allow["remote_code"],
            pickle=allow["pickle"],
        )


def _window(weights: Weights, asked: int | None) -> int:
    """Return the tokens to use: as asked, else the smaller of what configuration and tokenizer say.

    Raises:
        ModelError: nothing is said, or more is asked than the model has positions.
    """
    positions = positions_of(_json(weights, "config.json"))
    if asked is not None:
        if positions is not None and asked > positions:
            raise ModelError(f"model '{weights.id}': window={asked} is more than its {positions} positions.")
        return asked
    trained = _json(weights, "tokenizer_config.json").get("model_max_length")
    sizes = [s for s in (positions, trained) if isinstance(s, int | float) and 8 <= s < 1e9]
    if not sizes:
        raise ModelError(f"model '{weights.id}': its configuration names no window. Give it in tokens: ?window=4096")
    return int(min(sizes))


def _json(weights: Weights, name: str) -> dict[str, Any]:
    try:
        found = json.loads((weights.folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        if name == "config.json":
            raise ModelError(f"model '{weights.id}': no config.json in {weights.folder}.") from None
        return {}
    except ValueError as bad:
        raise ModelError(f"model '{weights.id}': {name} is not readable ({bad}).") from None
    return found if isinstance(found, dict) else {}
