"""Scoring groups by a server: requests in parallel, scores in any order, and every failure told with its cause."""

from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any

from palate.errors import ItemError, MissingExtra, ModelError, Stopped
from palate.llm.client import Spending
from palate.llm.failures import cause_of, is_fatal, status_of
from palate.llm.secrets import masked_spec
from palate.llm.transport import Loop, Told, patience
from palate.records import Group, Message, Score, Status
from palate.rewards.http.dialect import Dialect, Piece
from palate.rewards.http.find import find_server
from palate.rewards.http.local import Local, load_local
from palate.rewards.http.options import Options
from palate.rewards.http.questions import Questions
from palate.rewards.http.vllm import TOKENIZE, Vllm
from palate.rewards.local.options import ROOM
from palate.spec import Spec
from palate.views import Budget

GIVEN = ("label", "model", "room", "tokenizer", "window")
TRIAL = Piece("trial", "trial", (Message("user", "Which way?"),), "Turn left at the mill.")
NO_WINDOW = "the window is not known, so the context is not fitted to it; ?window= and ?tokenizer= make it known"
Batch = list[Piece | Score]


class HttpScorer:
    """`http/<host:port[/path]>`: the server is asked what it offers; one finite number an answer is taken, no other.

    A server that is not there, or gives no rewards, is found out before a run has a folder. What fails later is an
    `error` of its answer; a text that the server finds too long is `overlong`.
    """

    probe = False
    needs_context = False

    def __init__(self, spec: Spec, spending: Spending, told: Told | None) -> None:
        if find_spec("openai") is None:
            raise MissingExtra("models of the family 'http'", "llm")
        self._options = Options.from_spec(spec)
        self.name = masked_spec(spec).head
        self._given = {k: v for k, v in spec.options.items() if k in GIVEN}
        self._spending, self._told = spending, told
        self._gone = False

    @property
    def identity(self) -> Mapping[str, Any]:
        """Which server, and which model it says it serves; no secret and no path of a machine."""
        facts, window = self._server.facts, self._window
        tokenizer = {"tokenizer": self._local.files.id} if self._local else {}
        model = {"model": _tail(self._given["model"])} if "model" in self._given else {}
        return {
            "family": "http",
            "id": self._options.id,
            "server": facts.server,
            "model": _tail(facts.model) if facts.model else None,
            "weights": {k: _tail(v) if isinstance(v, str) else v for k, v in facts.weights.items()},
            "parameters": None,
            "label": self._options.label,
            "window": window[0] if window else None,
            "room": window[1] if window else None,
            "tokenizer": self._local.identity if self._local else None,
            "options": {**self._given, **tokenizer, **model},
            "probe": self.probe,
        }

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions here, and what answered how there."""
        facts = self._server.facts
        packages = ("palate", "openai", *(("transformers",) if self._local else ()))
        return {
            **{name: version(name) for name in packages},
            "base_url": self._options.endpoint.shown,
            "server": facts.server,
            "server_version": facts.version,
            "endpoint": facts.endpoint,
            "activation": facts.activation,
            "notes": [*facts.notes, *([] if self.budget else [NO_WINDOW])],
        }

    @cached_property
    def budget(self) -> Budget | None:
        """Window and room in the model's own tokens, counted by the server or here; None if either is not known."""
        self._ready()
        if self._window is None:
            return None
        window, room = self._window
        count = self._local.encoder.count if self._local else getattr(self._server, "count", None)
        return Budget(window - room, room, count) if count else None

    def prepare(self) -> None:
        """Find the server and ask for one score."""
        _ = self.budget

    def score(self, groups: Iterable[Group]) -> Iterator[Score]:
        """Yield scores as they come; groups are taken only as requests get free.

        Raises:
            ModelError: the server refuses every request, or gives something else than rewards.
            Stopped: a limit of calls is reached; what was asked before has been yielded.
        """
        self.prepare()
        batches = self._batches(groups)
        parallel = self._options.parallel or self._server.parallel
        with Loop(self._options.endpoint, self._options.endpoint.key) as loop:
            for scores in loop.each(lambda: self._next(batches, loop.client), parallel):
                yield from scores
        if not self._spending.left and next(batches, None) is not None:
            raise Stopped("the limit of calls is reached. The same command with a higher one goes on from here.")

    @cached_property
    def _questions(self) -> Questions:
        return Questions(self._options)

    @cached_property
    def _server(self) -> Dialect:
        return find_server(self._options, self._questions)

    @cached_property
    def _local(self) -> Local | None:
        return load_local(self._options.tokenizer) if self._options.tokenizer else None

    @cached_property
    def _window(self) -> tuple[int, int] | None:
        """Window and room: as asked for, else as the server says.

        Raises:
            ModelError: more than the server holds, no space for a prompt, or nothing to count with.
        """
        o, facts = self._options, self._server.facts
        window = o.window or facts.window
        if facts.window and window and window > facts.window:
            raise ModelError(f"model '{self.name}': window={window} is more than the server's {facts.window}.")
        counts = self._local is not None or (hasattr(self._server, "count") and self._questions.offers(TOKENIZE))
        counts = counts or self._server.checks_room
        if window is None or not counts:
            if o.window or o.room:
                raise ModelError(
                    f"model '{self.name}': window and room need a window and something to count tokens with: "
                    "?window=4096&tokenizer=<folder or hub id>"
                )
            return None
        room = o.room or facts.room or min(ROOM, window // 2)
        if room >= window:
            raise ModelError(f"model '{self.name}': room={room} leaves no space for a prompt in {window} tokens.")
        return window, room

    def _ready(self) -> None:
        """Ask for one score, so that a server that gives none, or several numbers, is found out first."""
        if self._server.checks_room:
            return
        piece = self._encoded(TRIAL)
        reply = self._questions.post(self._server.facts.endpoint, self._server.body([piece]))
        try:
            self._server.read(reply, [piece])
        except ModelError:
            raise
        except ValueError as bad:
            raise ModelError(f"model '{self.name}': {self._server.facts.endpoint}: {bad}") from None

    def _batches(self, groups: Iterable[Group]) -> Iterator[Batch]:
        """Yield what goes into one request, answers of one query together; failures found here travel along."""
        batch: Batch = []
        for group in groups:
            pieces = list(self._pieces(group))
            if batch and len(batch) + len(pieces) > self._server.at_once:
                yield batch
                batch = []
            for piece in pieces:
                batch.append(piece)
                if len(batch) == self._server.at_once:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def _pieces(self, group: Group) -> Iterator[Piece | Score]:
        query = group.query
        for answer in group.answers:
            try:
                piece = self._encoded(Piece(query.item_id, answer.id, query.messages, answer.text))
            except ItemError as bad:
                yield Score(answer.id, "error", None, str(bad))
                continue
            why = self._too_long(piece)
            yield Score(answer.id, "overlong", None, why) if why else piece

    def _encoded(self, piece: Piece) -> Piece:
        if not (self._local and self._server.takes_tokens):
            return piece
        ids = self._local.encoder.tokens(piece.messages, piece.text).ids
        return Piece(piece.item_id, piece.answer_id, piece.messages, piece.text, ids)

    def _too_long(self, piece: Piece) -> str | None:
        """Return why an answer does not fit; a text has no more tokens than bytes, so short ones are not counted."""
        if self._window is None or self._server.checks_room:
            return None
        window, room = self._window
        taken = self._answer_tokens(piece.text) if len(piece.text.encode()) > room else 0
        if taken > room:
            return f"answer of {taken} tokens, room for {room}"
        if piece.ids is not None and len(piece.ids) > window:
            return f"{len(piece.ids)} tokens, window of {window}"
        return None

    def _answer_tokens(self, text: str) -> int:
        if self._local:
            return self._local.encoder.answer_tokens(text)
        assert isinstance(self._server, Vllm), "what has a window can count"
        return self._server.answer_tokens(text)

    def _next(self, batches: Iterator[Batch], client: Any) -> Coroutine[Any, Any, list[Score]] | None:
        batch = next(batches, None) if self._spending.left else None
        if batch is None:
            return None
        self._spending.calls += any(isinstance(one, Piece) for one in batch)
        return self._scores(client, batch)

    async def _scores(self, client: Any, batch: Batch) -> list[Score]:
        pieces = [one for one in batch if isinstance(one, Piece)]
        known = [one for one in batch if isinstance(one, Score)]
        return known + (await self._exchange(client, pieces) if pieces else [])

    async def _exchange(self, client: Any, pieces: Sequence[Piece]) -> list[Score]:
        """Ask for some answers; if one of several may be the cause of a failure, they are asked for one by one."""
        import openai

        status: Status = "error"
        try:
            reply = await self._post(client, pieces)
            self._spending.add(_usage(reply))
            return self._server.read(reply, pieces)
        except ModelError:
            raise
        except TimeoutError:
            cause, alone = f"timed out: no whole reply within {self._options.endpoint.read_seconds:g} s", True
        except (openai.OpenAIError, ValueError, RecursionError) as bad:
            cause, status = self._options.hide(cause_of(bad)), status_of(bad)
            if is_fatal(bad):
                raise ModelError(f"model '{self.name}': {cause}") from None
            alone = not isinstance(bad, openai.APIConnectionError)
        if alone and len(pieces) > 1:
            self._spending.calls += len(pieces)
            return [score for piece in pieces for score in await self._exchange(client, [piece])]
        return [Score(piece.answer_id, status, None, cause) for piece in pieces]

    async def _post(self, client: Any, pieces: Sequence[Piece]) -> Any:
        """Return a reply; once the server is gone, it is not waited for again until it is back."""
        import openai

        retries = 0 if self._gone else self._options.endpoint.retries
        items = ", ".join(dict.fromkeys(p.item_id for p in pieces))
        path, body = self._server.facts.endpoint, self._server.body(pieces)
        async with patience(self._options.endpoint.read_seconds, partial(self._tell, items)):
            try:
                reply = await client.post(path, cast_to=object, body=body, options={"max_retries": retries})
            except openai.APITimeoutError:
                raise TimeoutError from None
            except openai.APIConnectionError:
                self._gone = True
                raise
        self._gone = False
        return reply

    def _tell(self, items: str, text: str) -> None:
        if self._told:
            self._told(items, text)


def _usage(reply: Any) -> dict[str, int] | None:
    found = reply.get("usage") if isinstance(reply, dict) else None
    counts = found if isinstance(found, dict) else {}
    return {k: v for k, v in counts.items() if isinstance(v, int)} or None


def _tail(text: str) -> str:
    """Return the last part of what looks like a path, anything else as it is."""
    return PurePath(text).name if text.startswith(("/", "~", ".")) else text
