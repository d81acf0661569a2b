"""`llm/<model>`: a language model names the aspects, as in LaMP-QA, whose planner's target is the list of their titles.

A reply that was read is never asked for again; a failure, or a reply without aspects, is asked anew when its item is
planned again. A reply that was cut gets one more try with more room.
"""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from palate.llm import load_prompt
from palate.llm.client import Ask, Client, Spending
from palate.llm.replies import Parsed, read_aspects
from palate.llm.served import SERVER_OPTIONS, call_row, endpoint_of, stored_call, temperature_of, with_room
from palate.llm.transport import Told
from palate.planning.base import FEWEST, MOST, Plan, Task
from palate.planning.registry import neutral
from palate.records import Call, Message
from palate.spec import Spec
from palate.store import RowLog
from palate.views.look import post_text

PROMPT = load_prompt("palate.planning", "plan", ("posts", "question"))
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"aspects": {"type": "array", "items": {"type": "string"}, "minItems": FEWEST, "maxItems": MOST}},
    "required": ["aspects"],
    "additionalProperties": False,
}
ROOM = 512


class LlmPlanner:
    """Asks a model once an item; the reply is read strictly, and one without aspects is a status."""

    reads_posts = True

    def __init__(self, spec: Spec, base_url: str | None, spending: Spending, told: Told | None) -> None:
        spec.only(("max_tokens", "temperature", *SERVER_OPTIONS), "planner")
        self.name = neutral(str(spec))
        self.client = Client(endpoint_of(spec, base_url, "planner"), spending, told)
        self._max_tokens = spec.whole("max_tokens", ROOM, "planner", least=1)
        self._temperature = temperature_of(spec, "planner")

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model, prompt and sampling; not the server's address."""
        return {
            "id": "llm",
            "model": self.client.endpoint.model,
            "prompt": PROMPT.digest,
            "max_tokens": self._max_tokens,
            "temperature": self._temperature,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions and the server, its address without secrets."""
        return {**{name: version(name) for name in ("palate", "openai")}, "base_url": self.client.endpoint.shown}

    def prepare(self) -> None:
        """Look for the server's key."""
        _ = self.client.endpoint.key

    def plan(self, tasks: Iterable[Task], log: RowLog) -> Iterator[Plan]:
        """Yield the plans as replies come back."""
        stream = _Stream(self, tasks, log)
        with log:
            for call in self.client.ask(stream):
                stream.take(call)
                yield from stream.settled()
            yield from stream.settled()

    def unasked(self, task: Task, log: RowLog) -> int | None:
        """Return the length of the prompt, unless its reply is there."""
        ask = self.ask(task)
        return None if self.known(ask, log) else sum(len(m.content) for m in ask.messages)

    def ask(self, task: Task) -> Ask:
        """Return what is asked for a task; its key is a hash of all that decides the reply."""
        entries = "\n\n".join(f"[{k}] {post_text(p)}" for k, p in enumerate(task.posts, 1))
        text = PROMPT.fill(posts=entries, question=task.question)
        settings = f"{self.client.endpoint.model}\0{self._max_tokens}\0{self._temperature}\0{text}"
        digest = hashlib.sha256(settings.encode()).hexdigest()[:16]
        return Ask(
            key=f"{task.id}|plan|{digest}",
            item_id=task.item_id,
            messages=(Message("user", text),),
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            schema=SCHEMA,
        )

    def known(self, ask: Ask, log: RowLog) -> Call | None:
        """Return the stored reply to `ask` if it can be read."""
        call = stored_call(log.rows.get(ask.key))
        return call if call is not None and plan_of("", call).status == "ok" else None


def plan_of(task_id: str, call: Call) -> Plan:
    """Return the plan that a reply comes to, or its status. Pure."""
    if call.status != "ok":
        return Plan(task_id, call.status, notes=(call.note,) if call.note else ())
    found = read_aspects(call.text or "")
    if not isinstance(found, Parsed):
        status = "truncated" if found.reason == "open thought" else "unparsed"
        return Plan(task_id, "truncated" if status == "truncated" else "unparsed", notes=(found.reason,))
    count = len(found.value)
    odd = (f"{count} aspects instead of {FEWEST} to {MOST}",) if not FEWEST <= count <= MOST else ()
    return Plan(task_id, "ok", found.value, odd)


class _Stream:
    """Gives the client its asks, second tries first, and turns its calls into plans."""

    def __init__(self, planner: LlmPlanner, tasks: Iterable[Task], log: RowLog) -> None:
        self._planner = planner
        self._tasks = iter(tasks)
        self._log = log
        self._open: dict[str, tuple[Ask, str]] = {}
        self._again: deque[Ask] = deque()
        self._plans: deque[Plan] = deque()

    def __iter__(self) -> "_Stream":
        return self

    def __next__(self) -> Ask:
        if self._again:
            return self._again.popleft()
        while True:
            task = next(self._tasks)
            ask = self._planner.ask(task)
            known = self._planner.known(ask, self._log)
            if known is None:
                ask = self._next_try(ask)
                self._open[ask.key] = ask, task.id
                return ask
            self._plans.append(plan_of(task.id, known))

    def _next_try(self, ask: Ask) -> Ask:
        """Return the ask, with more room if work ended after its first reply was cut."""
        before = stored_call(self._log.rows.get(ask.key))
        cut = before is not None and before.attempt == 1 and plan_of("", before).status == "truncated"
        return with_room(ask) if cut else ask

    def take(self, call: Call) -> None:
        """Keep a call; a cut one is asked once more, any other settles its plan."""
        ask, task_id = self._open.pop(call.key)
        self._log.append(call_row(ask, call))
        plan = plan_of(task_id, call)
        if plan.status == "truncated" and ask.attempt == 1:
            more = with_room(ask)
            self._open[more.key] = more, task_id
            self._again.append(more)
            return
        self._plans.append(plan)

    def settled(self) -> Iterator[Plan]:
        """Yield the plans that are settled."""
        while self._plans:
            yield self._plans.popleft()
