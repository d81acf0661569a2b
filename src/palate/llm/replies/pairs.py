"""Readers of pairwise verdicts, one for each agreed form. The table of forms is `PAIR_PARSERS`."""

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from palate.llm.replies.objects import number
from palate.llm.replies.outcome import (
    DIFFER,
    NO_VERDICT,
    NOT_ALLOWED,
    Choice,
    PairParser,
    PairParsers,
    Parsed,
    Unparsed,
)
from palate.llm.replies.own import own_words
from palate.llm.replies.votes import ANY_LABEL, Vote, bracketed, labelled, last_bracketed, sentence
from palate.llm.replies.whole import clean, field_or_line

Verdict = Parsed[Choice] | Unparsed

_A: Final[Parsed[Choice]] = Parsed("A")
_B: Final[Parsed[Choice]] = Parsed("B")
_TIE: Final[Parsed[Choice]] = Parsed("tie")
_SIDES: Final = {"a": _A, "b": _B, "1": _A, "2": _B, "c": _TIE, "tie": _TIE}

_DRESS = "\"'“”‘’*_`[](){} \t"
_NOUN = r"(?:answer|response|output|assistant|option)"
_BETTER = rf"(?: is (?:(?:clearly|slightly|much|significantly) )?(?:better|the better {_NOUN}))?"
_CHOICE = re.compile(
    rf"(?:(?:the )?{_NOUN} )?\(?([ab])\)?{_BETTER}|(?:it(?: is|'s|’s) )?(?:a )?(tie)", re.IGNORECASE | re.ASCII
)
_VOTES_LIKE = re.compile(r"(?i:\b(?:tie|both|neither|none|draw|equal|either|unclear)\b)|\b[A-D]\b|^\w{0,2}$|^[ABab]+$")
_NUMBERS = re.compile(r"[-+]?[0-9.]+%?(?:/[0-9]+)?")


def choice(token: Any) -> Verdict:
    """Read one token of the closed list.

    A, B or tie, dressed in brackets, quotes or markdown, with or without a full stop; "Answer B" (also response,
    output, assistant, option; "Output (b)"); "A is better", "Response B is slightly better" (clearly, much,
    significantly), "A is the better answer"; "a tie", "it is a tie". Case does not matter. "Both" is no verdict.
    """
    if not isinstance(token, str):
        return NOT_ALLOWED
    bare = token.strip(_DRESS + "\n").removesuffix(".").removesuffix("!").strip(_DRESS)
    found = _CHOICE.fullmatch(" ".join(bare.split())) if len(bare) < 80 else None
    return _SIDES[(found[1] or found[2]).lower()] if found else NOT_ALLOWED


def _verdict(text: str) -> Verdict:
    return field_or_line(text, "verdict", choice, _own_line, NO_VERDICT)


def _own_line(own: str) -> Vote[Choice] | None:
    """Return the last vote after a label or in double brackets that close their line or sentence."""
    line = labelled(own, "verdict|result", choice)
    mark = last_bracketed(own, bracketed(own, _plain_mark), whole=True)
    if mark is None or (line and line.start > mark.start):
        return line
    start, _ = sentence(own, mark.start)
    before = own[start : mark.start].strip(_DRESS + "#>:,-")
    after_label = any(label.end() == start for label in ANY_LABEL.finditer(own, 0, mark.start))
    if after_label and before and choice(before) != mark.value:
        return Vote(mark.start, mark.end, DIFFER)
    return mark


def _plain_mark(content: str) -> Verdict | None:
    return _mark(content, choice)


def _brackets(text: str) -> Verdict:
    if re.match(r"\s*(?:[abc]|tie)\s*\]\]", text, re.IGNORECASE | re.ASCII):
        text = "[[" + text.lstrip()
    return _last_mark(text, lambda content: _mark(content, lambda token: _SIDES.get(token.lower(), NOT_ALLOWED)))


def _arena(text: str) -> Verdict:
    return _last_mark(text, lambda content: _mark(content, _compared))


def _compared(token: str) -> Verdict:
    found = re.fullmatch(r"([ab])\s*(>>|>|=)\s*([ab])", token, re.IGNORECASE | re.ASCII)
    if not found or found[1].lower() == found[3].lower():
        return NOT_ALLOWED
    return _TIE if found[2] == "=" else _SIDES[found[1].lower()]


def _last_mark(text: str, read: Callable[[str], Verdict | None]) -> Verdict:
    own = own_words(text)
    last = last_bracketed(own, bracketed(own, read))
    return last.value if last else NO_VERDICT


def _mark(content: str, read: Callable[[str], Verdict]) -> Verdict | None:
    """Read what stands in double brackets; a number or a remark beside the verdict is no vote."""
    if _NUMBERS.fullmatch(content):
        return None
    value = read(content)
    return value if isinstance(value, Parsed) or _VOTES_LIKE.search(content) else None


_LETTER = re.compile(r"[*_\"'“`\[( \t]*(?:([ABC]|[Tt][Ii][Ee])|([12]))[*_\"'”`\]) \t]*(?:([.:])(?![0-9])|(?=\()|$)")
_SIDE = re.compile(rf"[\W_]*(?:the )?(?:{_NOUN}|feedback|chatbot|model)? ?\(?([AB12])\b", re.IGNORECASE | re.ASCII)


def _letter(text: str) -> Verdict:
    """Read a reply that begins with its verdict; what the first line says next must not contradict it."""
    lines = [line.strip() for line in own_words(text).split("\n") if line.strip()]
    tokens = [(found, _SIDES[(found[1] or found[2]).lower()]) for line in lines if (found := _LETTER.match(line))]
    if not tokens or not _LETTER.match(lines[0]):
        return NO_VERDICT
    found, value = tokens[0]
    rest = lines[0][found.end() :].lstrip("*_ \t")
    if any(other != value for mark, other in tokens if rest or mark.end() == len(mark.string)):
        return DIFFER
    side = _SIDE.match(rest) if not re.match(r"\(?a [a-z]", rest, re.IGNORECASE | re.ASCII) else None
    if side and value != _TIE and _SIDES[side[1].lower()] != value:
        return DIFFER
    if found[2] and found[3] and rest and not side:
        return Unparsed("a list, not a verdict")
    return value


_ANSWER = re.compile(r"<\s*answer\s*>([^<>]*)<\s*/\s*answer\s*>", re.IGNORECASE | re.ASCII)


def _answer_tag(text: str) -> Verdict:
    found = _ANSWER.findall(own_words(text))
    if not found:
        return NO_VERDICT
    token = re.fullmatch(r"\[?\[?\s*(a|b|tie)\s*\]?\]?", found[-1].strip(), re.IGNORECASE | re.ASCII)
    return _SIDES[token[1].lower()] if token else NOT_ALLOWED


_LEAD = (
    r"(?:(?:therefore|thus|hence|so|overall|finally|in conclusion|in summary),? )?"
    r"(?:i (?:think|believe|conclude)(?: that)? )?"
)
_OUTPUT = re.compile(
    rf"[*_ ]*{_LEAD}[*_]*output \(([ab])\)[*_]* is (?:(?:clearly|slightly|much|significantly) )?(?:the )?better"
    r"(?: output| one)?[*_]*(?P<tail>$|,? (?:because|since|as|due to)\b.*| than (?:the other|output \([ab]\))[*_]*)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_ALONE = re.compile(r"[*_ ]*output \(([ab])\)[*_]*(?: \(.*\))?\.?[*_]*", re.IGNORECASE | re.ASCII)
_CLAIM = re.compile(r"output \(([ab])\)[*_]* is (?:the )?better", re.IGNORECASE | re.ASCII)
_DRAWS = ({"neither", "better"}, {"neither", "output"}, {"both", "equally"}, {"equally", "good"})
_ENDS = re.compile(r"(?<=[.!?])[\"'”’*_]*\s+|\n+")


def _output_ab(text: str) -> Verdict:
    """Read the last sentence that decides; a heading, a condition or another's opinion does not decide."""
    own = own_words(text).strip()
    if "\n" not in own and (alone := _ALONE.fullmatch(own)):
        return _SIDES[alone[1].lower()]
    last: Verdict = NO_VERDICT
    for part in _ENDS.split(own):
        said = " ".join(part.strip().split())
        if (found := _OUTPUT.fullmatch(said.rstrip(".!*_ "))) and not said.endswith("?"):
            claims = {claim.lower() for claim in _CLAIM.findall(said)}
            last = DIFFER if len(claims) > 1 else _SIDES[found[1].lower()]
        elif any(draw <= set(re.findall(r"\w+", said.lower())) for draw in _DRAWS):
            last = NO_VERDICT
    return last


_TWO = re.compile(r"\(?([0-9]+(?:\.[0-9]+)?)(?:\s*,\s*|\s+)([0-9]+(?:\.[0-9]+)?)\)?\.?")


def _two_scores(text: str) -> Verdict:
    first = text.strip().partition("\n")[0].strip("*_` \t")
    found = _TWO.fullmatch(first) if len(first) < 80 else None
    if not found:
        return NO_VERDICT
    one, two = number(found[1], 0, 1e9), number(found[2], 0, 1e9)
    if isinstance(one, Unparsed) or isinstance(two, Unparsed):
        return NOT_ALLOWED
    return _TIE if one == two else _A if one > two else _B


def _parser(read: Callable[[str], Verdict]) -> PairParser:
    def parse(text: str) -> Verdict:
        plain = clean(text)
        return plain if isinstance(plain, Unparsed) else read(plain)

    return parse


PAIR_PARSERS: PairParsers = MappingProxyType(
    {
        "verdict": _parser(_verdict),
        "brackets": _parser(_brackets),
        "arena": _parser(_arena),
        "letter": _parser(_letter),
        "answer_tag": _parser(_answer_tag),
        "output_ab": _parser(_output_ab),
        "two_scores": _parser(_two_scores),
    }
)
