"""The server under load and in trouble: many clients, bad requests, hung calls, a full queue, a signal."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from places import ROOT
from serve.site import Client, Reply, item, running

CLIENTS, REQUESTS, EACH = 64, 2_000, 3
GROWTH = 24 * 2**20
SLOW = """
import sys
from serve.site import known
from palate.serve import Settings, serve
known()
serve("fake/letters", None, Settings(port=0, seconds=20), told=lambda line: print(line, file=sys.stderr, flush=True))
"""
BAD: tuple[tuple[str, Any], ...] = (
    ("422", lambda name: b'{"items": ['),
    ("422", lambda name: {"items": [{"id": name, "question": "Q?"}]}),
    ("422", lambda name: {"items": [item(name, "x"), item(name, "y")]}),
    ("error", lambda name: {"items": [item(name, "nan")]}),
    ("error", lambda name: {"items": [item(name, f"boom {name}")]}),
)


class Process:
    """A server in a process of its own."""

    def __init__(self, *command: str) -> None:
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
        self.process = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True, env=env)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert " at http://" in line, line
        self.client = Client(line.partition("http://")[2].split()[0])

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.communicate()


def one(client: Client, number: int) -> tuple[int, str, Reply]:
    """Send request `number`; every twentieth is bad in one of five ways."""
    kind = "good" if number % 20 else BAD[number // 20 % len(BAD)][0]
    if kind == "good":
        items = [
            item(f"r{number}-{k}", "x" * (number + k + 1), question=f"Q{number % 7}?", history=[f"Post {number % 5}"])
            for k in range(EACH)
        ]
        return number, kind, client.score(*items)
    return number, kind, client.post("/score", BAD[number // 20 % len(BAD)][1](f"r{number}"))


def check(number: int, kind: str, reply: Reply) -> None:
    if kind == "422":
        assert reply.status == 422
        assert reply.body["error"]["message"]
        return
    assert reply.status == 200, reply.body
    if kind == "error":
        (found,) = reply.body["results"]
        assert (found["id"], found["status"], found["score"]) == (f"r{number}", "error", None)
        return
    assert [(r["id"], r["score"]) for r in reply.body["results"]] == [
        (f"r{number}-{k}", float(number + k + 1)) for k in range(EACH)
    ]


def test_64_clients_2000_requests_5_percent_bad_and_memory_stays_flat() -> None:
    with Process("-c", SLOW) as site, ThreadPoolExecutor(CLIENTS) as pool:
        memory = psutil.Process(site.process.pid).memory_info
        for number, kind, reply in pool.map(lambda n: one(site.client, n), range(REQUESTS)):
            check(number, kind, reply)
        first = memory().rss
        found = list(pool.map(lambda n: one(site.client, n), range(REQUESTS)))
        grown = memory().rss - first
        for number, kind, reply in found:
            check(number, kind, reply)
        kinds = Counter(kind for _, kind, _ in found)
        assert kinds == {"good": 1900, "422": 60, "error": 40}
        assert grown < GROWTH, f"{grown / 2**20:.0f} MiB more after the second {REQUESTS} requests"
        assert site.client.meter('palate_items_total{status="ok"}') == 2 * 1900 * EACH
        assert site.client.meter('palate_items_total{status="error"}') == 2 * 40
        assert site.client.meter("palate_items_pending") == 0


def test_answers_of_different_requests_to_one_query_share_a_group() -> None:
    with running(gather=0.5) as client, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda k: client.score(item("same-id", "x" * (k + 1))), range(8)))
        assert [r.results["same-id"]["score"] for r in replies] == [k + 1.0 for k in range(8)]
        assert client.meter("palate_groups_total") == 1


def test_one_slow_answer_times_out_and_the_other_seven_come_back() -> None:
    with running(seconds=2.0) as client:
        texts = [f"text {k}" for k in range(8)]
        texts[3] = "sleep 6"
        began = time.monotonic()
        found = client.score(*(item(str(k), t) for k, t in enumerate(texts))).results
        assert time.monotonic() - began < 5
        assert {k: r["status"] for k, r in found.items() if r["status"] != "ok"} == {"3": "error"}
        assert "timed out" in found["3"]["error"]
        assert all(found[str(k)]["score"] == 6 for k in range(8) if k != 3)
        assert client.meter("palate_timeouts_total") == 1
        assert client.meter("palate_hung_threads") == 1
        assert client.get("/health").status == 200
        assert client.score(item("a", "abc")).results["a"]["score"] == 3


def test_a_call_that_hangs_does_not_hold_the_next_ones() -> None:
    with running(seconds=2.0) as client, ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(client.score, item("s", f"sleep {5 + k}", question=f"S{k}?")) for k in range(2)]
        time.sleep(0.2)
        found = client.score(item("a", "abc")).results["a"]
        assert [f.result().results["s"]["status"] for f in slow] == ["error", "error"]
        assert client.meter("palate_hung_threads") >= 1
        assert found["score"] == 3
        assert client.score(item("b", "abcd")).results["b"]["score"] == 4


def test_a_stuck_server_says_so_and_ends_what_waits_as_errors(monkeypatch: Any) -> None:
    monkeypatch.setattr("palate.serve.served.Served.again", property(lambda self: False))
    with running(seconds=1.0) as client:
        assert client.score(item("s", "sleep 4")).results["s"]["status"] == "error"
        time.sleep(0.1)
        health = client.get("/health")
        assert (health.status, health.headers["retry-after"]) == (503, "1")
        assert "stuck" in health.body["error"]["message"]
        found = client.score(item("a", "abc")).results["a"]
        assert (found["status"], found["score"]) == ("error", None)
        assert "stuck" in found["error"]
        time.sleep(2.5)
        assert client.get("/health").status == 200
        assert client.score(item("a", "abc")).results["a"]["score"] == 3


def test_a_full_queue_is_503_with_retry_after_and_what_was_taken_is_scored() -> None:
    with running("fake/letters?pause=0.5", queue=8) as client, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: client.score(*(item(f"{n}-{k}", "abc") for k in range(4))), range(8)))
        codes = Counter(r.status for r in replies)
        assert set(codes) == {200, 503}
        assert codes[200] >= 2
        assert all(r.headers["retry-after"] == "1" for r in replies if r.status == 503)
        assert all(s["score"] == 3 for r in replies if r.status == 200 for s in r.body["results"])
        assert client.score(*(item(str(k), "x") for k in range(9))).status == 413
        assert client.score(item("a", "abc")).status == 200


def test_sigterm_finishes_what_is_in_flight_turns_new_work_away_and_ends_with_0() -> None:
    with Process("-c", SLOW) as site, ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(site.client.score, item(str(k), "sleep 0.5")) for k in range(6)]
        time.sleep(0.5)
        site.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        late = site.client.score(item("late", "abc"))
        assert late.status == 503
        assert "draining" in late.body["error"]["message"]
        assert late.headers["retry-after"] == "1"
        assert site.client.get("/health").status == 503
        assert [f.result().results[str(k)]["score"] for k, f in enumerate(slow)] == [9.0] * 6
        assert site.process.wait(timeout=20) == 0


def test_logs_hold_no_text_of_requests(tmp_path: Path) -> None:
    with Process("-c", SLOW) as site:
        secret = "boom marmalade-secret"
        site.client.score(item("a", secret), item("b", "marmalade-secret"))
        site.client.post("/score", b'{"items": "marmalade-secret"}')
        site.client.post("/get_reward", {"query": ["marmalade-secret boom"], "prompts": ["marmalade-secret "]})
        site.process.send_signal(signal.SIGTERM)
        assert site.process.stderr is not None
        told = site.process.stderr.read()
        assert site.process.wait(timeout=20) == 0
    assert "stopped" in told
    assert "marmalade" not in told


def test_the_command_refuses_what_it_cannot_serve_with_one_message_and_code_2(tmp_path: Path) -> None:
    for args, words in (
        (("--model", "builtin/length", "--host", "0.0.0.0"), "token"),
        (("--model", "builtin/length", "--view", "oracle"), "rubric"),
        (("--model", "builtin/lenght"), "Did you mean 'length'"),
    ):
        command = [sys.executable, "-m", "palate", "serve", *args, "--port", "0", "--token-env", "NO_SUCH_TOKEN"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_the_command_serves_and_stops_at_a_signal() -> None:
    with Process("-m", "palate", "serve", "--model", "builtin/length", "--port", "0") as site:
        assert site.client.score(item("a", "abc")).results["a"]["score"] == 3
        assert json.loads(json.dumps(site.client.get("/health").body))["model"]["id"] == "length"
        site.process.send_signal(signal.SIGINT)
        assert site.process.wait(timeout=20) == 0
