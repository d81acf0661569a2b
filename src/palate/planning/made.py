"""`plan_all`: a folder of plans as one call, and its scorecard with both controls."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from palate.data import open_data
from palate.errors import DataError, SpecError, did_you_mean
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.planning.book import Seen
from palate.planning.folder import OTHER, PLANS, Planning, Whose, make_plans
from palate.planning.match import Matcher
from palate.planning.registry import make_planner
from palate.planning.scorecard import Scorecard, make_matchers, score_plans
from palate.records import STATUSES
from palate.retrieval import make_retriever
from palate.retrieval.stored import Stored
from palate.store import RowLog, RunFolder
from palate.views import Looker

QUESTION_ONLY = "question-only"
SCORECARD = "scorecard.json"


def plan_all(
    data: str,
    planner: str,
    out: Path,
    *,
    retriever: str = "bm25",
    k: int = 10,
    user: str = "own",
    seed: int = 0,
    limit: int | None = None,
    retry: Sequence[str] = (),
    base_url: str | None = None,
    spending: Spending | None = None,
    score: bool = False,
    encoder: str | None = None,
    seen: Seen | None = None,
    told: Told | None = None,
) -> tuple[dict[str, Any], Scorecard | None]:
    """Make the plans of a data set in `out`; return their record and, if asked for, the scorecard.

    The controls' plans go to `out/question-only` and `out/other`, the scorecard to `out/scorecard.json`.

    Args:
        data: a data string.
        planner: `keyphrase`, `question-only`, `llm/<model>`.
        out: a folder; plans that are there are not made again.
        retriever: ranks the posts.
        k: how many of them the planner reads.
        user: `own` or `other`.
        seed: chooses donors.
        limit: only the first items.
        retry: statuses to do again besides `error`.
        base_url: the server of `llm/…`.
        spending: limits of calls and tokens.
        score: compare with the rubrics.
        encoder: matches by embedding too.
        seen: gets (folder, done, of how many, done before).
        told: gets (item id, what happened) for every retry.

    Raises:
        PalateError: bad strings, data or models.
    """
    _check(user, retry, score, encoder)
    opened, ranker = open_data(data), make_retriever(retriever)
    if isinstance(ranker, Stored):
        ranker.check(opened.digest, k)
    made = make_planner(planner, opened, base_url, spending, told)
    planning = Planning(opened, Looker(opened, ranker), made, ranker, k, cast(Whose, user), seed)
    ids = opened.ids[:limit]
    if score and not any(opened.entries[i].aspects for i in ids):
        raise DataError(f"{opened.name}: no item has a rubric, so plans cannot be scored.")
    matchers = make_matchers(encoder) if score else ()
    record = make_plans(planning, out, ids, retry=retry, told=_telling(seen, out))
    return record, _scored(planning, out, ids, matchers, retry, seen) if score else None


def _scored(
    planning: Planning,
    out: Path,
    ids: Sequence[str],
    matchers: Sequence[Matcher],
    retry: Sequence[str],
    seen: Seen | None,
) -> Scorecard:
    """Make the controls' plans, score all, and write the scorecard."""
    control = make_planner(QUESTION_ONLY, planning.data)
    others = {QUESTION_ONLY: replace(planning, planner=control), OTHER: replace(planning, user="other")}
    rows = {}
    for name, other in others.items():
        make_plans(other, out / name, ids, retry=retry, told=_telling(seen, out / name))
        rows[name] = RowLog(out / name / PLANS, mend=False).rows
    card = score_plans(planning.data, ids, RowLog(out / PLANS, mend=False).rows, rows, matchers)
    RunFolder(out).write(SCORECARD, card.as_dict())
    return card


def _check(user: str, retry: Sequence[str], score: bool, encoder: str | None) -> None:
    if user not in get_args(Whose):
        raise SpecError(f"user '{user}': plans are made for own or other; user=none shows filler as long as the own.")
    if score and user != "own":
        raise SpecError("the scorecard is of own plans; those of another user's posts are its control.")
    if encoder and not score:
        raise SpecError("an encoder is for the scorecard. Add --score.")
    for status in retry:
        if status not in STATUSES:
            raise SpecError(f"retry '{status}': no such status.{did_you_mean(status, STATUSES)}")


def _telling(seen: Seen | None, folder: Path) -> Callable[[int, int, int], None] | None:
    return (lambda *now: seen(f"plans--{folder.name}", *now)) if seen else None
