"""What is served: a scorer, the view it is asked through, and what may be told of it."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from palate.errors import ItemError, PalateError
from palate.records import Item, Message, Post, Query, Score
from palate.rewards import AskedModel, Scorer, open_model
from palate.rewards.local.scorer import LocalScorer
from palate.rewards.wire import ScoreItem, WireError
from palate.views import Budget, View, fit, look

VIEWS = ("question", "history", "plan")
CONTEXTS = {"history": "history", "plan": "plan"}


@dataclass(frozen=True, slots=True)
class Served:
    """A loaded scorer.

    `view` is that of every item with a `question`; None takes each as it is sent. `budget` counts with a tokenizer of
    its own, so that texts can be counted while others are scored.
    """

    text: str
    scorer: Scorer
    view: str | None
    budget: Budget | None

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the numbers, without paths of this machine."""
        found: dict[str, Any] = json.loads(json.dumps(_bare(dict(self.scorer.identity)), default=str))
        return found

    @property
    def again(self) -> bool:
        """Whether a second one can be opened beside it: not where that would load weights again."""
        return not isinstance(self.scorer, LocalScorer)

    def reopen(self) -> Scorer:
        """Return another scorer of the same string."""
        return _open(self.text)

    def query(self, item: ScoreItem, place: str) -> Query:
        """Return the query of an item, with all of its context.

        Raises:
            WireError: the item has not what the view reads.
        """
        if item.messages is not None:
            return as_sent([Message(t.role, t.content) for t in item.messages])
        view = self._view_of(item, place)
        question = Item("", None, "all", None, (Message("user", item.question or ""),), ())
        if view == "history":
            posts = [Post(str(k), text) for k, text in enumerate(item.history or ())]
            return look(question, View("history"), posts=posts)
        if view == "plan":
            return look(question, View("plan"), plan=item.plan or ())
        return look(question, View("question"))

    def fitted(self, query: Query) -> Query | Score:
        """Return the query with as much of its context as fits, or why it cannot be scored."""
        if self.scorer.needs_context and query.context is None:
            return Score("", "no_context", None, "this model scores what a context adds: send 'history' or 'plan'")
        if self.budget is None or query.context is None:
            return query
        try:
            found = fit(query, self.budget.prompt, self.budget.count)
        except ItemError as bad:
            return Score("", "error", None, str(bad))
        return found or Score("", "overlong", None, "the question alone does not fit into the window")

    def _view_of(self, item: ScoreItem, place: str) -> str:
        given = next((name for name in CONTEXTS if getattr(item, name) is not None), "question")
        if self.view not in (None, given):
            wanted = f"a '{CONTEXTS[self.view]}' is needed" if self.view in CONTEXTS else f"'{given}' is not read"
            field = f"{place}.{CONTEXTS.get(self.view or '', given)}"
            fault = f"this server shows the view '{self.view}': {wanted}"
            raise WireError(f"{field}: {fault}", {field: fault})
        return given


def as_sent(turns: Sequence[Message]) -> Query:
    """Return chat turns as a query, with nothing known of a context."""
    return Query("", "sent", tuple(turns), tuple(turns), None)


def open_served(model: str, view: str | None = None) -> Served:
    """Return a loaded model.

    Raises:
        PalateError: not a scorer, a view that a server cannot show, or a model that cannot be used.
    """
    name = _view(view)
    scorer = _open(model)
    if scorer.needs_context and name == "question":
        raise PalateError(f"model '{model}' scores what a context adds, so the view 'question' has nothing to score.")
    scorer.prepare()
    return Served(model, scorer, name, _counter(scorer))


def _open(model: str) -> Scorer:
    found = open_model(model)
    if isinstance(found, AskedModel):
        raise PalateError(
            f"model '{model}': a language model that is asked in words gives no score of one answer by itself.\n"
            "Serve a scorer: hf/…, likelihood/…, dpo/…, http/… or builtin/…"
        )
    return found


def _view(text: str | None) -> str | None:
    if text is None:
        return None
    view = View.parse(text)
    if view.name == "oracle":
        raise PalateError("view 'oracle': a reward server never sees a rubric. Use history, plan or question.")
    if text not in VIEWS:
        raise PalateError(
            f"view '{text}': a server shows what each request brings, so a view takes no options here: "
            f"{', '.join(VIEWS)}."
        )
    return view.name


def _counter(scorer: Scorer) -> Budget | None:
    """Return the budget with a copy of the tokenizer, since one cannot be used by two threads at once."""
    if isinstance(scorer, LocalScorer):
        budget = scorer.budget
        return Budget(budget.prompt, budget.answer, copy.deepcopy(scorer.encoder).count)
    return scorer.budget


def _bare(value: Any) -> Any:
    """Return `value` with what looks like a path cut to its last part."""
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_bare(v) for v in value]
    looks = isinstance(value, str) and value.startswith(("/", "~", "."))
    return PurePath(value).name if looks else value
