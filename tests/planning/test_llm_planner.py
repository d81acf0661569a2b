"""The planner behind a server: every exchange kept, replies read strictly, nothing asked twice."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from palate import evaluate
from palate.errors import RunError, Stopped
from palate.evaluation import estimate
from palate.llm.client import Spending
from palate.planning.made import plan_all
from rows import make_row

pytest.importorskip("openai")
GOOD = '{"aspects": ["Beans", "Little work", "On the roof"]}'
Reply = Callable[[str], str | tuple[str, str] | int]


@contextmanager
def serving(reply: Reply) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the address of a server and the requests it gets; `reply` turns a prompt into what it says."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            found = reply(requests[-1]["messages"][0]["content"])
            if isinstance(found, int):
                self.send(found, {"error": {"message": "no"}})
                return
            text, reason = found if isinstance(found, tuple) else (found, "stop")
            choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
            whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            self.send(200, whole | {"usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}})

        def send(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def made(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in lines(folder / "plans.jsonl")}


def test_the_prompt_has_question_and_posts_and_every_exchange_is_kept(write: Any, tmp_path: Path) -> None:
    path = write(make_row(1), make_row(2))
    with serving(lambda _: GOOD) as (url, requests):
        plan_all(str(path), "llm/m", tmp_path / "plans", base_url=url)
    assert "day 1?" in requests[0]["messages"][0]["content"] or "day 2?" in requests[0]["messages"][0]["content"]
    assert all("on my roof" in r["messages"][0]["content"] for r in requests)
    assert made(tmp_path / "plans")["q1"]["aspects"] == ["Beans", "Little work", "On the roof"]
    calls = lines(tmp_path / "plans" / "calls.jsonl")
    assert {c["item"] for c in calls} == {"q1", "q2"}
    assert all(c["text"] == GOOD and c["prompt"] and c["usage"]["prompt_tokens"] == 5 for c in calls)
    record = json.loads((tmp_path / "plans" / "plan.json").read_text())
    assert record["planner"]["name"] == "llm/m"
    assert len(record["planner"]["prompt"]) == 16
    assert record["environment"]["base_url"].startswith("http://127.0.0.1")
    assert (record["status"], record["plans"]) == ("complete", {"ok": 2})


def test_a_plan_is_the_same_when_the_key_is_replaced_by_another_items(write: Any, tmp_path: Path) -> None:
    key = ("rubric_aspects", "narrative")
    rows = [
        make_row(1),
        make_row(2, rubric_aspects=[{"aspect": "ZZ", "evidence": "YY", "reason": "XX"}], narrative="WW"),
    ]
    swapped = [rows[0] | {k: rows[1][k] for k in key}, rows[1] | {k: rows[0][k] for k in key}]
    paths = [str(write(*r, name=name)) for r, name in ((rows, "a.jsonl"), (swapped, "b.jsonl"))]
    with serving(lambda _: GOOD) as (url, requests):
        for planner in ("keyphrase", "question-only", "llm/m"):
            for user in ("own", "other"):
                outs = [tmp_path / f"{planner.partition('/')[0]}-{user}-{Path(p).stem}" for p in paths]
                for path, out in zip(paths, outs, strict=True):
                    plan_all(path, planner, out, user=user, base_url=url)
                assert made(outs[0]) == made(outs[1])
    asked = sorted(r["messages"][0]["content"] for r in requests)
    assert asked[::2] == asked[1::2]
    assert not any(secret in text for text in asked for secret in ("ZZ", "YY", "XX", "WW", "They have plenty"))


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("This person likes beans.", "unparsed"),
        ('{"aspects": []}', "unparsed"),
        ("", "unparsed"),
        ("<think>They like beans", "truncated"),
        (('{"aspects": ["Be', "length"), "truncated"),
        (("", "content_filter"), "refused"),
        (400, "error"),
    ],
)
def test_a_reply_without_aspects_is_a_status_and_never_an_empty_plan(
    reply: Any, status: str, write: Any, tmp_path: Path
) -> None:
    path = str(write(make_row(1), make_row(2)))
    with serving(lambda prompt: reply if "day 1?" in prompt else GOOD) as (url, _):
        result = evaluate(path, "builtin/lexical", "plan?planner=llm/m", tmp_path, base_url=url)
    row = made(next(tmp_path.glob("plans--llm*")))["q1"]
    assert (row["status"], row["aspects"]) == (status, [])
    verdict = result.runs[0].rows["q1"]
    assert (verdict["status"], verdict["outcome"]) == ("no_context", None)
    assert status in verdict["notes"][0]
    assert result.runs[0].metrics["coverage"] == 0.5


def test_a_cut_reply_is_asked_once_more_with_more_room(write: Any, tmp_path: Path) -> None:
    replies = iter([("[", "length"), (GOOD, "stop")])
    with serving(lambda _: next(replies)) as (url, requests):
        plan_all(str(write(make_row(1))), "llm/m?max_tokens=20", tmp_path / "plans", base_url=url)
    assert [r["max_tokens"] for r in requests] == [20, 80]
    assert made(tmp_path / "plans")["q1"]["status"] == "ok"
    assert len(lines(tmp_path / "plans" / "calls.jsonl")) == 2


def test_only_what_is_missing_or_failed_is_asked_again(write: Any, tmp_path: Path) -> None:
    path, out = str(write(*(make_row(k) for k in (1, 2, 3)))), tmp_path / "plans"
    said: dict[str, Any] = {"day 1?": 400, "day 2?": "prose", "day 3?": GOOD}
    with serving(lambda prompt: next(v for k, v in said.items() if k in prompt)) as (url, requests):
        plan_all(path, "llm/m", out, base_url=url, limit=2)
        assert len(requests) == 2
        said["day 1?"] = GOOD
        plan_all(path, "llm/m", out, base_url=url)
        assert len(requests) == 4
        said["day 2?"] = GOOD
        plan_all(path, "llm/m", out, base_url=url)
        assert len(requests) == 4
        record, _ = plan_all(path, "llm/m", out, base_url=url, retry=["unparsed"])
    assert len(requests) == 5
    assert record["plans"] == {"ok": 3}


def test_a_reply_that_was_kept_is_not_asked_for_again_when_its_row_is_lost(write: Any, tmp_path: Path) -> None:
    path, out = str(write(make_row(1))), tmp_path / "plans"
    with serving(lambda _: GOOD) as (url, requests):
        plan_all(path, "llm/m", out, base_url=url)
        (out / "plans.jsonl").write_text('{"id": "q1", "sta')
        plan_all(path, "llm/m", out, base_url=url)
    assert len(requests) == 1
    assert made(out)["q1"]["status"] == "ok"


def test_the_address_decides_nothing_and_another_setting_is_refused(write: Any, tmp_path: Path) -> None:
    path, out = str(write(make_row(1))), tmp_path / "plans"
    with serving(lambda _: GOOD) as (url, requests):
        plan_all(path, f"llm/m?base_url={url}", out)
        plan_all(path, "llm/m", out, base_url="http://127.0.0.1:9/v1")
        assert len(requests) == 1
        with pytest.raises(RunError, match="another planner"):
            plan_all(path, "llm/m?max_tokens=7", out, base_url=url)


def test_a_limit_of_calls_stops_and_the_same_command_goes_on(write: Any, tmp_path: Path) -> None:
    path, out = str(write(*(make_row(k) for k in (1, 2, 3)))), tmp_path / "plans"
    with serving(lambda _: GOOD) as (url, requests):
        with pytest.raises(Stopped):
            plan_all(path, "llm/m", out, base_url=url, spending=Spending(max_calls=2))
        assert json.loads((out / "plan.json").read_text())["status"] == "stopped"
        plan_all(path, "llm/m", out, base_url=url)
    assert len(requests) == 3


def test_a_planner_string_in_a_view_has_its_address_encoded(write: Any, tmp_path: Path) -> None:
    path = str(write(make_row(1), make_row(2)))
    with serving(lambda _: GOOD) as (url, _):
        view = f"plan?planner=llm/m%3Fmax_tokens=99%26base_url={url}"
        run = evaluate(path, "builtin/lexical", view, tmp_path).run("builtin/lexical", view)
    assert run.view == "plan?planner=llm/m%3Fmax_tokens%3D99"
    assert url not in json.dumps(run.record)
    assert run.record["config"]["planner"]["max_tokens"] == 99


def test_an_estimate_counts_the_planners_calls_and_those_that_read_the_plans(write: Any, tmp_path: Path) -> None:
    path = str(write(make_row(1), make_row(2)))
    with serving(lambda _: GOOD) as (url, requests):
        told = estimate(path, "judge/m", "plan?planner=llm/m", tmp_path, base_url=url)
    assert requests == []
    assert list(tmp_path.glob("plans--*")) == []
    assert [(r["model"], r["calls"]) for r in told["runs"]] == [("llm/m", 2), ("judge/m", 4)]


def test_work_that_ended_after_a_cut_goes_on_with_more_room(write: Any, tmp_path: Path) -> None:
    data = str(write(make_row(1)))
    with serving(lambda _: ("{", "length")) as (url, requests):
        with pytest.raises(Stopped):
            plan_all(data, "llm/m?max_tokens=50", tmp_path / "plans", base_url=url, spending=Spending(max_calls=1))
        assert [r["max_tokens"] for r in requests] == [50]
    with serving(lambda _: GOOD) as (url, requests):
        record, _ = plan_all(data, "llm/m?max_tokens=50", tmp_path / "plans", base_url=url)
        assert [r["max_tokens"] for r in requests] == [200]
    assert record["plans"] == {"ok": 1}
