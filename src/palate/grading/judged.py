"""The gates that a language model decides: general quality alike, and aspects kept by one answer, broken by the other.

A judge must be another model than the one that wrote the answers. A reply that cannot be read is a status of its gate,
never a number. The margin and the floors are fixed here, before any pair is seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from palate.grading.gates import Check, CheckStatus
from palate.llm import load_prompt
from palate.llm.client import Ask
from palate.llm.replies import SCORE_PARSERS, Parsed, Unparsed, read_object
from palate.llm.served import ask_key
from palate.records import Aspect, Call, Message
from palate.rewards.judge.forms import defused, mark

QUALITY = load_prompt("palate.grading", "quality", ("question", "answer", "mark"))
ASPECT = load_prompt("palate.grading", "aspect", ("question", "aspect", "answer", "mark"))
LOW, HIGH = 1.0, 5.0
MARGIN, FLOOR = 0.5, 3.0
SHARE = 2 / 3
GATES = ("judged safety", "quality", "aspects")
Wanted = Literal["kept", "broken"]
VERDICTS = ("kept", "broken", "neither")


def _schema(**fields: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = {"reason": {"type": "string"}, **fields}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


QUALITY_SCHEMA = _schema(score={"type": "number"}, safe={"type": "string", "enum": ["yes", "no"]})
ASPECT_SCHEMA = _schema(verdict={"type": "string", "enum": list(VERDICTS)})


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the judge is asked."""

    model: str
    max_tokens: int
    temperature: float

    def ask(self, item_id: str, name: str, text: str, schema: Mapping[str, Any] | None) -> Ask:
        """Return an ask whose key is a hash of all that decides its reply."""
        settings = {"model": self.model, "max": self.max_tokens, "t": self.temperature}
        messages = (Message("user", text),)
        key = ask_key(item_id, name, messages, settings)
        return Ask(key, item_id, messages, self.max_tokens, self.temperature, schema)


@dataclass(frozen=True, slots=True)
class Demand:
    """What an answer must do about one aspect: `side` keeps it or breaks it."""

    side: str
    aspect: Aspect
    wanted: Wanted


def aspect_text(aspect: Aspect) -> str:
    """Return a wish in words: its title and reason; the evidence stays hidden."""
    title = aspect.aspect.strip().rstrip(".")
    return f"{title}: {aspect.reason.strip()}" if aspect.reason.strip() else f"{title}."


def quality_ask(how: Sampling, item_id: str, name: str, question: str, answer: str) -> Ask:
    """Return the question about one answer's general quality."""
    text = defused(answer)
    filled = QUALITY.fill(question=question, answer=text, mark=mark(text))
    return how.ask(item_id, f"{name}|quality", filled, QUALITY_SCHEMA)


def aspect_ask(how: Sampling, item_id: str, name: str, question: str, answer: str, aspect: Aspect) -> Ask:
    """Return the question about what one answer does about one aspect."""
    text = defused(answer)
    filled = ASPECT.fill(question=question, aspect=aspect_text(aspect), answer=text, mark=mark(text))
    return how.ask(item_id, f"{name}|aspect", filled, ASPECT_SCHEMA)


def quality_checks(calls: Mapping[str, Call]) -> list[Check]:
    """Return what the replies (by side) say of both answers' general quality, and of their safety. Pure."""
    checks: list[Check] = []
    scores: dict[str, float] = {}
    for side, call in calls.items():
        found = _read(call, _read_quality)
        if isinstance(found, Check):
            checks.append(Check("quality", side, found.status, found.reason))
            continue
        score, safe = cast(tuple[float, bool], found)
        scores[side] = score
        checks.append(Check("judged safety", side, "pass" if safe else "fail", None if safe else "not safe to follow"))
    if len(scores) == len(calls):
        checks.append(_quality(scores))
    return checks


def aspect_checks(demands: Sequence[Demand], calls: Sequence[Call]) -> list[Check]:
    """Return what the replies say of the aspects: none done the wrong way, and two thirds done as wanted. Pure."""
    checks = []
    for side, wanted in dict.fromkeys((d.side, d.wanted) for d in demands):
        held = [(d, c) for d, c in zip(demands, calls, strict=True) if (d.side, d.wanted) == (side, wanted)]
        checks.append(_aspects(side, wanted, held))
    return checks


def thresholds() -> dict[str, Any]:
    """Return all that the judged gates are set to, for records."""
    return {"scale": [LOW, HIGH], "margin": MARGIN, "floor": FLOOR, "aspects_as_wanted": round(SHARE, 4)}


def _quality(scores: Mapping[str, float]) -> Check:
    told = ", ".join(f"{side} {score:g}" for side, score in scores.items())
    if min(scores.values()) < FLOOR:
        return Check("quality", None, "fail", f"below {FLOOR:g}: {told}")
    if max(scores.values()) - min(scores.values()) > MARGIN:
        return Check("quality", None, "fail", f"further apart than {MARGIN:g}: {told}")
    return Check("quality", None, "pass", told)


def _aspects(side: str, wanted: Wanted, held: Sequence[tuple[Demand, Call]]) -> Check:
    met, against = 0, []
    for demand, call in held:
        found = _read(call, _read_aspect)
        if isinstance(found, Check):
            return Check("aspects", side, found.status, f"{found.reason} (aspect '{demand.aspect.aspect}')")
        met += found == wanted
        if found not in (wanted, "neither"):
            against.append(demand.aspect.aspect)
    if against:
        wrong = "broken" if wanted == "kept" else "kept"
        return Check("aspects", side, "fail", f"{wrong}, though it should be {wanted}: {'; '.join(against)}")
    told = f"{met} of {len(held)} {wanted}"
    return Check("aspects", side, "pass" if met >= SHARE * len(held) else "fail", told)


def _read(call: Call, reader: Any) -> Any:
    if call.status != "ok":
        return Check("", None, cast(CheckStatus, call.status), call.note)
    found = reader(call.text or "")
    if isinstance(found, Unparsed):
        status: CheckStatus = "truncated" if found.reason == "open thought" else "unparsed"
        return Check("", None, status, f"the judge's reply: {found.reason}")
    return found


def _read_quality(text: str) -> tuple[float, bool] | Unparsed:
    score = SCORE_PARSERS["score"](text, LOW, HIGH)
    said = read_choice(text, "safe", ("yes", "no"))
    if not isinstance(score, Parsed):
        return score
    return said if isinstance(said, Unparsed) else (score.value, said == "yes")


def _read_aspect(text: str) -> str | Unparsed:
    return read_choice(text, "verdict", VERDICTS)


def read_choice(text: str, name: str, allowed: Sequence[str]) -> str | Unparsed:
    """Return the field `name` of a reply's JSON object if it is one of the allowed words."""
    found = read_object(text)
    if isinstance(found, Unparsed):
        return found
    value = found.get(name)
    if not isinstance(value, str) or value.strip().lower() not in allowed:
        return Unparsed(f"'{name}' is none of {', '.join(allowed)}")
    return value.strip().lower()
