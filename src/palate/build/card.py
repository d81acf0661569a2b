"""The data set's card: README.md with the configurations in front, and all that a reader has to know of its making."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palate.build.output import Config

NOT_AUDITED = (
    "Not audited yet: whether length, style or leaked wording give the chosen answer away has not been checked."
)
UNKNOWN = "unknown"
NO_LICENCE = "unknown. Nobody stated one; ask before using the data or passing it on."
WHAT = (
    "One question of one user an item, and two answers that are meant to be equally good for people at large: `chosen` "
    "keeps what this user wants (`rubric_aspects`), `rejected` goes against it. `profile` is the user's history. "
    "`rubric_aspects` and `narrative` are the answer key and must never reach a reward model."
)
TWINS = (
    "Items come as **twins**: two users, one question, the same two answers with their roles swapped. Whoever does not "
    "read the user is right exactly half the time."
)
HOW = (
    "in the manner of Personalized RewardBench (arXiv 2604.07343): a language model reads the question, the user's top "
    "posts and the aspects, and writes each answer by itself. People have not read the pairs."
)
COUNTED = (
    "Each line counts checks over all tries; an answer gate checks two answers a try. `unknown` means that the gate "
    "could not tell, which rejects nothing; any other status but `pass` and `not run` rejected the try."
)


def make_card(record: Mapping[str, Any], configs: Sequence[Config], verdict: str | None = None) -> str:
    """Return the card.

    Args:
        record: what `build.json` holds.
        configs: the configurations that were written.
        verdict: what an audit found, in Markdown; without one the card says that there was none.
    """
    return "\n".join((*_front(record, configs), *_what(record), *_making(record), *_gates(record), *_end(verdict)))


def _front(record: Mapping[str, Any], configs: Sequence[Config]) -> Iterator[str]:
    """Yield the metadata block; strings are written as JSON, which YAML reads as they are."""
    yield "---"
    yield f"license: {json.dumps(record['licence'] or UNKNOWN)}"
    yield "tags:"
    yield from ('- "personalization"', '- "reward-model"', '- "preference"')
    yield "configs:"
    for config in configs:
        yield f"- config_name: {json.dumps(config.name, ensure_ascii=False)}"
        yield "  data_files:"
        yield '  - split: "test"'
        yield f"    path: {json.dumps(config.path, ensure_ascii=False)}"
    yield "---"
    yield ""


def _what(record: Mapping[str, Any]) -> Iterator[str]:
    found = record["statistics"]
    yield f"# Personal preference pairs made from {_plain(record['data'])}"
    yield ""
    yield WHAT
    if record["twins"]:
        yield ""
        yield TWINS
    yield ""
    yield "| | |"
    yield "|---|---|"
    users = found["users"] if found["users"] is not None else "none named"
    rows = {"items": found["items"], "users": users, "items in twins": found["items_in_twins"]}
    rows |= {f"domain {_plain(d)}": n for d, n in found["domains"].items()}
    rows |= {"aspects an item, mean": found["aspects_mean"], "posts a history, mean": found["posts_mean"]}
    rows |= {f"words of {side}, mean": mean for side, mean in (found["words_mean"] or {}).items()}
    rows |= {f"the longer answer is the chosen one, {_plain(d)}": v for d, v in found["longer_is_chosen"].items()}
    for name, value in rows.items():
        yield f"| {name} | {_number(value)} |"
    licence = record["licence"]
    yield ""
    yield f"Licence: {_plain(licence) if licence else NO_LICENCE}"
    yield ""


def _making(record: Mapping[str, Any]) -> Iterator[str]:
    judge, writer = record["judge"], record["generator"]
    yield "## How it was made"
    yield ""
    made = f"{_plain(record['environment']['palate'])}, {_plain(record['finished'] or record['started'])}"
    yield f"By `palate build` {made}, {HOW}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    rows = {
        "generator": f"{writer['model']}, temperature {writer['temperature']:g}",
        "judge": f"{judge['model']}, temperature {judge['temperature']:g}"
        if judge
        else "none: judged gates were not run",
        "source": f"{record['data']}, digest {record['data_digest'][:16]}",
        "posts read": f"{record['k']} by {record['retriever']['id']}",
        "rubrics": "derived from narratives where an item had none"
        if record["keys_from_narratives"]
        else "the source's own",
        "tries a pair": record["tries"],
    }
    rows |= {f"prompt {name}": digest for name, digest in record["prompts"].items()}
    for name, value in rows.items():
        yield f"| {name} | `{_plain(value)}` |"
    for warning in record["warnings"]:
        yield ""
        yield f"**Warning:** {_plain(warning)}."
    yield ""


def _gates(record: Mapping[str, Any]) -> Iterator[str]:
    counts = record["counts"]
    yield "## What was kept"
    yield ""
    yield ", ".join(f"{n} {name}" for name, n in counts.items()) + "."
    yield ""
    yield COUNTED
    yield ""
    statuses = list(dict.fromkeys(s for found in record["gates"].values() for s in found))
    yield f"| gate | {' | '.join(statuses)} |"
    yield f"|---|{'---|' * len(statuses)}"
    for gate, found in record["gates"].items():
        yield f"| {gate} | {' | '.join(str(found.get(s, 0)) for s in statuses)} |"
    yield ""
    yield f"Set to: `{_plain(json.dumps(record['thresholds']))}`."
    yield ""


def _end(verdict: str | None) -> Iterator[str]:
    yield "## Audit"
    yield ""
    yield verdict.strip() if verdict else NOT_AUDITED
    yield ""


def _plain(value: object) -> str:
    """Return a text that came from elsewhere as one line without marks of Markdown or HTML."""
    text = " ".join(str(value).split())
    for sign, safe in {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "'"}.items():
        text = text.replace(sign, safe)
    return text


def _number(value: object) -> str:
    return "–" if value is None else _plain(f"{value:g}" if isinstance(value, float) else value)
