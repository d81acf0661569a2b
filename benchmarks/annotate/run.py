"""How fast the pages of a large study are: 50 annotators × 3,000 items, a third of them answered, a real server.

    python benchmarks/annotate/run.py [--quick] [--json]

`alone` asks one request after the other; `together` has all annotators at once, each with a request a second. Times
are seen by the client, on the same machine.
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from shape import WORK, generated

PEOPLE, ITEMS, SECONDS = 50, 3000, 20
JSON = {"Accept": "application/json"}
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
FIELDS = {f"{name}_{seat}": "4" for seat in "ab" for name in ("factuality", "relevance", "helpfulness")}


def make(people: int, items: int) -> tuple[Path, float | None]:
    """Return a study in which everybody has every item and a third of the answers are in."""
    from palate.annotate import Wanted, open_study

    folder = WORK / f"study-{people}-{items}"
    start, fresh = time.perf_counter(), not folder.exists()
    names = [f"w{k}" for k in range(people)]
    with open_study(folder, Wanted(str(generated(items)), overlap=people), names) as study:
        made = time.perf_counter() - start if fresh else None
        db = study.book._writer
        db.execute("BEGIN")
        for table in ("step", "value", "log"):
            db.execute(f"DELETE FROM {table}")
        db.execute("UPDATE task SET done = 0")
        db.execute("UPDATE task SET done = 1 WHERE number <= ?", (items // 3,))
        db.execute(
            "INSERT INTO step SELECT annotator, number, 1, '2026-01-01', '2026-01-01', 0, '{}' FROM task "
            "WHERE number <= ?",
            (items // 3,),
        )
        for field, value in {**FIELDS, "preference": "a"}.items():
            db.execute(
                "INSERT INTO value SELECT annotator, number, 1, ?, ? FROM task WHERE number <= ?",
                (field, value, items // 3),
            )
        db.execute("COMMIT")
    return folder, made


class Person:
    """Opens items and gives ratings, and keeps the time of each."""

    def __init__(self, link: str, first: int) -> None:
        self.client = httpx.Client()
        self.link = link
        self.number = first
        self.opened: list[float] = []
        self.saved: list[float] = []

    def timed(self, into: list[float], send: Any) -> Any:
        start = time.perf_counter()
        reply = send()
        into.append(time.perf_counter() - start)
        assert reply.status_code == 200, reply.text
        return reply

    def item(self, pause: float = 0) -> None:
        url = f"{self.link}/item/{self.number}/1"
        page = self.timed(self.opened, lambda: self.client.get(url)).text
        found = TOKEN.search(page)
        assert found
        for field, value in FIELDS.items():
            time.sleep(pause)
            data = {"form_token": found[1], field: value}
            self.timed(self.saved, partial(self.client.post, f"{url}/save", data=data, headers=JSON))
        self.number += 1


def together(people: list[Person], seconds: float) -> None:
    end = time.monotonic() + seconds

    def work(person: Person, delay: float) -> None:
        time.sleep(delay)
        while time.monotonic() < end:
            person.item(pause=1)
            time.sleep(1)

    threads = [threading.Thread(target=work, args=(p, k / len(people))) for k, p in enumerate(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def told(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=20)
    return {
        "n": len(times),
        "median_ms": round(1000 * statistics.median(times), 1),
        "p95_ms": round(1000 * cuts[18], 1),
        "max_ms": round(1000 * max(times), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 annotators × 100 items, 5 s")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    people, items, seconds = (5, 100, 5) if args.quick else (PEOPLE, ITEMS, SECONDS)
    folder, made = make(people, items)
    command = [sys.executable, "-m", "palate", "annotate", "serve", "--out", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        links = [server.stdout.readline().rstrip("\n").split("\t")[1] for _ in range(people)]
        alone = Person(links[0], items // 3 + 1)
        for _ in range(5 if args.quick else 200):
            alone.item()
        crowd = [Person(link, items // 2) for link in links]
        together(crowd, seconds)
        listed: list[float] = []
        for start in range(1, items + 1, 200):
            alone.timed(listed, lambda start=start: alone.client.get(f"{links[0]}/items?start={start}"))
        memory = next(
            int(line.split()[1]) // 1024
            for line in Path(f"/proc/{server.pid}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        )
    finally:
        server.kill()
        server.wait()
    result = {
        "machine": platform.platform(),
        "people": people,
        "items": items,
        "made_seconds": made and round(made, 1),
        "alone": {"open": told(alone.opened), "save": told(alone.saved)},
        "together": {
            "open": told([t for p in crowd for t in p.opened]),
            "save": told([t for p in crowd for t in p.saved]),
        },
        "list_ms": round(1000 * max(listed), 1),
        "server_mb": memory,
    }
    print(json.dumps(result, indent=None if args.json else 2))


if __name__ == "__main__":
    main()
