"""Several people at once, through a real server: no answer is lost, and exports see whole steps only."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from annotators import STEP_ONE, STEP_TWO, Person, served
from palate.annotate import export_rows


@pytest.fixture
def serve_six(tmp_path: Path) -> Any:
    args = ("--data", "sample", "--annotators", "ana,ben,cy", "--limit", "25", "--out", "study", "--port", "0")
    with served(*args, cwd=tmp_path) as (_, links):
        yield links


def work(link: str, shift: int) -> int:
    count = 0
    with httpx.Client() as client:
        person = Person(client, link)
        for number in range(1, 26):
            for k, (field, value) in enumerate(STEP_ONE.items()):
                given = str(1 + (number + k + shift) % 5) if value.isdigit() else value
                assert person.save(number, **{field: given}).status_code == 200
                count += 1
            kept = {f: str(1 + (number + k + shift) % 5) for k, (f, v) in enumerate(STEP_ONE.items()) if v.isdigit()}
            assert person.post(number, 1, "finish", kept).status_code == 303
            assert person.post(number, 2, "finish", STEP_TWO).status_code == 303
    return count


def exports(folder: Path, out: Path, stop: list[bool]) -> list[int]:
    sizes = []
    while not stop:
        export_rows(folder, out)
        found = [json.loads(line) for line in out.read_text().splitlines()]
        sizes.append(len(found))
        for row in found:
            needed = ("factuality", "relevance", "helpfulness") if row["step"] == 1 else ("fit",)
            assert all(set(row[name]) == {"chosen", "rejected"} for name in needed)
    return sizes


def test_three_at_once_lose_nothing_while_rows_are_exported(serve_six: dict[str, str], tmp_path: Path) -> None:
    stop: list[bool] = []
    with ThreadPoolExecutor(4) as pool:
        watcher = pool.submit(exports, tmp_path / "study", tmp_path / "during.jsonl", stop)
        people = [pool.submit(work, link, 2 * k) for k, link in enumerate(serve_six.values())]
        try:
            assert [p.result() for p in people] == [25 * len(STEP_ONE)] * 3
        finally:
            stop.append(True)
        sizes = watcher.result()
    assert sizes == sorted(sizes)
    export_rows(tmp_path / "study", tmp_path / "rows.jsonl")
    found = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(found) == len({(r["item_id"], r["annotator"], r["step"]) for r in found}) == 3 * 25 * 2
    orders = {name: 2 * k for k, name in enumerate(serve_six)}
    ones = [r for r in found if r["step"] == 1]
    for name, shift in orders.items():
        mine = [r for r in ones if r["annotator"] == name]
        for number, row in enumerate(mine, 1):
            a, b = row["seats"]
            got = [row[c][side] for side in (a, b) for c in ("factuality", "relevance", "helpfulness")]
            places = [
                list(STEP_ONE).index(f"{c}_{s}") for s in "ab" for c in ("factuality", "relevance", "helpfulness")
            ]
            assert got == [1 + (number + k + shift) % 5 for k in places]


def test_the_same_annotator_in_two_windows(serve_six: dict[str, str], tmp_path: Path) -> None:
    def click(k: int) -> int:
        with httpx.Client() as client:
            person = Person(client, serve_six["ana"])
            return int(person.save(1, **{("factuality_a", "relevance_b")[k % 2]: str(1 + k % 5)}).status_code)

    with ThreadPoolExecutor(10) as pool:
        assert list(pool.map(click, range(50))) == [200] * 50
    import sqlite3

    with sqlite3.connect(tmp_path / "study" / "study.db") as db:
        (saves,) = db.execute("SELECT count(*) FROM log WHERE event = 'saved'").fetchone()
    assert saves == 50
