"""Best-of-N through a stub: the numbers, what is asked, what is refused, and that each step goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bon.world import ASPECTS, LEVELS, answer_in, is_grading, level_of, rows, sample, world
from llm.stub import Asked, Reply, Rule, Stub
from palate.bon import BestOfN, Request, best_of_n, estimate_best_of_n
from palate.errors import DataError, ModelError, RunError, SpecError, Stopped
from palate.llm.client import Spending
from palate.metrics.best_of import over_subsets
from palate.store import RowLog
from rows import make_row

ALL = {"policy": "llm/p?connections=4", "grader": "llm/g?connections=4", "n": 4}


def bon(data: Path, server: Stub | None, **changes: Any) -> BestOfN:
    url = server.url if server else None
    options: dict[str, Any] = {**ALL, "base_url": url, **changes}
    models, views = options.pop("models", ["builtin/length"]), options.pop("views", ["question"])
    out = options.pop("out", data.parent / "bon")
    return best_of_n(Request(str(data), models, views, out, **options))


def log(found: BestOfN, name: str) -> dict[str, Any]:
    [path] = found.folder.glob(name)
    return RowLog(path, mend=False).rows


@pytest.fixture
def data(write: Any) -> Path:
    path: Path = write(*rows(3))
    return path


def test_the_curve_is_what_the_definitions_say(data: Path) -> None:
    with Stub(world) as server:
        found = bon(data, server, models=["builtin/length", "builtin/random"])
    assert found.curve is not None
    samples, grades = log(found, "samples.jsonl"), log(found, "grades/*/grades.jsonl")
    value = {s: sum(LEVELS[int(row["text"][21])]) / 4 for s, row in samples.items()}
    assert {s: grades[f"{s}|0"]["value"] for s in samples} == value
    assert [one["system"] for one in found.curve["systems"]] == ["builtin/length", "builtin/random"]
    for one in found.curve["systems"]:
        scores = RowLog(found.folder / one["folder"] / "rows.jsonl", mend=False).rows
        for place, k in enumerate([1, 2, 4]):
            names = [[f"q{i}@{j}" for j in range(4)] for i in (1, 2, 3)]
            expected = [
                over_subsets([scores[s]["score"] for s in n], [value[s] for s in n], [k]).value[0] for n in names
            ]
            point = one["points"][place]
            assert point["k"] == k
            assert point["value"] == pytest.approx(float(np.mean(expected)))
            assert (point["n"], point["of"], point["coverage"]) == (3, 3, pytest.approx(1.0))
    assert found.curve["random"]["value"] == pytest.approx(np.mean(list(value.values())))
    best = np.mean([max(value[f"q{i}@{j}"] for j in range(4)) for i in (1, 2, 3)])
    assert found.curve["oracle"]["points"][-1]["value"] == pytest.approx(best)
    assert "optimistic" in found.curve["oracle"]["how"]


def test_what_the_policy_and_the_grader_are_asked(data: Path) -> None:
    with Stub(world) as server:
        bon(data, server)
        sampling = [a for a in server.asked if not is_grading(a)]
        grading = [a for a in server.asked if is_grading(a)]
    assert (len(sampling), len(grading)) == (12, 24)
    assert len({a.body["seed"] for a in sampling}) == 12
    for asked in sampling:
        assert (asked.body["temperature"], asked.body["top_p"], asked.body["max_tokens"]) == (1.0, 0.9, 512)
        assert asked.body["model"] == "p"
        assert "I eat beans" not in asked.prompt, "the key is never shown to a policy"


def test_the_policy_sees_what_its_view_says(data: Path) -> None:
    with Stub(world) as server:
        bon(data, server, policy="llm/p?view=history&k=1&temperature=0.5&max_tokens=9", grader=None)
    assert all("on my roof" in a.prompt and "long race" not in a.prompt for a in server.asked)
    assert {(a.body["temperature"], a.body["max_tokens"]) for a in server.asked} == {(0.5, 9)}


def test_a_finished_folder_asks_nothing_and_more_is_added_to_it(data: Path) -> None:
    with Stub(world) as server:
        first = bon(data, server)
        server.asked.clear()
        assert bon(data, server).curve == first.curve
        assert not server.asked
        bon(data, server, models=["builtin/length", "builtin/lexical"], views=["question", "history"])
        assert not server.asked, "another reward model ranks the same samples, whose grades are there"
        more = bon(data, server, n=6)
        assert len([a for a in server.asked if not is_grading(a)]) == 6
        assert len([a for a in server.asked if is_grading(a)]) == 12
        seeds = {s: r["seed"] for s, r in log(first, "samples.jsonl").items()}
        assert {s: r["seed"] for s, r in log(more, "samples.jsonl").items() if s in seeds} == seeds
    assert more.curve is not None
    assert more.curve["ks"] == [1, 2, 4]


def test_first_k_grades_the_picks_alone_and_each_once(data: Path) -> None:
    models = ["builtin/length", "builtin/random", "builtin/random?seed=1"]
    with Stub(world) as server:
        found = bon(data, server, models=models, unbiased=False)
        grades = len(log(found, "grades/*/grades.jsonl"))
        graded = [answer_in(a.prompt) for a in server.asked if is_grading(a)]
        calls = sum(map(is_grading, server.asked))
        whole = bon(data, server, models=models)
    assert found.curve is not None
    assert whole.curve is not None
    assert calls == 2 * grades < 24
    assert set(Counter(graded).values()) <= {2, 4, 6}, "two aspects; equal texts of two items are asked for each"
    assert [p["value"] for p in found.curve["systems"][0]["points"]] == [
        p["value"] for p in whole.curve["systems"][0]["first_k"]
    ]
    assert found.curve["oracle"] is None
    first = {f"q{i}@0" for i in (1, 2, 3)}
    assert found.curve["systems"][0]["points"][0]["value"] == pytest.approx(
        np.mean([log(found, "grades/*/grades.jsonl")[f"{s}|0"]["value"] for s in first])
    )


def test_the_random_choice_of_first_k_is_never_a_models_pick(data: Path) -> None:
    def unread(asked: Asked) -> Reply:
        return Reply("no") if is_grading(asked) and "poor" in answer_in(asked.prompt) else world(asked)

    made = [
        sample(i, k, "quality 0 poor" if k == 0 else "quality 4 xxxxx" + "x" * k) for i in (1, 2, 3) for k in range(4)
    ]
    with Stub(unread) as server:
        found = bon(data, server, unbiased=False, **stored(data, *made))
    assert found.curve is not None
    assert (found.curve["random"]["value"], found.curve["random"]["n"]) == (None, 0)
    assert found.curve["systems"][0]["points"][-1]["over_random"]["value"] is None
    assert found.curve["systems"][0]["points"][-1]["value"] == 1.0


def stored(data: Path, *found: dict[str, Any], name: str = "samples.jsonl") -> dict[str, Any]:
    path = data.parent / name
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return {"policy": None, "samples": path}


def test_five_of_eight_samples_are_reported_as_five(write: Any) -> None:
    data = write(*rows(2))
    good = [sample(i, k, f"quality {k % 5} " + "x" * k) for i in (1, 2) for k in range(8) if i == 1 or k < 5]
    bad = [sample(2, 5, None, "refused"), sample(2, 6, None, "error"), sample(2, 7, "", "truncated")]
    with Stub(world) as server:
        found = bon(data, server, n=8, **stored(data, *good, *bad))
    assert found.curve is not None
    assert found.curve["samples"]["effective"] == {"mean": 6.5, "least": 5, "items_by_n": {"8": 1, "5": 1}}
    assert found.curve["samples"]["status"] == {"ok": 13, "refused": 1, "error": 1, "truncated": 1}
    one = found.curve["systems"][0]
    assert one["scores"]["effective"]["least"] == 5
    assert one["points"][0]["coverage"] == pytest.approx((1 + 5 / 8) / 2)
    assert one["points"][-1]["coverage"] == 1.0
    assert not [a for a in server.asked if not is_grading(a)], "samples of a file are never made"


def test_a_sample_that_was_cut_at_the_limit_is_an_answer(data: Path) -> None:
    def cut(asked: Asked) -> Reply:
        reply = world(asked)
        return reply if is_grading(asked) else Reply(reply.text, finish="length")

    with Stub(cut) as server:
        found = bon(data, server)
        assert len([a for a in server.asked if not is_grading(a)]) == 12, "and is not tried again"
        bon(data, server)
        assert len([a for a in server.asked if not is_grading(a)]) == 12
    assert found.curve is not None
    assert found.curve["samples"] == {
        "asked": 12,
        "with_text": 12,
        "status": {"truncated": 12},
        "effective": {"mean": 4.0, "least": 4, "items_by_n": {"4": 3}},
    }


def test_ties_are_counted(data: Path) -> None:
    same = [sample(i, k, f"quality {k} xx") for i in (1, 2, 3) for k in range(4)]
    with Stub(world) as server:
        found = bon(data, server, **stored(data, *same))
    assert found.curve is not None
    one = found.curve["systems"][0]
    assert one["scores"]["tied_items"] == 3
    assert [p["tied"] for p in one["points"]] == [0.0, 1.0, 1.0]
    assert one["points"][-1]["value"] == pytest.approx(found.curve["random"]["value"]), "all alike: a random choice"


def test_a_failed_sample_and_a_failed_grade_are_no_numbers(data: Path) -> None:
    def some(asked: Asked) -> Reply:
        if is_grading(asked):
            return Reply("[2, 1, 0]") if level_of(asked.prompt) == 2 else world(asked)
        return Reply("") if asked.day == 2 else world(asked)

    with Stub(some) as server:
        found = bon(data, server)
    assert found.curve is not None
    assert found.curve["samples"]["status"] == {"ok": 8, "unparsed": 4}
    assert found.curve["grades"]["unparsed"] > 0
    values = [r["value"] for r in log(found, "grades/*/grades.jsonl").values() if r["status"] != "ok"]
    assert set(values) == {None}
    assert found.curve["systems"][0]["points"][0]["n"] <= 2
    assert found.curve["systems"][0]["points"][0]["coverage"] < 0.67
    json.dumps(found.curve, allow_nan=False)


def test_repeats_make_the_oracle_fair(data: Path) -> None:
    with Stub(world) as server:
        found = bon(data, server, repeats=2, grader="llm/g?temperature=0.5")
        assert sum(map(is_grading, server.asked)) == 48
    assert found.curve is not None
    assert "cross-fitted" in found.curve["oracle"]["how"]
    last = found.curve["systems"][0]["points"][-1]
    assert last["gap_closed"]["value"] is not None


def test_an_item_without_a_rubric_is_sampled_and_counted_but_not_graded(write: Any) -> None:
    data = write(*rows(2), make_row(3, rubric_aspects=None, narrative=None))
    with Stub(world) as server:
        found = bon(data, server)
        assert sum(map(is_grading, server.asked)) == 16
    assert found.curve is not None
    assert (found.curve["items"], found.curve["without_rubric"]) == (3, 1)
    assert found.curve["systems"][0]["points"][0]["of"] == 2


def test_the_board_has_a_row_a_point(data: Path) -> None:
    with Stub(world) as server:
        found = bon(data, server, views=["question", "history"])
    board = json.loads((found.folder / "board.json").read_text())
    metrics = {(r["system"], r["metric"]) for r in board["rows"]}
    assert ("builtin/length", "bon@4/history") in metrics
    assert ("random choice", "bon@4") in metrics
    assert ("oracle choice", "bon@1") in metrics
    for row in board["rows"]:
        assert set(row) == {"system", "metric", "value", "ci95", "n", "source"}
    assert found.curve is not None
    [row] = [r for r in board["rows"] if r["metric"] == "bon@4/question"]
    assert row["value"] == found.curve["systems"][0]["points"][-1]["value"]


def test_raters_rank_and_their_replies_are_kept(data: Path) -> None:
    def rated(asked: Asked) -> Reply:
        if "You score an answer" in asked.prompt:
            return Reply(json.dumps({"reason": "so", "score": 1 + int(asked.prompt.partition("quality ")[2][0])}))
        return world(asked)

    with Stub(rated) as server:
        found = bon(data, server, models=["rate/r?connections=3"])
        assert found.curve is not None
        one = found.curve["systems"][0]
        assert one["system"] == "rate/r"
        for name, row in RowLog(found.folder / one["folder"] / "rows.jsonl", mend=False).rows.items():
            assert row["score"] == 1 + int(log(found, "samples.jsonl")[name]["text"][21])
        assert one["points"][-1]["value"] == pytest.approx(found.curve["oracle"]["points"][-1]["value"])
        asked = len(server.asked)
        bon(data, server, models=["rate/r?connections=3"])
        assert len(server.asked) == asked


def test_without_a_grader_it_ends_with_scores(data: Path) -> None:
    with Stub(world) as server:
        found = bon(data, server, grader=None)
        assert found.curve is None
        assert found.record["systems"][0]["scores"]["effective"]["mean"] == 4.0
        assert not (found.folder / "curve.json").exists()
        assert bon(data, server).curve is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"best_of": [8]}, "only n = 4 samples"),
        ({"models": ["judge/m"]}, "Use rate/m"),
        ({"models": ["likelihood/nowhere"]}, "nowhere"),
        ({"policy": "p"}, "write llm/<model>"),
        ({"policy": "llm/p?temprature=1"}, "Did you mean 'temperature'"),
        ({"policy": "llm/p?view=oracle"}, "view=oracle is not possible"),
        ({"policy": "llm/p?k=3"}, "view=history"),
        ({"policy": "llm/p?top_p=0"}, "top_p"),
        ({"grader": "g"}, "write llm/<model>"),
        ({"policy": None}, "it holds no samples"),
        ({"samples": Path("x.jsonl")}, "not both"),
        ({"samples": Path("x.jsonl"), "policy": None}, "no such file"),
        ({"retry": ["okay"]}, "no such status"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"models": []}, "at least one model"),
    ],
)
def test_what_is_refused_before_anything_is_done(changes: dict[str, Any], message: str, data: Path) -> None:
    with Stub(world) as server:
        with pytest.raises((SpecError, DataError, ModelError), match=message):
            bon(data, server, **changes)
        assert not server.asked
        assert not (data.parent / "bon").exists()


def test_a_file_of_samples_is_checked_line_by_line(data: Path) -> None:
    bad = [
        sample(1, 0),
        sample(1, 0),
        sample(9, 0),
        sample(1, -1),
        sample(1, 1, ""),
        sample(1, 2, id="q1@3"),
        sample(1, 3, status="fine"),
        {"item_id": "q1", "status": "ok"},
    ]
    with pytest.raises(DataError) as told:
        bon(data, None, **stored(data, *bad))
    text = str(told.value)
    for line, part in (
        (2, "there twice"),
        (3, "no item 'q9'"),
        (4, "counts from 0"),
        (5, "no text"),
        (6, "should be 'q1@2'"),
        (7, "status"),
        (8, "k: "),
    ):
        assert any(p.startswith(f"line {line}:") and part in p for p in text.splitlines()), (line, part, text)


def test_more_samples_asked_for_than_a_file_has(data: Path) -> None:
    with pytest.raises(SpecError, match="Say --n 2"):
        bon(data, None, **stored(data, sample(1, 0), sample(1, 1)))


def test_best_of_n_data_brings_its_samples(write: Any) -> None:
    row = {k: v for k, v in make_row(1, rubric_aspects=ASPECTS).items() if k not in ("chosen", "rejected")}
    data = write(row | {"responses": ["quality 0", "quality 4 it is"]})
    with Stub(world) as server:
        found = bon(data, server, policy=None, n=2)
    assert found.curve is not None
    assert found.curve["systems"][0]["points"][-1]["value"] == 1.0


def test_another_policy_does_not_go_into_the_same_folder(data: Path) -> None:
    with Stub(world) as server:
        bon(data, server, grader=None)
        with pytest.raises(RunError, match="another source"):
            bon(data, server, policy="llm/p?temperature=0.2", grader=None)


def test_a_family_tie_is_told(data: Path) -> None:
    with Stub(world) as server:
        found = bon(data, server, policy="llm/qwen2.5-0.5b", grader="llm/qwen2.5-32b")
    assert found.curve is not None
    assert "own family" in found.curve["warnings"][0]


def test_a_limit_of_calls_stops_cleanly_and_goes_on(data: Path) -> None:
    with Stub(world) as server:
        with pytest.raises(Stopped):
            bon(data, server, spending=Spending(max_calls=20))
        assert len(server.asked) == 20
        assert bon(data, server).curve is not None
        assert len(server.asked) == 36


def test_a_dry_run_counts_and_sends_nothing(write: Any) -> None:
    data = write(*rows(10))
    request = Request(
        str(data), ["builtin/length", "rate/r?repeats=2"], ["question", "history"], data.parent / "bon",
        policy="llm/p", grader="llm/g", n=16, base_url="http://127.0.0.1:1",
    )  # fmt: skip
    told = estimate_best_of_n(request)
    calls = {(s["stage"], s["what"]): s["calls"] for s in told["stages"]}
    assert calls["sample", "p"] == 160
    assert calls["score", "builtin/length · question"] == 0
    assert calls["score", "rate/r?repeats=2 · history"] == 320
    assert calls["grade", "g"] == 160 * 2, "two aspects an item"
    assert not (data.parent / "bon").exists()


def test_a_dry_run_knows_what_is_there(data: Path) -> None:
    with Stub(world) as server:
        base = {"policy": "llm/p", "grader": "llm/g", "n": 4, "base_url": server.url}
        out = data.parent / "bon"
        bon(data, server, grader=None)
        rest = Request(str(data), ["builtin/length"], ["question"], out, **base)
        assert [s["calls"] for s in estimate_best_of_n(rest)["stages"]] == [0, 0, 24]
        first = Request(str(data), ["builtin/length"], ["question"], out, unbiased=False, **base)
        server.asked.clear()
        told = estimate_best_of_n(first)["calls"]
        best_of_n(first)
        assert len(server.asked) == told < 24
        assert estimate_best_of_n(first)["calls"] == 0


def args(data: Path, server: Stub, out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "palate", "bon", "--data", str(data), "--model", "rate/r?connections=1"),
        *("--policy", "llm/p?connections=1", "--grader", "llm/g?connections=1", "--n", "3", "--view", "question"),
        *("--out", str(out), "--base-url", server.url, "--json"),
    ]


@pytest.mark.parametrize("after", [5, 14, 25])
def test_killed_in_each_step_and_no_call_repeated(after: int, data: Path, tmp_path: Path) -> None:
    def slow(asked: Asked) -> Reply:
        rating = "You score an answer" in asked.prompt
        return Reply('{"reason": "x", "score": 5}' if rating else world(asked).text, delay=0.05)

    rule: Rule = slow
    with Stub(rule) as server:
        command = args(data, server, tmp_path / "out")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            end = time.monotonic() + 300
            while len(server.asked) < after and time.monotonic() < end:
                time.sleep(0.005)
            os.kill(child.pid, signal.SIGKILL)
        time.sleep(0.2)
        logs = [*(tmp_path / "out").glob("samples.jsonl"), *(tmp_path / "out").glob("*/*/calls.jsonl")]
        came_back = sum(len(RowLog(path, mend=False)) for path in logs)
        assert after - 2 <= came_back < 36
        server.asked.clear()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(server.asked) == 9 + 9 + 18 - came_back
        whole = subprocess.run(args(data, server, tmp_path / "whole"), capture_output=True, text=True, check=False)
        assert json.loads(done.stdout)["curve"] == json.loads(whole.stdout)["curve"]
        assert all(p["n"] == 3 for p in json.loads(done.stdout)["curve"]["systems"][0]["points"])
