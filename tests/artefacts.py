"""A generated benchmark without artefacts, and its artefacts: each a small change of clean rows.

Words are made of syllables. A taste has words of its own; a user's posts use the words of the user's tastes here and
there, the rubric names them in other sentences, and nothing else in an item depends on the user.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
ITEMS = 300
TWINS = 200
TASTES, OWN, POSTS = 60, 3, 10
SYLLABLES = [c + v for c in "bdfgklmnprstv" for v in "aeiou"]


def word(rng: random.Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))


def clean_rows(seed: int, items: int = ITEMS, twins: int = TWINS) -> list[Row]:
    """Return `items` rows, of which `twins` stand in pairs of opposed twins."""
    rng = random.Random(seed)
    common = [word(rng) for _ in range(3000)]
    tastes = [[word(rng) + "x" for _ in range(6)] for _ in range(TASTES)]
    rows: list[Row] = []
    for k in range(items):
        own = rng.sample(tastes, OWN)
        row = {
            "id": f"s{seed}-{k}",
            "user_id": f"s{seed}-u{k}",
            "domain": f"domain-{k // 2 % 3}",
            "date": "2025-06-01",
            "question": text(rng, common, 12).rstrip(".") + "?",
            "profile": posts(rng, common, own, k),
            "rubric_aspects": [aspect(rng, common, taste) for taste in own],
            "narrative": text(rng, common, 30),
            "chosen": text(rng, common, 40),
            "rejected": text(rng, common, 40),
        }
        if k < twins and k % 2:
            one = rows[-1]
            row |= {"question": one["question"], "chosen": one["rejected"], "rejected": one["chosen"]}
            one["twin"], row["twin"] = row["id"], one["id"]
        rows.append(row)
    return rows


def text(rng: random.Random, common: list[str], words: int, also: tuple[str, ...] = ()) -> str:
    found = [*rng.choices(common, k=words - len(also)), *also]
    rng.shuffle(found)
    sentences = [" ".join(found[at : at + 10]).capitalize() + "." for at in range(0, words, 10)]
    return " ".join(sentences)


def posts(rng: random.Random, common: list[str], own: list[list[str]], k: int) -> list[Row]:
    found = []
    for n in range(POSTS):
        also = tuple(rng.sample(rng.choice(own), 2))
        found.append({"id": f"{k}-{n}", "text": text(rng, common, 30, also), "date": f"2025-0{1 + n % 5}-1{n % 9}"})
    return found


def aspect(rng: random.Random, common: list[str], taste: list[str]) -> Row:
    return {
        "aspect": text(rng, common, 4, tuple(rng.sample(taste, 2))),
        "evidence": text(rng, common, 8),
        "reason": text(rng, common, 12, tuple(rng.sample(taste, 3))),
    }


def single(rows: list[Row]) -> list[Row]:
    """Return the rows that have no twin, which can be changed without breaking one."""
    return [r for r in rows if "twin" not in r]


def longer(rows: list[Row]) -> None:
    for row in single(rows)[:80]:
        row["chosen"] += " " + row["chosen"].split(".")[0] + " vonte."


def styled(rows: list[Row]) -> None:
    for row in single(rows)[:80]:
        row["chosen"] = row["chosen"].replace(".", "!")


def on_topic(rows: list[Row]) -> None:
    for row in single(rows)[:80]:
        kept = row["chosen"].split()
        row["chosen"] = " ".join([*row["question"].rstrip("?").split()[::2], *kept[6:]])


def key_in_history(rows: list[Row]) -> None:
    rows[7]["profile"][3]["text"] += " " + rows[7]["rubric_aspects"][1]["reason"]


def key_in_answer(rows: list[Row]) -> None:
    row = single(rows)[0]
    row["chosen"] = row["rubric_aspects"][0]["reason"] + " " + " ".join(row["chosen"].split()[12:])


def key_in_question(rows: list[Row]) -> None:
    row = single(rows)[0]
    row["question"] = row["rubric_aspects"][0]["evidence"].rstrip(".") + "?"


def question_in_history(rows: list[Row]) -> None:
    row = rows[20]
    row["profile"][2]["text"] = row["question"].upper()


def question_nearly_in_history(rows: list[Row]) -> None:
    row = rows[20]
    words = row["question"].split()
    row["profile"][2]["text"] = "Tavo " + " ".join(words[:-1]) + " mira. " + row["profile"][2]["text"]


def answer_in_history(rows: list[Row]) -> None:
    row = rows[30]
    row["profile"][5]["text"] += " " + " ".join(row["chosen"].split()[5:20])


def from_later(rows: list[Row]) -> None:
    rows[11]["profile"][0]["date"] = "2025-06-02"


def twice(rows: list[Row]) -> None:
    rows[-1] |= {k: single(rows)[0][k] for k in ("user_id", "question", "chosen", "rejected")}


def contradiction(rows: list[Row]) -> None:
    one = single(rows)[0]
    rows[-1] |= {"user_id": one["user_id"], "question": one["question"]}
    rows[-1] |= {"chosen": one["rejected"], "rejected": one["chosen"]}


def nearly_equal(rows: list[Row]) -> None:
    row = single(rows)[0]
    row["rejected"] = row["chosen"] + " Indeed."


def same_id(rows: list[Row]) -> None:
    rows[-1]["id"] = rows[-2]["id"]


def empty_answer(rows: list[Row]) -> None:
    rows[-1]["rejected"] = " "


def tiny_domain(rows: list[Row]) -> None:
    for row in single(rows)[:5]:
        row["domain"] = "rare"


def one_user(rows: list[Row]) -> None:
    for row in single(rows)[:40]:
        row["user_id"] = "everybody"


def cold(rows: list[Row]) -> None:
    for row in rows[:60]:
        row["profile"] = []


def shuffled_histories(rows: list[Row]) -> None:
    histories = [row["profile"] for row in rows]
    for k, row in enumerate(rows):
        row["profile"] = histories[(k + 101) % len(rows)]


def newest_only(rows: list[Row]) -> None:
    for row in rows:
        named = {w.strip(".").lower() for a in row["rubric_aspects"] for w in (a["aspect"] + a["reason"]).split()}
        row["profile"][-1]["text"] += " " + " ".join(sorted(named))


def unnamed_twins(rows: list[Row]) -> None:
    one = single(rows)[0]
    rows[-1] |= {"question": one["question"], "chosen": one["rejected"], "rejected": one["chosen"]}


def false_twins(rows: list[Row]) -> None:
    rows[1]["rejected"] += " Milo."


@dataclass(frozen=True)
class Artefact:
    """A change of clean rows, the check that has to find it, and others that it trips with good reason."""

    change: Callable[[list[Row]], None]
    check: str
    also: frozenset[str] = frozenset()


ARTEFACTS = (
    Artefact(longer, "length", frozenset({"style"})),
    Artefact(styled, "style"),
    Artefact(on_topic, "lexical", frozenset({"style"})),
    Artefact(key_in_history, "leak_history"),
    Artefact(key_in_answer, "leak_answer"),
    Artefact(key_in_question, "leak_question"),
    Artefact(question_in_history, "repeated_question"),
    Artefact(question_nearly_in_history, "repeated_question"),
    Artefact(answer_in_history, "repeated_answer"),
    Artefact(from_later, "later_posts"),
    Artefact(twice, "duplicates"),
    Artefact(contradiction, "contradictions"),
    Artefact(nearly_equal, "near_equal"),
    Artefact(same_id, "records"),
    Artefact(empty_answer, "records"),
    Artefact(tiny_domain, "domains"),
    Artefact(one_user, "users"),
    Artefact(cold, "cold_start"),
    Artefact(shuffled_histories, "inferability"),
    Artefact(newest_only, "key_place"),
    Artefact(unnamed_twins, "twins"),
    Artefact(false_twins, "twins", frozenset({"records", "twin_probes"})),
)
