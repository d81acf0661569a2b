"""Runs of models that are asked: resumed, stopped, graded again, and no call made twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import palate
from llm.stub import Asked, Reply, Rule, Stub, always, first_for, for_item, right, verdict
from palate.cli.evaluate import as_json
from palate.data import open_data
from palate.errors import RunError, Stopped
from palate.evaluation import Run
from palate.evaluation.grading import settle_again
from palate.llm.client import Spending
from palate.rewards import AskedModel, Setting, open_model
from palate.store import RowLog, RunFolder
from palate.views import Looker, View
from rows import make_row

BROKEN = Reply(status=500, error="down", headers={"x-should-retry": "false"})


def run(
    data: Path, server: Stub, model: str = "judge/m", view: str = "question", out: str = "runs", **options: Any
) -> Run:
    return palate.evaluate(data, model, view, data.parent / out, base_url=server.url, **options).runs[0]


def lines(one: Run, name: str = "rows.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (one.folder / name).read_text().splitlines()]


@pytest.fixture
def data(write: Any) -> Path:
    path: Path = write(*(make_row(k) for k in range(1, 11)))
    return path


def test_a_finished_run_asks_nothing(data: Path) -> None:
    with Stub() as server:
        first = run(data, server)
        assert len(server.asked) == 20
        assert run(data, server).metrics == first.metrics
        assert len(server.asked) == 20


def test_a_failure_is_asked_again_and_nothing_else(data: Path) -> None:
    with Stub(for_item(3, BROKEN)) as server:
        first = run(data, server, "judge/m?orders=one")
        assert first.metrics["status"] == {"ok": 9, "error": 1}
        assert "down" in first.rows["q3"]["notes"][0]
        server.rule = right
        asked = len(server.asked)
        again = run(data, server, "judge/m?orders=one")
        assert [a.day for a in server.asked[asked:]] == [3]
    assert again.metrics["accuracy"] == again.metrics["coverage"] == 1.0
    kept = [row for row in lines(again, "calls.jsonl") if row["item"] == "q3"]
    assert [row["status"] for row in kept] == ["error", "ok"]


def test_of_a_pair_only_the_failed_order_is_asked_again(data: Path) -> None:
    with Stub(first_for(3, BROKEN)) as server:
        run(data, server)
        asked = len(server.asked)
        again = run(data, server)
        assert len(server.asked) == asked + 1
    assert again.metrics["accuracy"] == 1.0


def test_every_exchange_is_kept_whole(data: Path) -> None:
    with Stub() as server:
        one = run(data, server, view="history")
    for row in lines(one, "calls.jsonl"):
        assert row["prompt"][0]["content"] in {a.prompt for a in server.asked}
        assert row["id"] in one.rows[row["item"]]["calls"]
        assert (row["status"], row["finish_reason"], row["max_tokens"]) == ("ok", "stop", 1024)
        assert row["usage"] == {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize(
    "change",
    [
        {"model": "judge/other"},
        {"model": "judge/m?temperature=0.7"},
        {"model": "judge/m?max_tokens=99"},
        {"model": "judge/m?orders=one"},
        {"model": "judge/m?repeats=2"},
        {"model": "rate/m"},
        {"view": "history"},
        {"view": "oracle"},
    ],
)
def test_what_changes_replies_is_asked_anew(change: dict[str, str], data: Path) -> None:
    with Stub() as server:
        run(data, server)
        asked = len(server.asked)
        run(data, server, **change)
        assert len(server.asked) >= asked + 10


def test_another_key_to_the_data_is_asked_anew_where_it_is_shown(write: Any) -> None:
    other = [{"aspect": "Peas", "evidence": "I eat peas", "reason": "They are green."}]
    with Stub() as server:
        run(write(make_row(1)), server, view="oracle")
        run(write(make_row(1, rubric_aspects=other)), server, view="oracle")
        assert len(server.asked) == 4
        assert "Peas" in server.asked[-1].prompt


@pytest.mark.parametrize("model", ["judge/m?parser=brackets", "judge/m?tie=agree", "judge/m?tie=0.1"])
def test_another_reading_asks_nothing(model: str, data: Path) -> None:
    with Stub() as server:
        first = run(data, server)
        again = run(data, server, model)
        assert len(server.asked) == 20
    assert again.folder == first.folder
    assert again.metrics["grade"]["digest"] != first.metrics["grade"]["digest"]


def test_where_the_server_is_does_not_matter(data: Path) -> None:
    with Stub() as server:
        first = run(data, server)
    with Stub() as other:
        again = run(data, other, "judge/m?connections=3&read_seconds=9")
        assert (other.asked, again.folder) == ([], first.folder)


def both_forms(asked: Asked) -> Reply:
    """A reply that the parsers `verdict` and `brackets` read differently for some items."""
    seat = "A" if "bean stew" in asked.first else "B"
    other = "B" if seat == "A" else "A"
    if asked.day <= 2:
        return Reply(f"[[{seat}]] at first glance, it seems to me.\n\nVerdict: {other}")
    return Reply(f"My verdict: [[{seat}]]") if asked.day <= 4 else Reply(f"Verdict: {seat}")


def test_grading_again_keeps_the_old_rows_and_goes_back(data: Path) -> None:
    with Stub(both_forms) as server:
        first = run(data, server)
        old = RowLog(first.folder / "rows.jsonl").rows
        again = run(data, server, "judge/m?parser=brackets")
        back = run(data, server)
        assert len(server.asked) == 20
    assert (first.metrics["accuracy"], first.metrics["coverage"]) == (0.8, 1.0)
    assert again.metrics["status"] == {"ok": 4, "unparsed": 6}
    assert again.metrics["accuracy"] == 1.0
    kept = first.folder / f"rows-{first.metrics['grade']['digest']}.jsonl"
    assert RowLog(kept).rows == old
    assert back.metrics == first.metrics
    assert back.rows == old


def test_settling_again_is_the_same_as_settling(data: Path) -> None:
    for view in ("question", "history", "swapped?draws=2", "history?user=none", "oracle"):
        with Stub(both_forms) as server:
            one = run(data, server, view=view)
            asked = len(server.asked)
            opened = open_data(str(data))
            model = open_model("judge/m", setting=Setting(opened, server.url))
            assert isinstance(model, AskedModel)
            before = RowLog(one.folder / "rows.jsonl").rows
            settle_again(RunFolder(one.folder), opened, Looker(opened), model, View.parse(view), "old")
            assert RowLog(one.folder / "rows.jsonl").rows == before
            assert len(server.asked) == asked


def test_a_reply_that_is_gone_cannot_be_graded_again(data: Path) -> None:
    with Stub() as server:
        one = run(data, server)
        calls = (one.folder / "calls.jsonl").read_text().splitlines(keepends=True)
        (one.folder / "calls.jsonl").write_text("".join(calls[1:]))
        with pytest.raises(RunError, match=r"not in calls\.jsonl"):
            run(data, server, "judge/m?tie=agree")
        assert run(data, server).metrics["accuracy"] == 1.0


def test_a_run_stopped_half_way_goes_on_with_another_reading(data: Path) -> None:
    with Stub(both_forms) as server:
        with pytest.raises(Stopped):
            run(data, server, "judge/m?connections=1", spending=Spending(max_calls=11))
        rest = run(data, server, "judge/m?parser=brackets")
        whole = run(data, server, "judge/m?parser=brackets", out="whole")
        assert len(server.asked) == 40
    assert rest.metrics == whole.metrics
    assert {row["grade"] for row in rest.rows.values()} == {rest.metrics["grade"]["digest"]}


def test_failed_rows_survive_grading_again_and_are_asked_then(data: Path) -> None:
    with Stub(for_item(3, BROKEN)) as server:
        run(data, server)
        server.rule = right
        asked = len(server.asked)
        again = run(data, server, "judge/m?tie=agree")
        assert len(server.asked) == asked + 2
    assert again.metrics["coverage"] == 1.0


def test_a_pair_stopped_between_its_orders_keeps_a_reply_without_verdict(data: Path) -> None:
    with Stub(first_for(1, Reply("Hm."))) as server:
        with pytest.raises(Stopped):
            run(data, server, "judge/m?connections=1", spending=Spending(max_calls=1))
        one = run(data, server)
        assert len(server.asked) == 20
        assert one.metrics["status"] == {"ok": 9, "unparsed": 1}
        assert run(data, server, retry="unparsed").metrics["accuracy"] == 1.0
        assert len(server.asked) == 21


def test_beside_a_failure_a_reply_without_verdict_is_not_asked_again(data: Path) -> None:
    with Stub(first_for(1, Reply("Hm."), BROKEN)) as server:
        assert run(data, server, "judge/m?connections=1").rows["q1"]["status"] == "error"
        assert run(data, server).rows["q1"]["status"] == "unparsed"
        assert len(server.asked) == 21


def test_a_pair_stopped_after_a_cut_goes_on_with_more_room(data: Path) -> None:
    with Stub(first_for(1, Reply("", finish="length"))) as server:
        with pytest.raises(Stopped):
            run(data, server, "judge/m?connections=1", spending=Spending(max_calls=1))
        one = run(data, server)
    assert one.metrics["accuracy"] == 1.0
    assert sorted(a.body["max_tokens"] for a in server.of(1)) == [1024, 1024, 4096]


def test_items_without_context_are_not_asked(write: Any) -> None:
    data = write(make_row(1), make_row(2, rubric_aspects=None))
    with Stub() as server:
        one = run(data, server, view="oracle")
        assert {a.day for a in server.asked} == {1}
        assert one.metrics["status"] == {"ok": 1, "no_context": 1}
        run(data, server, "judge/m?tie=agree", view="oracle")
        assert len(server.asked) == 2


def test_raising_the_limit_asks_only_what_is_new(data: Path) -> None:
    with Stub() as server:
        run(data, server, limit=3)
        assert len(server.asked) == 6
        one = run(data, server, limit=5)
        assert len(server.asked) == 10
    assert one.metrics["n"] == 5


def test_fresh_asks_anew_and_keeps_the_old_exchanges(data: Path) -> None:
    with Stub() as server:
        run(data, server, limit=2)
        one = run(data, server, limit=2, fresh=True)
        assert len(server.asked) == 8
    assert len(lines(one, "old-1-calls.jsonl")) == len(lines(one, "calls.jsonl")) == 4


def test_limits_stop_and_the_same_command_goes_on(data: Path) -> None:
    with Stub() as server:
        whole = run(data, server, out="whole")
        server.asked.clear()
        for _ in range(2):
            with pytest.raises(Stopped, match="goes on"):
                run(data, server, spending=Spending(max_calls=7))
        with pytest.raises(Stopped):
            run(data, server, "judge/m?connections=1", spending=Spending(max_tokens=30))
        assert len(server.asked) == 16
        one = run(data, server)
        assert len(server.asked) == 20
    assert one.metrics == whole.metrics
    assert one.rows == whole.rows


def test_the_spending_of_all_models_is_one(data: Path) -> None:
    spending = Spending(max_calls=30)
    with Stub() as server, pytest.raises(Stopped):
        palate.evaluate(
            data, ["judge/a", "judge/b"], "question", data.parent / "runs", base_url=server.url, spending=spending
        )
    assert len(server.asked) == spending.calls == 30


def command(data: Path, *more: str) -> list[str]:
    args = ["eval", "--data", str(data), "--view", "question", "--out", str(data.parent / "runs")]
    return [sys.executable, "-m", "palate", *args, "--model", "judge/m?connections=2", *more]


def test_codes_of_the_command(data: Path) -> None:
    with Stub() as server:
        base = ("--base-url", server.url)
        plan = subprocess.run(command(data, *base, "--dry-run", "--json"), capture_output=True, text=True, check=True)
        assert (server.asked, json.loads(plan.stdout)["calls"]) == ([], 20)
        assert not (data.parent / "runs").exists()
        stopped = subprocess.run(command(data, *base, "--max-calls", "5"), capture_output=True, text=True, check=False)
        assert (stopped.returncode, len(server.asked)) == (3, 5)
        assert "goes on from here" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        rest = subprocess.run(command(data, *base, "--dry-run", "--json"), capture_output=True, text=True, check=True)
        assert json.loads(rest.stdout)["calls"] == 15
        short = subprocess.run(command(data, *base, "--max-tokens", "60"), capture_output=True, text=True, check=False)
        assert short.returncode == 3
        done = subprocess.run(command(data, *base), capture_output=True, text=True, check=False)
        assert (done.returncode, len(server.asked)) == (0, 20)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_and_repeats_no_call_that_came_back(how: signal.Signals, write: Any) -> None:
    data = write(*(make_row(k) for k in range(1, 31)))
    slow: Rule = lambda asked: Reply(both_forms(asked).text, delay=0.05)  # noqa: E731
    with Stub(slow) as server:
        whole = run(data, server, out="whole")
        server.asked.clear()
        with subprocess.Popen(
            command(data, "--base-url", server.url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child:
            end = time.monotonic() + 60
            while len(server.asked) < 21 and time.monotonic() < end:
                time.sleep(0.01)
            os.kill(child.pid, how)
        assert child.returncode in (-9, 3)
        time.sleep(0.2)
        folder = next((data.parent / "runs").iterdir())
        came_back = len(RowLog(folder / "calls.jsonl", mend=False))
        assert json.loads((folder / "run.json").read_text())["status"] in ("running", "stopped")
        server.asked.clear()
        one = run(data, server)
        assert 0 < came_back < 60
        assert len(server.asked) == 60 - came_back
    assert one.metrics == whole.metrics
    assert one.rows == whole.rows


def test_the_order_of_the_items_does_not_matter(write: Any) -> None:
    made = [make_row(k) for k in range(1, 21)]
    mixed = random.Random(1).sample(made, len(made))
    with Stub(both_forms) as server:
        found = [
            run(write(*order, name=f"{name}.jsonl"), server, "judge/m?orders=one", view="history", out=name)
            for name, order in (("file", made), ("mixed", mixed))
        ]
    assert found[0].rows == found[1].rows
    figures = ("accuracy", "coverage", "ci95", "position", "by_user")
    assert [found[0].metrics[f] for f in figures] == [found[1].metrics[f] for f in figures]


def test_a_server_whose_replies_depend_on_the_order_is_seen(write: Any) -> None:
    def remembers(asked: Asked) -> Reply:
        before = server.asked[asked.number - 1].day if asked.number else 0
        return verdict("tie") if asked.day == 3 and before == 2 else right(asked)

    made = [make_row(k) for k in range(1, 6)]
    rows = []
    for name, order in (("file", made), ("mixed", made[::-1])):
        with Stub(remembers) as server:
            one = run(write(*order, name=f"{name}.jsonl"), server, "judge/m?connections=1&orders=one", out=name)
            rows.append(one.rows)
    assert [i for i in rows[0] if rows[0][i]["outcome"] != rows[1][i]["outcome"]] == ["q3"]


def test_replies_that_come_in_any_order_belong_to_their_items(write: Any) -> None:
    data = write(*(make_row(k) for k in range(1, 31)))
    dice = random.Random(7)

    def late(asked: Asked) -> Reply:
        return Reply((right(asked) if asked.day % 3 else verdict("tie")).text, delay=dice.random() / 20)

    with Stub(late) as server:
        one = run(data, server)
    assert {i for i, row in one.rows.items() if row["outcome"] == "tie"} == {f"q{k}" for k in range(3, 31, 3)}
    assert one.metrics["wrong"] == 0


def test_tokens_and_server_are_in_the_record(data: Path) -> None:
    with Stub() as server:
        one = run(data, server)
    assert one.record["environment"]["base_url"] == server.url
    assert "openai" in one.record["environment"]


def test_several_models_and_views_share_a_call(data: Path) -> None:
    with Stub(always(verdict("A"))) as server:
        found = palate.evaluate(
            data,
            ["judge/m", "builtin/length"],
            ["question", "history", "swapped", "history?user=none"],
            data.parent / "runs",
            base_url=server.url,
        )
    assert len(server.asked) == 80
    assert {c.kind for c in found.contrasts} == {"lift", "swap_drop", "gain", "model"}
    assert all(c.difference.value == 0 for c in found.contrasts if c.kind == "lift" and c.model == "judge/m")


def test_a_password_in_an_address_is_in_no_result(data: Path) -> None:
    with Stub() as server:
        address = server.url.replace("http://", "http://ann:pw-9137@")
        model = f"judge/m?base_url={address}"
        found = palate.evaluate(data, model, ["question", "history"], data.parent / "runs")
    assert "pw-9137" not in json.dumps(as_json(found))
    assert "pw-9137" not in "".join(run.model for run in found)
    assert found.run(model, "history").metrics["n"] == 10
