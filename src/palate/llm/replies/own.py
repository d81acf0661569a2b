"""Telling a judge's own words from what it quotes.

A judge repeats the answers it compares, and an answer may carry a verdict of its own. So everything that is quoted
is blanked before verdicts are looked for: fenced blocks (an open one to the end), lines that start with `>`, elements
such as `<quote_A>` or `<answer_b>`, and passages in double quotes or backticks. Positions stay as they are. Marks that
only dress a verdict are no quotation: a fence or quotes around the whole reply, or around one short token that stands
alone on its line or ends it after a label ("Final verdict: "A"").
"""

import re
from collections.abc import Iterable, Iterator

_BLANK = "\ufffc"
_OPENS = re.compile(r"[ \t]*(`{3,}|~{3,})[^`]*")
_CITED = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_ELEMENT = re.compile(r"<\s*(/?)\s*(quote(?:_\w)?|(?:answer|response|output|assistant)_\w)\s*>", re.IGNORECASE)
_QUOTED = re.compile(
    r'(?<![\w.])"(?=\S)((?:[^"\n]|\n(?![ \t]*\n))*)"(?!\w)|“([^“”]*)”|«([^«»]*)»|(?<!`)`([^`\n]+)`(?!`)'
)
_TOKEN = re.compile(
    r"[ABC12]|tie|[AB][<>=]{1,2}[AB]|[0-9.]{1,6}(?:/[0-9]{1,4})?"
    r"|(?:answer|response|output|assistant|option) \(?[AB]\)?(?: is better)?",
    re.IGNORECASE,
)
_LONGEST = 40
_DRESS = " \t[](){}*_.!"
_LABELLED = re.compile(r"\b(?:verdict|result|rating|score)[*_ \t]*(?:is)?[*_ \t]*:?[*_ \t]*$|^[*_ \t]*$", re.IGNORECASE)

Span = tuple[int, int]


def tidy(text: str) -> str:
    """Return the text with `\\n` as its only line end and without a fence around the whole of it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if list(_fences(text)) == [(0, len(text))] and text.endswith(("```", "~~~")) and text.count("\n") > 1:
        return "\n".join(text.split("\n")[1:-1]).strip()
    return text


def without_citations(text: str) -> str:
    """Return the text with cited lines and quoting elements blanked; fences and quotes stay, for JSON."""
    text = cover(text, (found.span() for found in _CITED.finditer(text)))
    return cover(text, _elements(text))


def own_words(text: str) -> str:
    """Return the text with every quotation blanked."""
    text = without_citations(cover(text, _fences(text)))
    return cover(text, (found.span() for found in _QUOTED.finditer(text) if not _dresses(found, text)))


def cover(text: str, spans: Iterable[Span]) -> str:
    """Return the text with the passages blanked, line ends kept."""
    pieces, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            start = max(start, at)
            pieces += [text[at:start], "\n".join(_BLANK * len(line) for line in text[start:end].split("\n"))]
            at = end
    return "".join([*pieces, text[at:]])


def _fences(text: str) -> Iterator[Span]:
    """Yield fenced blocks with their fences."""
    at, start, fence = 0, 0, ""
    for line in text.split("\n"):
        end = at + len(line)
        if not fence and (opens := _OPENS.fullmatch(line)):
            start, fence = at, opens[1]
        elif fence and line.strip() == fence[0] * len(line.strip()) and len(line.strip()) >= len(fence):
            yield start, end
            fence = ""
        at = end + 1
    if fence:
        yield start, len(text)


def _elements(text: str) -> Iterator[Span]:
    opened: dict[str, int] = {}
    for tag in _ELEMENT.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            opened.setdefault(name, tag.start())
        elif name in opened:
            yield opened.pop(name), tag.end()


def _dresses(found: re.Match[str], text: str) -> bool:
    """Say whether the quotes belong to the form of a verdict instead of quoting somebody."""
    if len(found[0]) == len(text):
        return True
    inner = next(group for group in found.groups() if group is not None)
    if len(inner) > _LONGEST or not _TOKEN.fullmatch(inner.strip(_DRESS)):
        return False
    start = text.rfind("\n", 0, found.start()) + 1
    before = text[max(start, found.start() - _LONGEST) : found.start()]
    after = text[found.end() : found.end() + _LONGEST].partition("\n")[0]
    return bool(_LABELLED.search(before)) and not after.strip(" \t.!*_")
