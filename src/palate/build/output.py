"""The finished data set: a Parquet file a domain, and rows in the published fields with `user_id` and `twin`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from palate.build.making import Making
from palate.build.twins import Couple
from palate.errors import MissingExtra
from palate.records import Item, Key
from palate.spec import slug

BATCH = 64
OURS = ("generator", "judge")
POST = ("id", "category", "text", "date", "prompt", "rejected")
RARE = ("date", "prompt", "rejected")


def require() -> None:
    """Make sure that Parquet can be written.

    Raises:
        MissingExtra: the library is not installed.
    """
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise MissingExtra("writing Parquet", "hub")


@dataclass(slots=True)
class Tally:
    """Figures of what was written, by domain."""

    items: Counter[str] = field(default_factory=Counter)
    users: set[str] = field(default_factory=set)
    unnamed: int = 0
    twins: int = 0
    aspects: int = 0
    posts: int = 0
    words: Counter[str] = field(default_factory=Counter)
    longer: Counter[str] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row."""
        domain = row["domain"]
        self.items[domain] += 1
        if row["user_id"] is None:
            self.unnamed += 1
        else:
            self.users.add(row["user_id"])
        self.twins += row["twin"] is not None
        self.aspects += len(row["rubric_aspects"])
        self.posts += len(row["profile"])
        chosen, rejected = len(row["chosen"]), len(row["rejected"])
        for side in ("chosen", "rejected"):
            self.words[side] += len(row[side].split())
        self.longer[domain] += 1 + (chosen > rejected) - (chosen < rejected)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON; `longer_is_chosen` counts equal lengths half."""
        n = self.items.total()
        return {
            "items": n,
            "users": len(self.users) or None,
            "items_without_user": self.unnamed,
            "items_in_twins": self.twins,
            "aspects_mean": round(self.aspects / n, 2) if n else None,
            "posts_mean": round(self.posts / n, 1) if n else None,
            "words_mean": {side: round(total / n, 1) for side, total in self.words.items()} if n else None,
            "domains": dict(self.items),
            "longer_is_chosen": {d: round(self.longer[d] / 2 / c, 4) for d, c in self.items.items()},
        }


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration of the data set: its name, the domain it holds, and its file below the folder."""

    name: str
    domain: str

    @property
    def path(self) -> str:
        """The file of its split."""
        return f"data/{self.name}/test.parquet"


def configs_of(domains: Iterable[str]) -> list[Config]:
    """Return a configuration a domain; names are made fit for folders and stay apart."""
    found: dict[str, Config] = {}
    for domain in dict.fromkeys(domains):
        name = slug(domain)
        while name.lower() in found:
            name += "_"
        found[name.lower()] = Config(name, domain)
    return list(found.values())


def rows_of(making: Making, domain: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of all pairs that passed (of one domain); twins, who are of one, stand next to each other."""
    couples = {c.name: c for c in making.matched} if making.setup.twins else {}
    for name in making.names:
        made = making.pairs.rows.get(name)
        first = couples[name].first if name in couples else name
        elsewhere = domain is not None and making.setup.data.entries[first].domain != domain
        if elsewhere or made is None or made["status"] != "ok":
            continue
        if name in couples:
            yield from _twins(making, couples[name], made["answers"])
        else:
            yield _row(making, making.setup.data.get(name), making.key_of(name), made["answers"])


def write_data(folder: Path, making: Making) -> tuple[Tally, list[Config]]:
    """Write a Parquet file a domain below `folder`, each in one step; return figures and configurations."""
    data, tally = making.setup.data, Tally()
    configs = configs_of(data.entries[i].domain for i in making.setup.ids)
    kept = []
    columns = _columns(making)
    for config in configs:
        if _write(folder / config.path, rows_of(making, config.domain), columns, tally.add):
            kept.append(config)
    return tally, kept


def _twins(making: Making, couple: Couple, answers: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield two rows with one question and the same answers, swapped; each with its own user, history and key."""
    first, second = (making.setup.data.get(i) for i in (couple.first, couple.second))
    other = second.id if second.messages == first.messages else couple.name
    swapped = {"chosen": answers["rejected"], "rejected": answers["chosen"]}
    own = _row(making, first, making.key_of(first.id), answers) | {"twin": other}
    yield own
    theirs = _row(making, second, making.key_of(second.id), swapped)
    asked = {name: own.get(name) for name in ("question", "messages", "category")}
    yield theirs | asked | {"id": other, "twin": first.id}


def _row(making: Making, item: Item, key: Key, answers: Mapping[str, str]) -> dict[str, Any]:
    judge = making.setup.judge
    many = len(item.messages) > 1
    return {
        "id": item.id,
        "user_id": item.user_id,
        "twin": None,
        "domain": item.domain,
        "category": item.category,
        "question": None if many else item.question,
        "messages": [{"role": m.role, "content": m.content} for m in item.messages] if many else None,
        "persona": item.persona,
        "profile": [{name: getattr(post, name) for name in POST} for post in item.posts],
        "rubric_aspects": [{"aspect": a.aspect, "evidence": a.evidence, "reason": a.reason} for a in key.aspects],
        "narrative": key.narrative,
        "chosen": answers["chosen"],
        "rejected": answers["rejected"],
        "generator": making.setup.writer.how.model,
        "judge": judge.how.model if judge is not None else None,
    }


def _columns(making: Making) -> set[str]:
    """Return the rare columns, and rare fields of posts, that some row holds something in."""
    rare = ("messages", "persona", "category", "twin", "judge")
    found: set[str] = set()
    for row in rows_of(making):
        found.update(name for name in rare if row[name] is not None)
        found.update(f"post {n}" for n in RARE if f"post {n}" not in found and any(p[n] for p in row["profile"]))
    return found


def _schema(columns: set[str]) -> Any:
    """Return the types of the file; they are declared, so that no domain's first rows decide them."""
    import pyarrow as pa

    text = pa.string()
    post = pa.struct([(n, text) for n in POST if n not in RARE or f"post {n}" in columns])
    aspect = pa.struct([(n, text) for n in ("aspect", "evidence", "reason")])
    turn = pa.struct([("role", text), ("content", text)])
    lists = {"profile": pa.list_(post), "rubric_aspects": pa.list_(aspect), "messages": pa.list_(turn)}
    always = ("id", "user_id", "question", "profile", "rubric_aspects", "narrative", "chosen", "rejected")
    order = (*always[:2], "twin", "domain", "category", "question", "messages", "persona", *always[3:], *OURS)
    held = {*always, "domain", "generator"} | columns
    return pa.schema([(name, lists.get(name, text)) for name in order if name in held])


def _write(path: Path, rows: Iterator[dict[str, Any]], columns: set[str], seen: Callable[[Any], None]) -> int:
    """Write rows to a file that appears when it is whole; return how many. No rows, no file, and no old one either."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    schema = _schema(columns)
    batch = list(islice(rows, BATCH))
    if not batch:
        path.unlink(missing_ok=True)
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    count = 0
    with ParquetWriter(temporary, schema) as writer:
        while batch:
            writer.write_table(pa.Table.from_pylist(_fitted(batch, schema), schema=schema))
            for row in batch:
                seen(row)
            count += len(batch)
            batch = list(islice(rows, BATCH))
    temporary.replace(path)
    return count


def _fitted(batch: Sequence[dict[str, Any]], schema: Any) -> list[dict[str, Any]]:
    names = set(schema.names)
    posts = {f.name for f in schema.field("profile").type.value_type}
    return [
        {k: v for k, v in row.items() if k in names}
        | {"profile": [{k: v for k, v in p.items() if k in posts} for p in row["profile"]]}
        for row in batch
    ]
