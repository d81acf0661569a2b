"""The grader: a language model says of each true aspect how well an answer attends to it, as in LaMP-QA.

`?form=per-aspect` asks once an aspect, `?form=per-answer` once an answer. An answer's grade is the sum of its levels
over 2 × aspects (LaMP-QA, arXiv 2506.00137). A level that is missing leaves the answer without a grade.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from palate.errors import SpecError
from palate.grading.grade import Grade, Task
from palate.grading.read import HIGH, read_level, read_levels
from palate.llm import load_prompt
from palate.llm.client import Ask, Client, Spending
from palate.llm.fence import conversation, defused, mark
from palate.llm.gather import Work, gather
from palate.llm.replies import SCORE_PARSERS, Parsed, Unparsed
from palate.llm.secrets import masked_spec
from palate.llm.served import SERVER_OPTIONS, ask_key, endpoint_of, temperature_of
from palate.llm.transport import Told
from palate.records import STATUSES, Aspect, Call, Key, Message, Status
from palate.spec import Spec
from palate.store import RowLog, digest_of

ONE = load_prompt(
    "palate.grading", "aspect", ("question", "narrative", "aspect", "reason", "evidence", "mark", "answer", "form")
)
ALL = load_prompt("palate.grading", "answer", ("question", "narrative", "aspects", "mark", "answer", "form"))
FORMS = {"per-aspect": ONE, "per-answer": ALL}
ONE_FORM = 'Reply with a JSON object and nothing else: {"reason": "<one sentence>", "score": 0, 1 or 2}'
ALL_FORM = (
    "Reply with a JSON object and nothing else, with one entry for each number: "
    '{"scores": [{"aspect": 1, "score": 0, 1 or 2}, …]}'
)
LEVEL: Mapping[str, Any] = {"type": "integer", "enum": [0, 1, 2]}
ONE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": LEVEL},
    "required": ["reason", "score"],
    "additionalProperties": False,
}
ENTRY: Mapping[str, Any] = {
    "type": "object",
    "properties": {"aspect": {"type": "integer"}, "score": LEVEL},
    "required": ["aspect", "score"],
    "additionalProperties": False,
}
ROOM = 512
NONE_TOLD = "(not told)"
WHAT = "grader"


def all_schema(count: int) -> Mapping[str, Any]:
    """Return the form of a reply about `count` aspects at once."""
    scores = {"type": "array", "items": ENTRY, "minItems": count, "maxItems": count}
    return {"type": "object", "properties": {"scores": scores}, "required": ["scores"], "additionalProperties": False}


class Grader:
    """Grades answers by a model behind a server."""

    def __init__(self, spec: Spec, base_url: str | None, spending: Spending, told: Told | None) -> None:
        spec.only(("form", "max_tokens", "parser", "temperature", *SERVER_OPTIONS), WHAT)
        self.form = spec.choice("form", FORMS, "per-aspect", WHAT)
        self.client = Client(endpoint_of(spec, base_url, WHAT), spending, told)
        self.name = str(masked_spec(spec))
        self._parser = spec.choice("parser", SCORE_PARSERS, "score", WHAT)
        if self.form == "per-answer" and "parser" in spec.options:
            raise SpecError(f"grader '{self.name}': form=per-answer has one parser of its own.")
        self._max_tokens = spec.whole("max_tokens", ROOM, WHAT, least=1)
        self._temperature = temperature_of(spec, WHAT)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the replies: model, prompt and sampling; not the server's address."""
        return {
            "family": "llm",
            "id": self.client.endpoint.model,
            "form": self.form,
            "prompt": FORMS[self.form].digest,
            "max_tokens": self._max_tokens,
            "temperature": self._temperature,
        }

    @property
    def reading(self) -> str:
        """The digest of how replies are read; another reading needs no other reply."""
        parser = self._parser if self.form == "per-aspect" else "scores"
        return digest_of({"parser": parser, "rule": "sum of levels over 2 aspects; all of them or none"})[:16]

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions and the server, its address without secrets."""
        found = {name: version(name) for name in ("palate", "openai")}
        return {**found, "base_url": self.client.endpoint.shown, "left_out": self.client.left_out}

    def calls_for(self, aspects: int) -> int:
        """Return how many calls one answer to an item with so many aspects takes."""
        return aspects if self.form == "per-aspect" else min(1, aspects)

    def asks(self, task: Task) -> tuple[Ask, ...]:
        """Return all questions about one answer; none if there is nothing to grade by."""
        if task.key is None or not task.key.aspects:
            return ()
        if self.form == "per-answer":
            return (self._ask(task, "all", self._all(task, task.key), all_schema(len(task.key.aspects))),)
        schema = ONE_SCHEMA if self._parser == "score" else None
        return tuple(
            self._ask(task, f"aspect-{k}", self._one(task, task.key, aspect), schema)
            for k, aspect in enumerate(task.key.aspects, 1)
        )

    def settle(self, task: Task, calls: Mapping[str, Call]) -> Grade:
        """Return what the replies (by key of their asks) about one answer come to. Pure."""
        if task.key is None or not task.key.aspects:
            return Grade(task.id, "no_context", None, notes=("the item has no rubric to grade by",))
        found = [self._read(calls[ask.key], len(task.key.aspects)) for ask in self.asks(task)]
        failed: list[Status] = [status for status, _, _ in found if status != "ok"]
        levels = tuple(level for _, values, _ in found for level in values)
        notes = tuple(dict.fromkeys(note for _, _, note in found if note))
        whole = [level for level in levels if level is not None]
        if failed:
            return Grade(task.id, max(failed, key=STATUSES.index), None, levels, notes)
        return Grade(task.id, "ok", sum(whole) / (HIGH * len(whole)), levels, notes)

    def grade(
        self, tasks: Iterable[Task], log: RowLog, again: bool = False
    ) -> Iterator[tuple[Task, Grade, Mapping[str, Call]]]:
        """Yield each task, its grade and the replies that it rests on, as they come back.

        Args:
            tasks: their ids are unique.
            log: the exchanges; those that are there are not repeated.
            again: ask anew in place of replies that cannot be read.
        """
        given: dict[str, Task] = {}

        def works() -> Iterator[Work]:
            for task in tasks:
                given[task.id] = task
                count = len(task.key.aspects) if task.key else 0
                work = Work(task.id, self.asks(task))
                yield replace(work, keeps=partial(self._readable, count)) if again else work

        for name, calls in gather(self.client, works(), log):
            task = given.pop(name)
            yield task, self.settle(task, calls), calls

    def _read(self, call: Call, count: int) -> tuple[Status, Sequence[int | None], str | None]:
        """Return status, levels and note of one reply; a reply without levels gives None for each of them."""
        none = (None,) * (1 if self.form == "per-aspect" else count)
        if call.status != "ok":
            return call.status, none, call.note
        text = call.text or ""
        if self.form == "per-aspect":
            one = read_level(text, self._parser)
            found: Parsed[tuple[int, ...]] | Unparsed = Parsed((one.value,)) if isinstance(one, Parsed) else one
        else:
            found = read_levels(text, count)
        if isinstance(found, Parsed):
            return "ok", found.value, None
        return "truncated" if found.reason == "open thought" else "unparsed", none, found.reason

    def _readable(self, count: int, call: Call) -> bool:
        return self._read(call, count)[0] == "ok"

    def _one(self, task: Task, key: Key, aspect: Aspect) -> str:
        text = defused(task.answer.text)
        return ONE.fill(
            question=conversation(task.item.messages),
            narrative=key.narrative or NONE_TOLD,
            aspect=aspect.aspect,
            reason=aspect.reason or NONE_TOLD,
            evidence=aspect.evidence or NONE_TOLD,
            mark=mark(text),
            answer=text,
            form=ONE_FORM,
        )

    def _all(self, task: Task, key: Key) -> str:
        text = defused(task.answer.text)
        lines = [
            f"{k}. {a.aspect}\n   Why it matters to this person: {a.reason or NONE_TOLD}\n"
            f"   What the person said that shows it: {a.evidence or NONE_TOLD}"
            for k, a in enumerate(key.aspects, 1)
        ]
        return ALL.fill(
            question=conversation(task.item.messages),
            narrative=key.narrative or NONE_TOLD,
            aspects="\n".join(lines),
            mark=mark(text),
            answer=text,
            form=ALL_FORM,
        )

    def _ask(self, task: Task, name: str, text: str, schema: Mapping[str, Any] | None) -> Ask:
        messages = (Message("user", text),)
        settings = {"model": self.client.endpoint.model, "max": self._max_tokens, "t": self._temperature}
        return Ask(
            key=ask_key(task.item.id, f"{task.id}|{name}", messages, settings),
            item_id=task.item.id,
            messages=messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            schema=schema,
            seed=task.draw if self._temperature else None,
        )


def make_grader(
    text: str, base_url: str | None = None, spending: Spending | None = None, told: Told | None = None
) -> Grader:
    """Return the grader that `llm/<model>[?form=per-aspect|per-answer&temperature=…]` names.

    Args:
        text: the string.
        base_url: its server, unless the string names one.
        spending: limits of calls and tokens.
        told: told of retries.

    Raises:
        SpecError: another family, or an unknown option.
        MissingExtra: the extra `llm` is not installed.
    """
    spec = Spec.parse(text, WHAT)
    family, _, rest = spec.head.partition("/")
    if family != "llm" or not rest:
        raise SpecError(f"grader '{text}': write llm/<model>, the name that its server knows it by.")
    return Grader(spec, base_url, spending or Spending(), told)
