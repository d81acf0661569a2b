"""The reward function for verl against a real HTTP server: a failure is never a number, a number is its answer's."""

import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from palate.ppo import verl_reward
from palate.ppo.verl_reward import RewardFailed, compute_score, compute_scores
from palate.rewards.wire import ScoreRequest
from ppo.stub import Reply, reward_of, reward_server

USER = {"item_id": "q1", "question": "What should I cook?", "history": ["I eat beans.", "I run."]}
CALL: dict[str, Any] = {"data_source": "palate/x", "ground_truth": "q1", "extra_info": USER, "timeout": 10.0}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test counts for itself."""
    monkeypatch.setattr(verl_reward, "counts", verl_reward.Counts())
    monkeypatch.setattr(verl_reward, "FIRST_WAIT", 0.01)
    for name in ("REWARD_URL", "ON_FAILURE", "REWARD_TIMEOUT", "MAX_FAILURE_RATE", "HTTP_KEY"):
        monkeypatch.delenv(f"PALATE_{name}", raising=False)


def row(asked: ScoreRequest, **changes: Any) -> bytes:
    """A reply about the only item, with changed fields."""
    return json.dumps({"results": [{"id": asked.items[0].id, "status": "ok", "score": 1.5} | changes]}).encode()


def test_a_good_call_by_keyword_sends_the_user_and_returns_the_number() -> None:
    with reward_server() as server:
        found = compute_score(solution_str="Bean stew.", url=server.url + "/", **CALL)
    assert found == {"score": reward_of("Bean stew."), "failed_share": 0.0}
    (item,) = server.items
    assert (item.question, item.history, item.plan, item.messages) == (USER["question"], USER["history"], None, None)
    assert item.response == "Bean stew."
    assert item.id.startswith("q1@")


def test_verl_would_count_failures_as_zero_in_acc_so_there_is_none() -> None:
    with reward_server() as server:
        assert "acc" not in compute_score(solution_str="x", url=server.url, **CALL)


def test_settings_come_from_the_environment_and_the_token_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    with reward_server() as server:
        monkeypatch.setenv("PALATE_REWARD_URL", server.url)
        monkeypatch.setenv("PALATE_HTTP_KEY", "s3cret")
        info = {
            "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
            "plan": None,
        }
        assert compute_score("palate/x", "Hello", "q1", info)["score"] == 5.0
    assert server.headers[0]["Authorization"] == "Bearer s3cret"
    assert [m.role for m in server.items[0].messages or []] == ["system", "user"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"extra_info": None}, "extra_info is None"),
        ({"extra_info": {"user_id": "u1"}}, "no 'question' and no 'messages', but user_id"),
        ({"extra_info": "u1"}, "has to be a dict, not str"),
        ({"solution_str": None}, "solution_str has to be the answer's text, not NoneType"),
        ({"url": None}, "set PALATE_REWARD_URL"),
        ({"on_failure": "pay"}, "not stop or mask"),
        ({"timeout": 0}, "PALATE_REWARD_TIMEOUT is 0, not a number above 0"),
        ({"max_failure_rate": "often"}, "PALATE_MAX_FAILURE_RATE is 'often'"),
    ],
)
def test_a_wrong_call_says_what_is_missing(changes: dict[str, Any], told: str) -> None:
    call = {**CALL, "solution_str": "x", "url": "http://127.0.0.1:9"} | changes
    with pytest.raises(ValueError, match="compute_score") as bad:
        compute_score(**call)
    assert told in str(bad.value)
    assert not isinstance(bad.value, RewardFailed)


def test_when_half_of_the_calls_fail_only_the_others_get_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    with reward_server(lambda n, asked: Reply(500, raw=b"broken") if n % 2 else None) as server:
        found: list[Any] = []
        for k in range(20):
            try:
                call = {"url": server.url, "on_failure": "mask", **CALL}
                found.append(compute_score(solution_str="x" * (k + 1), **call)["score"])
            except RewardFailed as bad:
                found.append(bad)
    assert found[::2] == [float(k + 1) for k in range(0, 20, 2)]
    assert all(isinstance(f, RewardFailed) and "HTTP 500: broken" in str(f) for f in found[1::2])
    assert (verl_reward.counts.asked, verl_reward.counts.failed) == (20, 10)
    assert "10 of 20 answers failed so far (50.0%)" in capfd.readouterr().err


def test_under_stop_one_failure_closes_the_function(capfd: pytest.CaptureFixture[str]) -> None:
    with reward_server(lambda n, asked: Reply(500) if n == 1 else None) as server:
        call = {"url": server.url, "solution_str": "x", **CALL}
        compute_score(**call)
        for _ in range(5):
            with pytest.raises(RewardFailed):
                compute_score(**call)
    assert server.requests == 2, "nothing is asked after the first failure"
    assert "no reward" in capfd.readouterr().err


def test_under_mask_too_many_failures_close_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verl_reward, "FEWEST_CALLS", 10)
    with reward_server(lambda n, asked: Reply(500) if n >= 9 else None) as server:
        call = {"url": server.url, "solution_str": "x", "on_failure": "mask", "max_failure_rate": 0.2, **CALL}
        for k in range(30):
            if k < 9:
                compute_score(**call)
            else:
                with pytest.raises(RewardFailed):
                    compute_score(**call)
    assert server.requests == 12, "3 of 12 is the first share above 20 %"
    assert "more than 20%" in (verl_reward.counts.closed or "")


def test_busy_is_tried_again_when_the_server_says() -> None:
    busy = Reply(503, {"Retry-After": "0.2"})
    with reward_server(lambda n, asked: busy if n < 2 else None) as server:
        began = time.monotonic()
        assert compute_score(solution_str="abc", url=server.url, **CALL)["score"] == 3.0
        assert time.monotonic() - began >= 0.4
    assert (server.requests, verl_reward.counts.retries, verl_reward.counts.failed) == (3, 2, 0)


def test_a_server_that_stays_busy_longer_than_the_limit_is_given_up_at_once() -> None:
    with (
        reward_server(lambda n, asked: Reply(503, {"Retry-After": "3600"})) as server,
        pytest.raises(RewardFailed, match=r"HTTP 503.*given up after 2 s"),
    ):
        compute_score(solution_str="x", url=server.url, **{**CALL, "timeout": 2.0})
    assert server.requests == 1


@pytest.mark.parametrize("status", [400, 401, 413, 422, 302])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    reply = Reply(status, {"Location": "http://127.0.0.1:9/elsewhere"}, raw=b"items.0.response: missing")
    with (
        reward_server(lambda n, asked: reply) as server,
        pytest.raises(RewardFailed, match=f"HTTP {status}: items.0.response: missing"),
    ):
        compute_score(solution_str="x", url=server.url, **CALL)
    assert server.requests == 1


def test_nothing_listening_ends_within_the_limit() -> None:
    with reward_server() as server:
        url = server.url
    with pytest.raises(RewardFailed, match=r"refused.*given up"):
        compute_score(solution_str="x", url=url, **{**CALL, "timeout": 0.3})
    assert verl_reward.counts.retries > 1


def test_one_slow_answer_holds_nobody_else() -> None:
    def slow(n: int, asked: ScoreRequest) -> Reply | None:
        return Reply(delay=60) if asked.items[0].response == "slow" else None

    def one(text: str) -> Any:
        try:
            call = {"url": server.url, "on_failure": "mask", **CALL, "timeout": 3.0}
            return compute_score(solution_str=text, **call)["score"]
        except RewardFailed as bad:
            return bad

    answers = [*("x" * k for k in range(1, 8)), "slow"]
    began = time.monotonic()
    with reward_server(slow) as server, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, answers))
        assert time.monotonic() - began < 30
    assert found[:7] == [float(k) for k in range(1, 8)]
    assert "within 3 s" in str(found[7])
    assert not isinstance(found[7], TimeoutError), "verl's older manager would pay 0.0 for that"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"score": float("nan")}, "NaN is not a number"),
        ({"score": float("inf")}, "Infinity is not a number"),
        ({"score": None}, "not a reward"),
        ({"score": True}, "not a reward"),
        ({"score": "1.5"}, "not a reward"),
        ({"status": "error", "score": 0.5, "error": "out of memory"}, "error: out of memory"),
        ({"status": "overlong", "score": None, "error": "too long"}, "overlong: too long"),
        ({"id": "q1@somebody"}, "replied about"),
    ],
)
def test_what_is_no_reward_of_this_answer_is_refused(changes: dict[str, Any], told: str) -> None:
    with (
        reward_server(lambda n, asked: Reply(raw=row(asked, **changes))) as server,
        pytest.raises(RewardFailed, match=told),
    ):
        compute_score(solution_str="x", url=server.url, **CALL)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"<html>", b'{"results": [1]}', b'{"results": []}', b"\xff"])
def test_a_reply_of_another_form_is_refused(raw: bytes) -> None:
    with reward_server(lambda n, asked: Reply(raw=raw)) as server, pytest.raises(RewardFailed):
        compute_score(solution_str="x", url=server.url, **CALL)


def test_a_number_too_large_for_a_float_is_refused() -> None:
    with (
        reward_server(lambda n, asked: Reply(raw=row(asked).replace(b"1.5", b"1e999"))) as server,
        pytest.raises(RewardFailed, match="inf, which is not a reward"),
    ):
        compute_score(solution_str="x", url=server.url, **CALL)


def test_a_torn_reply_is_tried_again() -> None:
    with reward_server(lambda n, asked: Reply(raw=b'{"res', cut=True) if n == 0 else None) as server:
        assert compute_score(solution_str="abcd", url=server.url, **CALL)["score"] == 4.0


def test_a_batch_keeps_order_whatever_the_order_of_the_reply() -> None:
    def shuffled(n: int, asked: ScoreRequest) -> Reply:
        rows = [{"id": i.id, "status": "ok", "score": reward_of(i.response)} for i in asked.items]
        return Reply(raw=json.dumps({"results": rows[1::2] + rows[::2]}).encode())

    answers = ["x" * k for k in range(16)]
    with reward_server(shuffled) as server:
        found = compute_scores(["d"] * 16, answers, [None] * 16, [USER] * 16, url=server.url)
    assert [f["score"] for f in found] == [float(k) for k in range(16)]
    assert server.requests == 1
    assert len({i.id for i in server.items}) == 16


def test_one_failure_in_a_batch_raises_for_all_of_it() -> None:
    def third(n: int, asked: ScoreRequest) -> Reply:
        rows = [{"id": i.id, "status": "ok", "score": 1.0} for i in asked.items]
        rows[2] = {"id": rows[2]["id"], "status": "error", "score": None, "error": "not finite"}
        return Reply(raw=json.dumps({"results": rows}).encode())

    with reward_server(third) as server, pytest.raises(RewardFailed, match="not finite"):
        compute_scores(["d"] * 8, ["x"] * 8, [None] * 8, [USER] * 8, url=server.url, on_failure="mask")
    assert (verl_reward.counts.asked, verl_reward.counts.failed) == (8, 1)
    with pytest.raises(ValueError, match="3 answers but 2 extra_infos"):
        compute_scores(["d"] * 3, ["x"] * 3, [None] * 3, [USER] * 2, url="http://127.0.0.1:9")


def test_sixteen_at_once_get_their_own_numbers() -> None:
    def late(n: int, asked: ScoreRequest) -> Reply:
        return Reply(delay=0.02 * (n * 7 % 5))

    with reward_server(late) as server, ThreadPoolExecutor(16) as pool:
        answers = ["x" * k for k in range(16)]
        scores = pool.map(lambda a: compute_score(solution_str=a, url=server.url, **CALL)["score"], answers)
        assert list(scores) == [float(k) for k in range(16)]


def test_the_file_alone_is_enough(tmp_path: Path) -> None:
    """Isolated, without site-packages, and anywhere: what verl's environment needs is this one file."""
    shutil.copy(verl_reward.__file__, tmp_path / "reward.py")
    code = (
        "import sys, runpy; f = runpy.run_path(sys.argv[1])['compute_score'];"
        "print(f(solution_str='abc', extra_info={'question': 'Q'}, url=sys.argv[2])['score'])"
    )
    with reward_server() as server:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, str(tmp_path / "reward.py"), server.url],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    assert (done.stdout, done.stderr) == ("3.0\n", "")
