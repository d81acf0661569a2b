"""Names for people: as short as tells the lines of a board apart, without a path of anybody's machine."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from urllib.parse import unquote

from palate.evaluation.runs import Model, Retriever
from palate.spec import Spec, model_name, short_model

LONGEST = 80
SHORT_DIGEST = 8


def distinct(forms: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return for each key its first form that no other key has at the same place, in the end with the key's start.

    Args:
        forms: for each key, a digest, the names it could have from short to long, as many for each.
    """
    found = {}
    for key, own in forms.items():
        others = [each for name, each in forms.items() if name != key]
        free = (form for k, form in enumerate(own) if all(each[k] != form for each in others))
        found[key] = next(free, f"{own[-1]} #{key[:SHORT_DIGEST]}")
    texts = list(found.values())
    return {key: text if texts.count(text) == 1 else f"{text} #{key[:SHORT_DIGEST]}" for key, text in found.items()}


def titles(models: Mapping[str, Model]) -> dict[str, str]:
    """Return a short name for each model identity: family, id and options; the revision if that is needed too."""
    return distinct({key: [_title(m, ""), _title(m, f"@{(m.revision or '')[:12]}")] for key, m in models.items()})


def systems(models: Mapping[str, Model]) -> dict[str, str]:
    """Return the full name of each model identity, as it stands on the board."""
    return distinct({key: [model_name(_plain(m))] for key, m in models.items()})


def rankers(retrievers: Mapping[str, Retriever]) -> dict[str, str]:
    """Return a short name for each retriever identity."""
    return distinct({key: [cut(_tail(r.id))] for key, r in retrievers.items()})


def cut(text: str, longest: int = LONGEST) -> str:
    """Return `text` on one line and without signs that cannot be seen; a long one loses its middle."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    if len(plain) <= longest:
        return plain
    end = longest // 4
    return f"{plain[: longest - end - 1]}…{plain[-end:]}"


def _title(model: Model, revision: str) -> str:
    head = unquote(short_model(str(Spec(f"{model.family}/{_tail(model.id)}"))))
    options = "&".join(f"{name}={_tail(value)}" for name, value in model.options.items())
    return cut(f"{head}{revision if model.revision else ''}{'?' if options else ''}{options}")


def _plain(model: Model) -> dict[str, object]:
    options = {name: _tail(value) for name, value in model.options.items()}
    return model.model_dump() | {"id": _tail(model.id), "options": options}


def _tail(text: str) -> str:
    """Return the last part of what looks like a path of a machine, anything else as it is."""
    is_path = text.startswith(("/", "~", ".")) or text[1:3] in (":\\", ":/")
    return PurePath(text.replace("\\", "/")).name or text if is_path else text
