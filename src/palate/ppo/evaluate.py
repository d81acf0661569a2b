"""`evaluate`: did training make the policy's answers better? Both policies answer test questions, a grader marks them.

The trained policy is best given as the folder of its training: then view, k, form and length of answers are those it
was trained with, and anything else is refused.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from palate.data import Dataset
from palate.errors import DataError, RunError, SpecError
from palate.grading import Task, grade_id, make_grader, make_grades
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.metrics.paired import Difference, difference
from palate.ppo.curve import BOARD
from palate.ppo.policy import Policy, open_policy
from palate.ppo.prompts import Source, make_prompts, open_source
from palate.ppo.sample import sample
from palate.ppo.settings import NotNegative, Whole, checked
from palate.ppo.train import POLICY, quiet
from palate.records import Answer
from palate.spec import Spec, model_name, short_model
from palate.store import RunFolder
from palate.store.folder import RUN, digest_of

SIDES = ("before", "after")
GRADES = "grades"
RANKED_BY = ("id", "revision", "pooling", "similarity")
Row = Mapping[str, Any]
Seen = Callable[[str, int, int, int], None]


@dataclass(frozen=True, slots=True)
class Judging:
    """How two policies are compared.

    Attributes:
        before: the untrained policy, as for training.
        after: the folder of a training, or a policy.
        data: test questions with rubrics.
        grader: `llm/<model>`.
        view: what the policies see; that of the training if `after` is one.
        retriever: ranks the posts.
        limit: only the first items.
        response: the longest answer in tokens; that of the training if `after` is one.
        temperature: of sampling; 0 takes the likeliest token each time.
        batch: questions answered at once.
        seed: of sampling and of the interval.
    """

    before: str
    after: str
    data: str
    grader: str
    view: str | None = None
    retriever: str = "bm25"
    limit: Whole | None = None
    response: Whole | None = None
    temperature: NotNegative = 0.0
    batch: Whole = 8
    seed: int = 0

    __pydantic_config__ = ConfigDict(extra="forbid")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Judging":
        """Return checked settings from the names that the command line has.

        Raises:
            SpecError: an unknown setting, one that is missing, or a value that is not possible.
        """
        return checked(TypeAdapter(cls), {k.removeprefix("policy_"): v for k, v in given.items()}, "ppo evaluate")


@dataclass(frozen=True, slots=True)
class _Side:
    """One policy's answers and grades, by id of the answer."""

    policy: Policy
    answers: Mapping[str, Row]
    grades: Mapping[str, Row]


def evaluate(
    judging: Judging,
    out: Path,
    *,
    base_url: str | None = None,
    spending: Spending | None = None,
    seen: Seen | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """Compare a policy before and after training; return the figures, which also go to `out/metrics.json`.

    `out/before` and `out/after` get `samples.jsonl` and `grades/`; `out/board.json` the rows. What is there is not
    done again. The difference is that of the mean grades over the items graded on both sides, paired by item.

    Args:
        judging: how.
        out: the folder.
        base_url: the grader's server.
        spending: limits of calls and tokens.
        seen: gets (what, done, of how many, done before).
        told: gets (item, what happened) for every retry.

    Raises:
        SpecError: settings other than those of the training.
        RunError: the folder holds another comparison.
        Stopped: a limit is reached.
    """
    run = Path(judging.after).expanduser()
    config = _training(run)
    view, response, policies = _policies(judging, run, config)
    source = open_source(judging.data, view, judging.retriever, judging.limit, out)
    _check_source(config, source)
    grader = make_grader(judging.grader, base_url, spending, told)
    with RunFolder(out) as folder:
        _hold(folder, judging, source, policies, dict(grader.identity), response)
        sides = {}
        for name, policy in zip(SIDES, policies, strict=True):
            answers = _answers(judging, source, policy, out / name, _telling(seen, f"{name}: answers"))
            names = [grade_id(a, 0) for a in answers]
            make = _tasks(source.data, answers)
            telling = _telling(seen, f"{name}: grades")
            found = make_grades(grader, out / name / GRADES, source.data.digest, names, make, (), telling)
            sides[name] = _Side(policy, answers, {str(row["answer"]): row for row in found.values()})
        figures = _figures(sides["before"], sides["after"], source, judging.seed)
        if config:  # the model folders of all trainings are called `policy`
            figures["after"]["policy"] = run.resolve().name
        folder.write_metrics(figures)
        folder.write(BOARD, {"format": 1, "rows": _board(figures, judging.grader, config, source)})
        folder.write_record((folder.record() or {}) | {"status": "done"})
    return figures


def _policies(judging: Judging, run: Path, config: Mapping[str, Any] | None) -> tuple[str, int, tuple[Policy, Policy]]:
    """Return view, longest answer and both policies.

    Raises:
        SpecError: what is asked for differs from the training.
    """
    if config is None:
        view, response = judging.view or "history", judging.response or 256
        return view, response, (open_policy(judging.before, response), open_policy(judging.after, response))
    view, response = str(config["source"]["view"]), int(config["response"])
    trained: Mapping[str, object] = {"view": view, "response": response}
    for name, value in trained.items():
        asked = getattr(judging, name)
        if asked is not None and asked != value:
            raise SpecError(f"ppo evaluate: {name} = {asked}, but '{run}' was trained with {value}. Leave it out.")
    began, before = config["policy"], open_policy(judging.before, response)
    if before.identity["weights"] != began["weights"]:
        raise SpecError(f"ppo evaluate: '{judging.before}' is not the policy that '{run}' began from ({began['id']}).")
    form = {name: str(began[name]) for name in ("template", "window")}
    if {name: str(before.identity[name]) for name in form} != form:
        raise SpecError(f"ppo evaluate: '{judging.before}': '{run}' was trained with {form}. Add them after '?'.")
    return view, response, (before, open_policy(str(Spec(str(run / POLICY), None, form)), response))


def _training(folder: Path) -> dict[str, Any] | None:
    """Return the settings of a finished training in `folder`; None if it holds none.

    Raises:
        RunError: the training is not finished.
    """
    if not (folder / RUN).is_file():
        return None
    record = RunFolder(folder).record() or {}
    if record.get("status") != "done" or "method" not in record.get("config", {}):
        raise RunError(f"{folder}: no finished training. Give the command of its training again first.")
    return dict(record["config"])


def _check_source(config: Mapping[str, Any] | None, source: Source) -> None:
    if config is None:
        return
    trained, here = config["source"]["retriever"] or {}, source.identity["retriever"] or {}
    differ = [k for k in RANKED_BY if trained.get(k) != here.get(k)]
    if differ:
        raise SpecError(
            f"ppo evaluate: the training ranked posts with {trained.get('id')}, not {here.get('id')} ({differ[0]} "
            "differs). Give its --retriever."
        )


def _hold(
    folder: RunFolder, judging: Judging, source: Source, policies: Sequence[Policy], grader: Any, response: int
) -> None:
    """Write what the comparison is, or make sure that the folder holds the same one."""
    sampling = {"temperature": judging.temperature, "batch": judging.batch, "seed": judging.seed}
    config = {
        "before": policies[0].identity,
        "after": policies[1].identity,
        "source": source.identity,
        "grader": grader,
        "sampling": sampling | {"response": response, "limit": judging.limit},
    }
    config = json.loads(json.dumps(config))
    old = (folder.record() or {}).get("config")
    if old is not None and old != config:
        names = ", ".join(k for k in config if old.get(k) != config[k])
        raise RunError(f"{folder.path}: holds another comparison; these differ: {names}. Choose another --out.")
    folder.write_record({"status": "running", "digest": digest_of(config)[:16], "config": config})


def _answers(
    judging: Judging, source: Source, policy: Policy, folder: Path, seen: Callable[[int, int, int], None] | None
) -> Mapping[str, Row]:
    prompts = list(make_prompts(source, lambda query: policy.prompt(query.messages), policy.budget, None))
    with quiet():
        return sample(
            policy,
            prompts,
            folder,
            temperature=judging.temperature,
            batch=judging.batch,
            seed=judging.seed,
            seen=seen,
        )


def _tasks(data: Dataset, answers: Mapping[str, Row]) -> Callable[[str], Task]:
    of = {grade_id(name, 0): name for name in answers}

    def make(name: str) -> Task:
        row = answers[of[name]]
        item_id = str(row["item_id"])
        answer = Answer(of[name], item_id, str(row["text"]), "response")
        return Task(data.get(item_id), data.key(item_id), answer)

    return make


def _telling(seen: Seen | None, what: str) -> Callable[[int, int, int], None] | None:
    return (lambda *now: seen(what, *now)) if seen else None


def _figures(before: _Side, after: _Side, source: Source, seed: int) -> dict[str, Any]:
    ids = list(source.ids)
    names = [f"{i}@0" for i in ids]
    units = [source.data.entries[i].unit for i in ids]
    found = difference(_values(after, names), _values(before, names), units, _unit(units), seed)
    if not found.common:
        raise DataError(
            f"{source.data.name}: no answer is graded on both sides. {dict(_statuses(before))} {dict(_statuses(after))}"
        )
    return {
        "n": len(ids),
        "before": _side(before, names),
        "after": _side(after, names),
        "difference": asdict(found),
    }


def _unit(units: Sequence[str]) -> str:
    return "users" if len(set(units)) < len(units) else "items"


def _values(side: _Side, names: Sequence[str]) -> list[float | None]:
    return [side.grades[name]["value"] if name in side.grades else None for name in names]


def _statuses(side: _Side) -> Counter[str]:
    return Counter(str(row["status"]) for row in side.grades.values())


def _side(side: _Side, names: Sequence[str]) -> dict[str, Any]:
    values = [v for v in _values(side, names) if v is not None]
    lengths = [row["tokens"] for row in side.answers.values()]
    return {
        "policy": side.policy.name,
        "answers": len(side.answers),
        "graded": len(values),
        "coverage": len(values) / len(names),
        "mean": sum(values) / len(values) if values else None,
        "statuses": dict(_statuses(side)),
        "cut": sum(row["status"] == "truncated" for row in side.answers.values()),
        "mean_tokens": sum(lengths) / len(lengths),
    }


def _board(
    figures: Mapping[str, Any], grader: str, config: Mapping[str, Any] | None, source: Source
) -> list[dict[str, Any]]:
    told = {"data": source.data.name, "view": str(source.view), "grader": grader, "of": figures["n"]}
    # Downstream results are ranked by reward model, so a trained policy goes by the name of what paid it.
    names = [figures[name]["policy"] for name in SIDES]
    if config:
        names[1] = short_model(model_name(config["reward"]))
        told |= {"method": config["method"], "trained_from": names[0]}
    rows = []
    for system, name in zip(names, SIDES, strict=True):
        side = figures[name]
        about = {**told, "side": name, "coverage": side["coverage"]}
        rows.append(_row(system, "ppo/grade", side["mean"], None, side["graded"], about))
    gap = Difference(**figures["difference"])
    about = {**told, "p": gap.p, "method": gap.method, "bounds": list(gap.bounds) if gap.bounds else None}
    rows.append(_row(names[1], "ppo/gain", gap.value, gap.ci95, gap.common, about))
    return rows


def _row(system: str, metric: str, value: Any, ci: Any, n: int, source: Row) -> dict[str, Any]:
    interval = list(ci) if ci else None
    return {"system": system, "metric": metric, "value": value, "ci95": interval, "n": n, "source": dict(source)}
