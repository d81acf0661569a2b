"""Works of several replies, and the sampling settings of a request."""

from pathlib import Path
from typing import Any

from llm.stub import Asked, Reply, Stub, always
from palate.llm.client import Ask, Client
from palate.llm.gather import Work, gather
from palate.llm.transport import Endpoint
from palate.records import Call, Message
from palate.store import RowLog


def ask(key: str, **more: Any) -> Ask:
    return Ask(key, key, (Message("user", key),), 10, **more)


def client(server: Stub, connections: int = 3) -> Client:
    return Client(Endpoint("m", server.url, connections=connections))


def named(asked: Asked) -> Reply:
    return Reply(f"to {asked.prompt}")


def test_works_come_back_whole_and_are_asked_once(tmp_path: Path) -> None:
    works = [Work(f"w{k}", tuple(ask(f"w{k}-{j}") for j in range(k))) for k in range(4)]
    with Stub(named) as server:
        found = dict(gather(client(server), works, RowLog(tmp_path / "c.jsonl")))
        assert {name: sorted(calls) for name, calls in found.items()} == {
            f"w{k}": [f"w{k}-{j}" for j in range(k)] for k in range(4)
        }
        assert all(call.text == f"to {key}" for calls in found.values() for key, call in calls.items())
        assert len(server.asked) == 6
        again = dict(gather(client(server), works, RowLog(tmp_path / "c.jsonl")))
        assert (len(server.asked), again) == (6, found)


def test_what_a_work_does_not_keep_is_asked_anew(tmp_path: Path) -> None:
    def picky(call: Call) -> bool:
        return call.key != "b"

    with Stub(named) as server:
        list(gather(client(server), [Work("w", (ask("a"), ask("b")))], RowLog(tmp_path / "c.jsonl")))
        list(gather(client(server), [Work("w", (ask("a"), ask("b")), picky)], RowLog(tmp_path / "c.jsonl")))
        assert sorted(a.prompt for a in server.asked) == ["a", "b", "b"]


def test_a_cut_reply_has_one_more_try_with_more_room(tmp_path: Path) -> None:
    with Stub(always(Reply("half", finish="length"))) as server:
        [(_, calls)] = gather(client(server), [Work("w", (ask("a"),))], RowLog(tmp_path / "c.jsonl"))
        assert [a.body["max_tokens"] for a in server.asked] == [10, 40]
        assert (calls["a"].status, calls["a"].attempt) == ("truncated", 2)
        list(gather(client(server), [Work("w", (ask("a"),))], RowLog(tmp_path / "c.jsonl")))
        assert len(server.asked) == 2


def test_sampling_settings_are_sent_if_given() -> None:
    with Stub(named) as server:
        asks = [ask("a", temperature=1.0, top_p=0.9, seed=7), ask("b")]
        list(client(server, 1).ask(asks))
    first, second = (a.body for a in server.asked)
    assert (first["temperature"], first["top_p"], first["seed"]) == (1.0, 0.9, 7)
    assert "top_p" not in second
    assert "seed" not in second


def test_a_server_that_takes_no_seed_is_asked_without_and_that_is_told() -> None:
    def rule(asked: Asked) -> Reply:
        return Reply(status=400, error="Unknown parameter: seed") if "seed" in asked.body else named(asked)

    with Stub(rule) as server:
        one = client(server, 1)
        calls = list(one.ask([ask("a", seed=1), ask("b", seed=2)]))
        assert [c.text for c in calls] == ["to a", "to b"]
        assert (len(server.asked), one.left_out) == (3, ["seed"])


def test_a_server_that_takes_no_top_p_is_an_error_and_not_another_distribution() -> None:
    def rule(asked: Asked) -> Reply:
        return Reply(status=400, error="top_p is not supported") if "top_p" in asked.body else named(asked)

    with Stub(rule) as server:
        [call] = client(server, 1).ask([ask("a", top_p=0.5)])
    assert call.status == "error"
    assert "top_p" in str(call.note)
