"""`build`: a benchmark from users' questions, histories and rubrics as one call."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from palate.build import keys, twins
from palate.build.card import make_card
from palate.build.estimate import count_calls
from palate.build.making import WORK, Making, Seen, Setup
from palate.build.models import JUDGE, WRITER, check_judge, open_served
from palate.build.output import Config, Tally, require, write_data
from palate.build.units import prompt_digests
from palate.data import open_data
from palate.errors import DataError, RunError, SpecError, Stopped
from palate.grading import gates, judged, language
from palate.llm.client import Spending
from palate.llm.transport import Told
from palate.retrieval import Retriever, make_retriever
from palate.retrieval.stored import Stored
from palate.store import RunFolder, digest_of, dump
from palate.views import Looker

RECORD, DROPPED, CARD = "build.json", "dropped.jsonl", "README.md"
FORMAT = 1
FEW, SOLVED = 10, 0.9


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build: its folder, its record (`.build/build.json`), and how many items the data set has."""

    folder: Path
    record: Mapping[str, Any]
    items: int

    @property
    def failure(self) -> str | None:
        """What a server said of the first pair that it failed on, if any."""
        with self.dropped.open(encoding="utf-8") as handle:
            rows = map(json.loads, handle)
            return next((str(row["reason"]) for row in rows if row["status"] == "error"), None)

    @property
    def dropped(self) -> Path:
        """The file that says of every item and pair that is missing why."""
        return self.folder / WORK / DROPPED


@dataclass(frozen=True, slots=True)
class _Job:
    setup: Setup
    retriever: Retriever
    licence: str | None
    warnings: tuple[str, ...]

    @property
    def config(self) -> dict[str, Any]:
        """All that decides the rows; a folder holds rows of one config."""
        setup = self.setup
        prompts = prompt_digests()
        prompts |= {keys.PROMPT.name: keys.PROMPT.digest} if setup.derive else {}
        prompts |= {twins.PROMPT.name: twins.PROMPT.digest} if setup.twins else {}
        if setup.judge is not None:
            prompts |= {p.name: p.digest for p in (judged.QUALITY, judged.ASPECT)}
        return {
            "format": FORMAT,
            "data_digest": setup.data.digest,
            "generator": setup.writer.identity,
            "judge": setup.judge.identity if setup.judge else None,
            "twins": setup.twins,
            "keys_from_narratives": setup.derive,
            "k": setup.k,
            "retriever": dict(self.retriever.identity),
            "prompts": prompts,
            "thresholds": gates.thresholds() | {"judged": judged.thresholds()},
        }


def build(
    data: str | Path,
    out: str | Path,
    llm: str,
    judge: str | None = None,
    *,
    twins: bool = False,
    keys_from_narratives: bool = False,
    k: int = 10,
    retriever: str = "bm25",
    limit: int | None = None,
    base_url: str | None = None,
    judge_base_url: str | None = None,
    tries: int = 3,
    licence: str | None = None,
    fresh: bool = False,
    spending: Spending | None = None,
    seen: Seen | None = None,
    told: Told | None = None,
) -> Built:
    """Make pairs that differ in what one user wants, and write them as a data set.

    The same call goes on where it was stopped; a reply that is there is never asked for again.

    Args:
        data: a data string; items need a rubric, or a narrative with `keys_from_narratives`.
        out: a folder of its own; `data/<domain>/test.parquet` and a card come there, the work's files into `.build`.
        llm: the generator, `<model>[?max_tokens=…&temperature=…&base_url=…]`.
        judge: another model that decides the judged gates; without it they are not run.
        twins: match users with opposed rubrics and write two answers that swap roles.
        keys_from_narratives: derive aspects, with literal evidence, for items that have a narrative alone.
        k: posts that the generator reads.
        retriever: ranks them.
        limit: only the first items; raising it extends the build.
        base_url: the generator's server, and the judge's unless it has one of its own.
        judge_base_url: the judge's server.
        tries: how often a pair is made before it is dropped; raising it goes on with those that were dropped.
        licence: of the resulting data; unknown if it is not stated.
        fresh: start anew; the old work is kept aside.
        spending: limits of calls and tokens.
        seen: gets (stage, done, of how many, done before).
        told: gets (item id, what happened) for every retry.

    Raises:
        PalateError: bad strings, data or models.
        Stopped: a limit is reached, or it was interrupted.
    """
    spent = spending or Spending()
    servers = base_url, judge_base_url
    job = _job(data, llm, judge, twins, keys_from_narratives, k, retriever, limit, servers, tries, licence, spent, told)
    require()
    language.require()
    folder = Path(out)
    _check_folder(folder)
    with RunFolder(folder / WORK) as run:
        if fresh:
            _set_aside(run.path)
        record = _begin(job, run)
        making = Making(job.setup, run.path, mend=True)
        try:
            making.run(seen)
        except BaseException as end:
            run.write(RECORD, record | {"status": "stopped"})
            if isinstance(end, KeyboardInterrupt):
                raise Stopped(f"stopped: {folder}. The same command goes on from here.") from None
            raise
        return _finish(folder, run, making, record)


def estimate(
    data: str | Path,
    out: str | Path,
    llm: str,
    judge: str | None = None,
    *,
    twins: bool = False,
    keys_from_narratives: bool = False,
    k: int = 10,
    retriever: str = "bm25",
    limit: int | None = None,
    tries: int = 3,
) -> dict[str, Any]:
    """Return how many calls and about how many tokens `build` would still take; nothing is sent or written.

    Raises:
        PalateError: bad strings, data or models.
    """
    _check_folder(Path(out))
    servers = None, None
    spent = Spending()
    job = _job(data, llm, judge, twins, keys_from_narratives, k, retriever, limit, servers, tries, None, spent, None)
    return count_calls(Making(job.setup, Path(out) / WORK, mend=False)) | {"warnings": list(job.warnings)}


def _job(
    data: str | Path,
    llm: str,
    judge: str | None,
    twins: bool,
    derive: bool,
    k: int,
    retriever: str,
    limit: int | None,
    servers: tuple[str | None, str | None],
    tries: int,
    licence: str | None,
    spending: Spending,
    told: Told | None,
) -> _Job:
    """Open and check everything that is named."""
    if tries < 1 or k < 1:
        raise SpecError("tries and k must be whole numbers from 1 up.")
    writer = open_served(llm, WRITER, servers[0], spending, told)
    judging = open_served(judge, JUDGE, servers[1] or servers[0], spending, told) if judge else None
    warning = check_judge(writer.how.model, judging.how.model) if judging else None
    opened, ranker = open_data(str(data)), make_retriever(retriever)
    if isinstance(ranker, Stored):
        ranker.check(opened.digest, k)
    ids = tuple(opened.ids[:limit])
    setup = Setup(opened, Looker(opened, ranker), ids, writer, judging, k, tries, twins, derive)
    _check_keys(setup)
    return _Job(setup, ranker, licence, (warning,) if warning else ())


def _check_keys(setup: Setup) -> None:
    """Make sure that some item has a rubric, or a narrative that one may be derived from."""
    held = keys.Keys(setup.data, {}, setup.derive)
    reasons = Counter(held.of(item_id).reason for item_id in setup.ids)
    if None not in reasons and not held.to_derive(setup.ids):
        raise DataError(f"{setup.data.name}: nothing to build from: {reasons.most_common(1)[0][0]}.")


def _check_folder(folder: Path) -> None:
    """Make sure that `folder` is new, empty or a build's: data beside ours would be read as ours."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: there is a file of that name; a folder is needed. Choose another --out.")
    if folder.exists() and not (folder / WORK).is_dir() and any(folder.iterdir()):
        raise RunError(f"{folder}: holds other files. Choose a new or empty folder.")


def _set_aside(work: Path) -> None:
    number = 1 + len(list(work.glob("old-*")))
    held = [p for p in work.iterdir() if p.is_file() and p.suffix in (".json", ".jsonl")]
    for path in held:
        (work / f"old-{number}").mkdir(exist_ok=True)
        path.rename(work / f"old-{number}" / path.name)


def _begin(job: _Job, run: RunFolder) -> dict[str, Any]:
    """Return the record of the build; another one's folder is refused."""
    old, config = run.read(RECORD) or {}, job.config
    differ = [name for name, value in config.items() if old and old.get(name) != value]
    if differ:
        raise RunError(f"{run.path}: holds pairs made with another {', '.join(differ)}. Use another --out, or --fresh.")
    setup = job.setup
    models = [setup.writer, *([setup.judge] if setup.judge else [])]
    record = {
        "status": "running",
        "digest": digest_of(config),
        **config,
        "data": setup.data.name,
        "limit": len(setup.ids),
        "tries": setup.tries,
        "licence": job.licence,
        "warnings": list(job.warnings),
        "started": old.get("started") or _now(),
        "finished": None,
        "environment": {name: version(name) for name in ("palate", "openai", "py3langid")}
        | {"servers": {m.role: m.client.endpoint.shown for m in models}},
    }
    for model in models:
        _ = model.client.endpoint.key
    run.write(RECORD, record)
    return record


def _finish(folder: Path, run: RunFolder, making: Making, record: dict[str, Any]) -> Built:
    """Write data, card, the list of what is missing, and the record."""
    dropped = list(_dropped(making))
    text = "".join(dump(row) + "\n" for row in dropped)
    (run.path / DROPPED).write_text(text, encoding="utf-8")
    tally, configs = write_data(folder, making)
    statuses = Counter(making.pairs.rows[n]["status"] for n in making.names)
    counts = {
        "items read": len(making.setup.ids),
        "items skipped": sum(row["status"] == "skipped" for row in dropped),
        "aspects refused": sum(len(w.refused) for w in making.usable.values()),
        "pairs tried": len(making.names),
        "pairs passed": statuses["ok"],
        "pairs dropped": statuses["dropped"],
        "pairs with an error": statuses["error"],
    }
    record = record | {
        "status": "complete",
        "finished": _now(),
        "counts": counts,
        "gates": _gate_counts(making.pairs.rows[n] for n in making.names),
        "statistics": tally.as_dict(),
        "warnings": [*record["warnings"], *_unequal(tally)],
        "configs": [{"name": c.name, "domain": c.domain} for c in configs],
    }
    run.write(RECORD, record)
    write_card(folder)
    return Built(folder, record, tally.items.total())


def _unequal(tally: Tally) -> Iterable[str]:
    """Yield a warning for each domain that the length of the answers nearly solves."""
    for domain, share in tally.as_dict()["longer_is_chosen"].items():
        if tally.items[domain] >= FEW and not 1 - SOLVED < share < SOLVED:
            side = "longer" if share > 0.5 else "shorter"
            yield f"domain '{domain}': taking the {side} answer solves {max(share, 1 - share):.0%} of the pairs"


def write_card(folder: Path, verdict: str | None = None) -> None:
    """Write the card of a finished build, with what an audit found if it is given (Markdown).

    Without any item there is no data set, and none is described.

    Raises:
        RunError: no finished build is there.
    """
    record = RunFolder(folder / WORK).read(RECORD)
    if record is None or record["status"] != "complete":
        raise RunError(f"{folder}: no finished build. Finish it: palate build --out {folder}")
    configs = [Config(**c) for c in record["configs"]]
    if not configs:
        (folder / CARD).unlink(missing_ok=True)
        return
    (folder / CARD).write_text(make_card(record, configs, verdict), encoding="utf-8")


def _dropped(making: Making) -> Iterable[dict[str, Any]]:
    """Yield what is missing and why: items that cannot be used, aspects refused, users unmatched, pairs dropped."""
    used = {i for c in making.matched for i in (c.first, c.second)} if making.setup.twins else set(making.names)
    for item_id, wanted in making.usable.items():
        refused = [{"aspect": title, "reason": why} for title, why in wanted.refused]
        if wanted.key is None:
            yield {"id": item_id, "status": "skipped", "reason": wanted.reason, "aspects_refused": refused}
        elif item_id not in used:
            yield {
                "id": item_id,
                "status": "skipped",
                "reason": _unmatched(making, item_id),
                "aspects_refused": refused,
            }
        elif refused:
            yield {"id": item_id, "status": "kept", "reason": "some aspects refused", "aspects_refused": refused}
    for name in making.names:
        row = making.pairs.rows[name]
        if row["status"] != "ok":
            yield {"id": name, "status": row["status"], "reason": row["reason"], "attempts": row.get("attempts", [])}


def _unmatched(making: Making, item_id: str) -> str:
    found = [making.matches.rows[c.name] for c in making.couples if item_id in (c.first, c.second)]
    if not found:
        return "no other user of its domain asks about the same things"
    verdicts = Counter(str(row["opposed"] or row["status"]) for row in found)
    if verdicts["opposed"]:
        return "the users whose wishes are opposed to its user's are in other pairs"
    return f"no user with opposed wishes: {', '.join(f'{n} {name}' for name, n in verdicts.items())}"


def _gate_counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return for each gate how often it came to which status, over all tries."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        for attempt in row.get("attempts", ()):
            for check in attempt["checks"]:
                counts.setdefault(check["gate"], Counter())[check["status"]] += 1
    return {gate: dict(found) for gate, found in counts.items()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
