"""The client against a server that behaves badly: every failure becomes a call with its cause, and nothing hangs."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import palate
from llm.stub import (
    BROKEN,
    BUSY,
    CUT,
    HUNG,
    TOO_LONG,
    Asked,
    Reply,
    Rule,
    Stub,
    always,
    first_for,
    for_item,
    refusing,
    right,
    score,
    script,
    verdict,
)
from palate.errors import MissingExtra, ModelError, PalateError, Stopped
from palate.llm.client import Ask, Client, Spending
from palate.llm.secrets import mask, masked_url, url_secrets
from palate.llm.transport import Endpoint
from palate.records import Call, Message
from palate.store import RowLog
from rows import make_row

KEY = "sk-TEST-abc123"


def ask(number: int = 1, **changes: Any) -> Ask:
    text = f"What should I cook on day {number}?"
    return replace(Ask(f"k{number}", f"q{number}", (Message("user", text),), 100), **changes)


def client(url: str, told: list[tuple[str, str]] | None = None, **changes: Any) -> Client:
    tell = None if told is None else lambda item, text: told.append((item, text))
    return Client(Endpoint("m", url, **{"read_seconds": 5.0, **changes}), told=tell)


def calls(rule: Rule, *asks: Ask, **changes: Any) -> tuple[dict[str, Call], Stub]:
    with Stub(rule) as server:
        found = {c.key: c for c in client(server.url, **changes).ask(asks or [ask()])}
    return found, server


def one(reply: Reply, **changes: Any) -> Call:
    found, _ = calls(always(reply), **changes)
    return found["k1"]


def test_a_reply_is_kept_whole() -> None:
    call = one(Reply("yes", thoughts="hm"))
    assert (call.status, call.text, call.finish_reason, call.thoughts) == ("ok", "yes", "stop", "hm")
    assert call.usage == {"prompt_tokens": 10, "completion_tokens": 5}
    assert call.note is None


def test_retry_after_is_honoured_and_told() -> None:
    told: list[tuple[str, str]] = []
    with Stub(script(BUSY, BUSY, Reply("yes"))) as server:
        start = time.monotonic()
        found = list(client(server.url, told).ask([ask()]))
        waited = time.monotonic() - start
    assert [c.text for c in found] == ["yes"]
    assert waited >= 0.4
    assert told == [("q1", "tried again after HTTP 429 (Retry-After 0.2)")] * 2
    assert str(found[0].note).startswith("after 2 retries and 0.")
    assert len(server.asked) == 3


def test_waiting_as_told_is_not_counted_as_silence() -> None:
    found, server = calls(script(*[replace(BUSY, headers={"Retry-After": "0.9"})] * 3, Reply("yes")), read_seconds=1.0)
    assert found["k1"].status == "ok"
    assert len(server.asked) == 4


def test_a_server_that_stays_broken_is_an_error_with_its_cause() -> None:
    told: list[tuple[str, str]] = []
    with Stub(always(BROKEN)) as server:
        [call] = client(server.url, told, retries=2).ask([ask()])
    assert call.status == "error"
    assert "InternalServerError" in str(call.note)
    assert "internal error" in str(call.note)
    assert [text for _, text in told] == ["tried again after HTTP 500 (Retry-After 0.01)"] * 2
    assert len(server.asked) == 3


def test_a_prompt_that_is_too_long_has_a_status_of_its_own() -> None:
    found, server = calls(for_item(4, TOO_LONG, always(Reply("yes"))), *(ask(k) for k in range(1, 11)))
    assert [k for k, c in found.items() if c.status != "ok"] == ["k4"]
    assert found["k4"].status == "overlong"
    assert "maximum context length" in str(found["k4"].note)
    assert len(server.of(4)) == 1


def test_a_hung_item_ends_and_the_others_finish() -> None:
    start = time.monotonic()
    found, _ = calls(
        for_item(2, HUNG, always(Reply("yes"))), *(ask(k) for k in range(1, 9)), read_seconds=0.5, connections=2
    )
    assert time.monotonic() - start < 10
    assert {k for k, c in found.items() if c.status == "ok"} == {f"k{k}" for k in range(1, 9)} - {"k2"}
    assert found["k2"].status == "error"
    assert "no whole reply within 1 s" in str(found["k2"].note)


def test_a_reply_that_drips_is_ended_too() -> None:
    start = time.monotonic()
    assert one(Reply("yes", drops=0.1), read_seconds=0.5).status == "error"
    assert time.monotonic() - start < 10


def test_a_slow_reply_is_waited_for() -> None:
    assert one(Reply("yes", delay=0.5)).status == "ok"


def test_a_server_that_is_not_there_is_an_error_of_the_item() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        found = list(client(url, retries=1).ask([ask(1), ask(2)]))
    assert [c.status for c in found] == ["error", "error"]
    assert all("APIConnectionError" in str(c.note) and "ConnectError" in str(c.note) for c in found)
    assert all("after 1 retries" in str(c.note) for c in found)


@pytest.mark.parametrize(
    ("reply", "status", "note"),
    [
        (Reply(""), "unparsed", "the reply is empty"),
        (Reply(None), "unparsed", "the reply is empty"),
        (Reply(" \n"), "unparsed", "the reply is empty"),
        (Reply("", finish="length"), "truncated", "cut at 100 tokens"),
        (Reply("half a", finish="length"), "truncated", "cut at 100 tokens"),
        (Reply(None, thoughts="maybe [[A]]"), "truncated", "thoughts alone"),
        (Reply("", finish="content_filter"), "refused", "content filter"),
        (Reply(status=400, error="blocked by our content management policy"), "refused", "content management"),
        (Reply(status=403, error="flagged by moderation"), "refused", "moderation"),
        (Reply(status=413, error="Request entity too large"), "overlong", "too large"),
        (Reply(raw=b"<html>bad gateway</html>", kind="text/html"), "error", "bad gateway"),
        (Reply(raw=b"<html>bad gateway</html>"), "error", "bad gateway"),
        (Reply(raw=b'{"choices": []}'), "error", "no choices"),
        (Reply(raw=b'{"choices": [{}]}'), "error", "message"),
        (Reply(raw=b'{"choices": null, "error": "busy"}'), "error", "no choices"),
        (Reply(raw=b"[]"), "error", ""),
        (Reply(raw=b""), "error", ""),
        (Reply(status=422, error="no"), "error", "422"),
    ],
)
def test_what_is_no_reply_has_a_status_and_a_cause(reply: Reply, status: str, note: str) -> None:
    call = one(reply)
    assert call.status == status
    assert note in str(call.note)


def test_a_cut_connection_is_tried_again() -> None:
    found, server = calls(script(CUT, Reply("yes")))
    assert found["k1"].text == "yes"
    assert found["k1"].note is not None
    assert len(server.asked) == 2


def test_half_a_character_does_no_harm(tmp_path: Path) -> None:
    raw = Reply("cake").body.replace(b"cake", b"cake \\ud83c")
    call = one(Reply(raw=raw))
    assert call.text == "cake �"
    with RowLog(tmp_path / "calls.jsonl") as log:
        log.append({"id": "x", "text": call.text})


def test_usage_may_be_missing() -> None:
    spending = Spending()
    with Stub(script(Reply("yes", usage=False), Reply("no"))) as server:
        found = list(Client(Endpoint("m", server.url), spending).ask([ask(1), ask(2)]))
    assert sorted(c.usage is None for c in found) == [False, True]
    assert (spending.calls, spending.unknown, spending.prompt_tokens, spending.completion_tokens) == (2, 1, 10, 5)


def test_structured_output_that_is_refused_is_left_out_from_then_on() -> None:
    """All first requests are on their way when the first refusal comes; each of them has to be asked again."""

    def rule(asked: Asked) -> Reply:
        if "response_format" in asked.body:
            return Reply(status=400, error="response_format of type json_schema is not supported", delay=0.2)
        return verdict("A")

    asks = [ask(k, schema={"type": "object"}) for k in range(1, 9)]
    found, server = calls(rule, *asks, connections=4)
    assert {c.status for c in found.values()} == {"ok"}
    refused = [a for a in server.asked if "response_format" in a.body]
    assert len(refused) == 4
    assert len(server.asked) == 12


@pytest.mark.parametrize(
    ("name", "message", "sent"),
    [
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "max_completion_tokens",
        ),
        ("temperature", "'temperature' does not support 0 with this model.", "messages"),
    ],
)
def test_other_fields_are_left_out_too(name: str, message: str, sent: str) -> None:
    found, server = calls(refusing(name, message, always(Reply("yes"))))
    assert found["k1"].status == "ok"
    assert name not in server.asked[-1].body
    assert sent in server.asked[-1].body
    assert len(server.asked) == 2


def test_a_refusal_that_changes_nothing_is_not_repeated() -> None:
    found, server = calls(always(Reply(status=400, error="temperature: unsupported, response_format too, grammar")))
    assert found["k1"].status == "error"
    assert len(server.asked) < 4


def test_a_limit_of_context_that_names_fields_is_no_refusal_of_them() -> None:
    text = "'max_tokens' or 'max_completion_tokens' is too large. This model's maximum context length is 4096."
    found, server = calls(always(Reply(status=400, error=text)))
    assert found["k1"].status == "overlong"
    assert len(server.asked) == 1


def test_log_probabilities_are_kept() -> None:
    call = next(iter(calls(always(Reply("A", logprobs={"A": -0.1, " B": -2.5})), ask(top_logprobs=20))[0].values()))
    assert call.logprobs == {"A": -0.1, " B": -2.5}


def test_fewer_log_probabilities_are_asked_for_if_the_server_wants_that() -> None:
    def rule(asked: Asked) -> Reply:
        if asked.body["top_logprobs"] > 5:
            return Reply(status=400, error="top_logprobs must be at most 5")
        return Reply("A", logprobs={"A": -0.1})

    assert calls(rule, ask(top_logprobs=20))[0]["k1"].logprobs == {"A": -0.1}


@pytest.mark.parametrize("reply", [Reply("A"), Reply(status=400, error="logprobs are not supported")])
def test_a_server_without_log_probabilities_ends_the_work_with_a_hint(reply: Reply) -> None:
    with pytest.raises(ModelError, match=r"no log-probabilities.*mode=text"):
        calls(always(reply), *(ask(k, top_logprobs=20) for k in range(50)), connections=2)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (401, None, "Incorrect API key provided"),
        (403, None, "no access to this model"),
        (404, None, "The model does not exist"),
    ],
)
def test_what_every_call_would_meet_ends_the_work(status: int, code: str | None, message: str) -> None:
    with (
        Stub(always(Reply(status=status, error=message, code=code))) as server,
        pytest.raises(ModelError, match=message) as caught,
    ):
        list(client(server.url, connections=2).ask(ask(k) for k in range(50)))
    assert str(caught.value).count(message) == 1
    assert len(server.asked) <= 4


def test_an_empty_account_ends_the_work() -> None:
    broke = Reply(status=429, error="no money", code="insufficient_quota", headers={"Retry-After": "0.01"})
    with Stub(always(broke)) as server, pytest.raises(ModelError, match="no money"):
        list(client(server.url, retries=1).ask([ask()]))


def test_asks_are_taken_only_as_connections_get_free() -> None:
    taken = done = most = 0

    def asks() -> Iterator[Ask]:
        nonlocal taken
        for k in range(40):
            taken += 1
            yield ask(k)

    with Stub(always(Reply("yes", delay=0.02))) as server:
        for _ in client(server.url, connections=4).ask(asks()):
            most = max(most, taken - done)
            done += 1
    assert done == 40
    assert most <= 4
    assert server.busiest <= 4


def test_a_limit_of_calls_stops_and_says_so() -> None:
    found: list[Call] = []
    with Stub(always(Reply("yes"))) as server:
        stream = Client(Endpoint("m", server.url, connections=2), Spending(max_calls=3)).ask(ask(k) for k in range(9))
        with pytest.raises(Stopped, match="goes on"):
            found.extend(stream)
    assert len(found) == len(server.asked) == 3


def test_a_limit_that_is_just_enough_does_not_stop() -> None:
    with Stub(always(Reply("yes"))) as server:
        found = list(Client(Endpoint("m", server.url), Spending(max_calls=3)).ask(ask(k) for k in range(3)))
    assert len(found) == 3


def test_a_limit_of_tokens_stops() -> None:
    with Stub(always(Reply("yes"))) as server, pytest.raises(Stopped):
        list(Client(Endpoint("m", server.url, connections=1), Spending(max_tokens=30)).ask(ask(k) for k in range(9)))
    assert len(server.asked) == 2


def test_leaving_early_leaves_nothing_running() -> None:
    with Stub(always(Reply("yes", delay=0.1))) as server:
        stream = client(server.url, connections=4).ask(ask(k) for k in range(40))
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        seen = len(server.asked)
        time.sleep(0.3)
    assert len(server.asked) == seen <= 8


def test_without_server_and_key_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="--base-url"):
        _ = Endpoint("m").key


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra, match=r"palate\[llm\]"):
        Client(Endpoint("m", "http://localhost/v1"))


def test_a_query_in_the_address_is_sent_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub(always(Reply("yes"))) as server:
        found = list(client(f"{server.url}?api-version=2").ask([ask()]))
    assert [c.text for c in found] == ["yes"]


def test_masks() -> None:
    assert mask(f"key {KEY} and Bearer abc.def", "hunter2") == "key *** and Bearer ***"
    assert mask("hunter2 said no", "hunter2") == "*** said no"
    assert mask("AIzaSyA1234567890abcdefg") == "***"
    assert masked_url("https://me:pw@host:8000/v1?key=abc#x") == "https://***@host:8000/v1?***"
    assert masked_url("http://[::1]:8000/v1") == "http://[::1]:8000/v1"
    assert masked_url(f"http://host/{KEY}/v1") == "http://host/***/v1"
    assert set(url_secrets("https://me:p%40w@host/v1?key=abc")) == {"me", "p%40w", "p@w", "abc"}
    assert url_secrets(None) == ()


def planted(tmp_path: Path, url: str, *more: str, **env: str) -> str:
    """Run the command with planted secrets; return all that it wrote and said."""
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(make_row(k)) + "\n" for k in (1, 2)))
    args = ["eval", "--data", str(data), "--view", "question", "--out", str(tmp_path / "runs"), *more]
    done = subprocess.run(
        [sys.executable, "-m", "palate", *args, *(("--base-url", url) if url else ())],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENAI_API_KEY": KEY, **env},
        cwd=tmp_path,
        check=False,
    )
    files = [p for p in (tmp_path / "runs").rglob("*") if p.is_file()]
    return "\n".join([done.stdout, done.stderr, *map(str, files), *(p.read_text() for p in files)])


@pytest.mark.parametrize("rule", [right, always(Reply(status=400, error=f"bad key {KEY} pw-hush")), always(TOO_LONG)])
def test_planted_keys_are_found_nowhere(rule: Rule, tmp_path: Path) -> None:
    with Stub(rule) as server:
        url = server.url.replace("127.0.0.1", "someone:pw-hush@127.0.0.1") + "?team=t-999"
        told = planted(tmp_path, url, "--model", "judge/m", "--json", OPENAI_LOG="debug")
    assert server.asked
    assert "/v1?***" in told
    for secret in (KEY, "pw-hush", "t-999"):
        assert secret not in told


def test_an_address_in_the_string_is_masked_in_the_files(tmp_path: Path) -> None:
    with Stub() as server:
        url = server.url.replace("127.0.0.1", "someone:pw-hush@127.0.0.1")
        planted(tmp_path, "", "--model", f"judge/m?base_url={url}")
    files = [p for p in (tmp_path / "runs").rglob("*") if p.is_file()]
    assert len(files) >= 4
    assert not any("pw-hush" in p.read_text() for p in files)


def test_a_refused_key_is_one_message_without_the_key_and_no_folder(tmp_path: Path) -> None:
    with Stub(always(Reply(status=401, error=f"Incorrect API key provided: {KEY}"))) as server:
        told = planted(tmp_path, server.url, "--model", "judge/m")
    assert told.count("Incorrect API key provided: ***") == 1
    assert "Traceback" not in told
    assert KEY not in told
    assert not list((tmp_path / "runs").glob("*"))


def test_a_string_that_cannot_be_read_does_not_show_the_address(tmp_path: Path) -> None:
    told = planted(tmp_path, "", "--model", "judge/m?base_url=http://someone:pw-hush@localhost/v1&moed=x")
    assert "Did you mean 'mode'" in told
    assert "pw-hush" not in told


def test_a_long_reply_is_stored_to_its_last_line(write: Any, tmp_path: Path) -> None:
    text = "word " * 1000 + "\nand then: verdict was {broken"
    with Stub(always(Reply(text))) as server:
        found = palate.evaluate(write(make_row(1)), "judge/m", "question", tmp_path / "runs", base_url=server.url)
    stored = RowLog(found.runs[0].folder / "calls.jsonl").rows
    assert [row["text"] for row in stored.values()] == [text] * 2
    assert found.runs[0].metrics["status"] == {"unparsed": 1}


def test_an_error_of_one_item_leaves_the_others(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k) for k in range(1, 11)))
    with Stub(for_item(4, TOO_LONG)) as server:
        m = palate.evaluate(data, "judge/m", "question", tmp_path / "runs", base_url=server.url).runs[0].metrics
    assert m["status"] == {"ok": 9, "overlong": 1}
    assert (m["accuracy"], m["coverage"]) == (1.0, 0.9)


def test_log_probabilities_that_never_come_leave_no_folder(write: Any, tmp_path: Path) -> None:
    with Stub(always(Reply("A"))) as server, pytest.raises(PalateError, match="mode=text"):
        palate.evaluate(write(make_row(1)), "judge/m?mode=logprob", "question", tmp_path / "runs", base_url=server.url)
    assert not list((tmp_path / "runs").glob("*"))


def test_a_server_that_ignores_the_schema_is_read_in_words_and_asked_anew_on_request(
    write: Any, tmp_path: Path
) -> None:
    data = write(make_row(1))
    with Stub(script(Reply("Let me think about it."), Reply("Hm."), verdict("A"), verdict("B"))) as server:
        kwargs: dict[str, Any] = {"base_url": server.url, "out": tmp_path / "runs"}
        first = palate.evaluate(data, "judge/m?connections=1", "question", **kwargs).runs[0]
        again = palate.evaluate(data, "judge/m?connections=1", "question", **kwargs).runs[0]
        assert len(server.asked) == 2
        last = palate.evaluate(data, "judge/m?connections=1", "question", retry="unparsed", **kwargs).runs[0]
    assert first.metrics["status"] == again.metrics["status"] == {"unparsed": 1}
    assert last.rows["q1"]["outcome"] == "correct"
    assert len(server.asked) == 4


def test_a_server_that_refuses_the_schema_still_gives_verdicts(write: Any, tmp_path: Path) -> None:
    rule = refusing("response_format", "response_format json_schema: not supported here")
    with Stub(rule) as server:
        found = palate.evaluate(write(make_row(1)), "judge/m", "question", tmp_path / "runs", base_url=server.url)
        rated = palate.evaluate(
            write(make_row(1)),
            "rate/m",
            "question",
            tmp_path / "rated",
            base_url=server.url,
        )
    assert found.runs[0].metrics["accuracy"] == 1.0
    assert rated.runs[0].metrics["status"] == {"unparsed": 1}


def test_retries_of_an_item_are_told_with_its_id(write: Any, tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    with Stub(first_for(2, BUSY, BROKEN)) as server:
        found = palate.evaluate(
            write(make_row(1), make_row(2)),
            "judge/m?connections=1",
            "question",
            tmp_path / "runs",
            base_url=server.url,
            told=lambda item, text: told.append((item, text)),
        )
    assert found.runs[0].metrics["accuracy"] == 1.0
    assert {item for item, _ in told} == {"q2"}
    assert len(told) == 2


def test_scores_by_rule(write: Any, tmp_path: Path) -> None:
    with Stub(lambda asked: score(9 if "bean stew" in asked.first else 3)) as server:
        found = palate.evaluate(write(make_row(1)), "rate/m", "question", tmp_path / "runs", base_url=server.url)
    assert found.runs[0].rows["q1"]["chosen_score"] == 9.0
