"""Boards, curves and policy evaluations as the other commands write them, from the sample through to table and page."""

import json
from pathlib import Path
from typing import Any

import pytest

import palate
from bon.world import world
from correlate.test_correlate import board, table
from llm.stub import Asked, Reply, Stub
from models import TinyModels
from palate.bon import Request, best_of_n
from palate.cli.app import run
from palate.correlate import correlate, power_of, write_correlation
from palate.errors import SpecError
from palate.metrics.latent import power
from palate.metrics.swap import swap_power
from palate.report import write_report

PROBES = ["builtin/length", "builtin/lexical", "builtin/style", "builtin/random"]
VIEWS = ["question", "history"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `runs`, their `board` and a best-of-4 curve of the same models in `bon`, all of the sample."""
    folder = tmp_path_factory.mktemp("made")
    palate.evaluate("sample", models=PROBES, views=VIEWS, out=folder / "runs", limit=12)
    write_report([folder / "runs"], folder / "board")
    with Stub(graded) as server:
        options: dict[str, Any] = {"policy": "llm/p", "grader": "llm/g", "n": 4, "limit": 6, "base_url": server.url}
        best_of_n(Request("sample", PROBES, VIEWS, folder / "bon", **options))
    return folder


def graded(asked: Asked) -> Reply:
    """A policy as in `bon.world`, and a grader that likes the fifth quality most."""
    if "You check how well an answer" not in asked.prompt:
        return world(asked)
    number = int(asked.prompt.partition("quality ")[2][0])
    return Reply(json.dumps({"reason": "so", "score": min(2, number)}))


def figures(path: Path, metric: str) -> dict[str, float]:
    """Return the values of one metric of a board by system, read plainly."""
    return {r["system"]: r["value"] for r in json.loads(path.read_text())["rows"] if r["metric"] == metric}


@pytest.mark.parametrize("benchmark", ["runs", "board", "board/board.json"])
def test_a_board_and_a_curve_of_the_sample_go_through(made: Path, tmp_path: Path, benchmark: str) -> None:
    found = correlate([f"{made / benchmark}?view=history"], [str(made / "bon")], probes=True)
    truth = figures(made / "bon" / "board.json", "bon@4/history")
    values = figures(made / "board" / "board.json", "accuracy/history")
    [left], [right] = found.benchmarks, found.downstreams
    assert {name: m.value for name, m in left.values.items()} == pytest.approx(values)
    assert {name: m.value for name, m in right.values.items()} == pytest.approx(truth)
    assert {(r.statistic, r.n) for r in found.rows} == {(r.statistic, 4) for r in found.rows}
    assert len(found.rows) == 5
    written = write_correlation(found, tmp_path / "out")
    page = written.page.read_text()
    assert all(name in page for name in PROBES)
    told = json.loads(written.json.read_text())
    assert told["not_ours"]
    assert "Published figures, not ours" in page
    assert "0.6586" in page


def test_a_view_is_chosen_and_a_metric_too(made: Path) -> None:
    one = correlate([f"{made / 'board'}?view=question"], [f"{made / 'bon'}?metric=bon@1&view=question"], probes=True)
    assert (one.benchmarks[0].metric, one.downstreams[0].metric) == ("accuracy/question", "bon@1/question")
    with pytest.raises(SpecError, match=r"no view 'histroy'\. Did you mean 'history'"):
        correlate([f"{made / 'board'}?view=histroy"], [str(made / "bon")], probes=True)


def test_data_has_to_be_chosen_where_a_board_holds_several(tmp_path: Path) -> None:
    values = {"one": (0.5, 0.6, 0.7), "two": (0.5, 0.7, 0.7)}
    rows = [(m, v, {"data": d}) for d, each in values.items() for m, v in zip("abc", each, strict=True)]
    both, down = board(tmp_path, *rows), table(tmp_path, "down", "a,1 b,2 c,3")
    with pytest.raises(SpecError, match=r"several of data: one, two. Choose with \?data="):
        correlate([both], [down])
    assert correlate([f"{both}?data=two"], [down]).benchmarks[0].values["b"].value == pytest.approx(0.7)


def test_a_folder_of_several_boards_is_read_as_one(tmp_path: Path) -> None:
    for name, rows in {"x": (("a", 0.5, {}), ("b", 0.6, {})), "y": (("c", 0.7, {}),)}.items():
        (tmp_path / "boards" / name).mkdir(parents=True)
        board(tmp_path / "boards" / name, *rows)  # type: ignore[arg-type]
    found = correlate([str(tmp_path / "boards")], [table(tmp_path, "down", "a,1 b,2 c,3")])
    assert list(found.benchmarks[0].values) == ["a", "b", "c"]


def test_a_second_run_of_the_same_counts_once_and_the_newest(tmp_path: Path) -> None:
    for name in ("first", "again"):
        palate.evaluate("sample", models=PROBES[:3], views=["history"], out=tmp_path / "runs" / name, limit=6)
    found = correlate([str(tmp_path / "runs")], [str(tmp_path / "runs" / "first")], probes=True)
    assert len(found.benchmarks[0].values) == 3
    assert any("3 older runs of the same model are left out" in note for note in found.notes)


@pytest.mark.hf
def test_evaluations_of_trained_policies_are_ranked_by_what_trained_them(tmp_path: Path) -> None:
    from palate.ppo.evaluate import Judging, evaluate

    tiny = TinyModels(tmp_path / "tiny")
    before = tiny("llama", causal=True, num_hidden_layers=1)
    after = [tiny("llama", causal=True, num_hidden_layers=1, initializer_range=r) for r in (0.05, 0.1, 0.2)]
    with Stub(lambda asked: Reply(json.dumps({"reason": "so", "score": ord(asked.prompt[-40]) % 3}))) as server:
        for number, policy in enumerate(after):
            judging = Judging.of({
                "policy_before": str(before), "policy_after": str(policy), "data": "sample", "grader": "llm/g",
                "response": 6, "view": "history?k=1", "batch": 4, "limit": 3,
            })  # fmt: skip
            evaluate(judging, tmp_path / "ppo" / str(number), base_url=server.url)
    boards = [tmp_path / "ppo" / str(n) / "board.json" for n in range(3)]
    rows = [r for b in boards for r in json.loads(b.read_text())["rows"]]
    truth = {r["system"]: r["value"] for r in rows if r["metric"] == "ppo/grade" and r["source"]["side"] == "after"}
    assert len(truth) == 3
    csv = table(tmp_path, "bench", " ".join(f"{name},{k}" for k, name in enumerate(truth)))
    found = correlate([csv], [str(tmp_path / "ppo")])
    assert found.downstreams[0].metric == "ppo/grade"
    assert {name: m.value for name, m in found.downstreams[0].values.items()} == pytest.approx(truth)


def test_a_recipe_sets_what_the_command_line_does_not(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        f'benchmark = ["{made / "board"}?view=history"]\ndownstream = ["{made / "bon"}"]\nprobes = true\n'
        f'statistic = ["spearman", "kendall"]\nout = "{tmp_path / "out"}"\n'
    )
    assert run(["correlate", "--config", str(recipe), "--json"]) == 0
    assert [r["statistic"] for r in json.loads(capsys.readouterr().out)["rows"]] == ["spearman", "kendall"]
    assert run(["correlate", "--config", str(recipe), "--statistic", "ndcg", "--json"]) == 0
    assert [r["statistic"] for r in json.loads(capsys.readouterr().out)["rows"]] == ["ndcg"]
    recipe.write_text('benchmrak = ["x"]\n')
    assert run(["correlate", "--config", str(recipe)]) == 2
    assert "Did you mean 'benchmark'" in capsys.readouterr().err


def test_power_is_that_of_the_simulation_and_says_how_many_models_it_takes(tmp_path: Path) -> None:
    one = table(tmp_path, "one", "a,0.51 b,0.58 c,0.60 d,0.71 e,0.66 f,0.74")
    two = table(tmp_path, "two", "a,0.2 b,0.1 c,0.4 d,0.3 e,0.6 f,0.5")
    planned = power_of(correlate([one], [two], statistics=["spearman"]), 0.8)
    at_hand, *_ = planned.curves
    assert at_hand.power == pytest.approx([power("spearman", 0.8, n) for n in at_hand.models])
    assert planned.apart is not None
    assert planned.apart.power == pytest.approx(
        [swap_power("spearman", 0.8, 0.4, 0.32, n) for n in planned.apart.models]
    )
    enough = next(n for n, p in zip(at_hand.models, at_hand.power, strict=True) if p >= 0.8)
    assert f"takes {enough} models with the noise at hand" in planned.sentence


def test_more_samples_downstream_are_less_noise(tmp_path: Path) -> None:
    one = table(tmp_path, "one", "a,0.51 b,0.58 c,0.60 d,0.71 e,0.66 f,0.74")
    path = tmp_path / "two.csv"
    values = {"a": 0.2, "b": 0.1, "c": 0.4, "d": 0.3, "e": 0.6, "f": 0.5}
    rows = [f"{name},{v},{v - 0.2},{v + 0.2}" for name, v in values.items()]
    path.write_text("\n".join(["model,score,low,high", *rows]) + "\n")
    found = correlate([one], [str(path)], statistics=["spearman"])
    share = found.rows[0].noise[1]
    variance = (0.2 / 1.959964) ** 2
    assert share == pytest.approx(variance / 0.035, rel=1e-4)  # 0.035: the variance of the six values
    curves = {c.name: c.power for c in power_of(found, 0.8).curves}
    assert share is not None
    for name, factor in (("a quarter of the samples downstream", 0.25), ("four times the samples downstream", 4)):
        noise = (variance / factor) / (variance / factor + 0.035 - variance)
        assert curves[name][6] == power("spearman", 0.8, 12, truth_noise=noise)
    fewer, more = (
        curves[name][6] for name in ("a quarter of the samples downstream", "four times the samples downstream")
    )
    assert fewer < curves["noise as at hand"][6] < more


def test_two_benchmarks_of_which_one_is_perfect_are_told_apart_more_often_with_more_models() -> None:
    few, many = (swap_power("spearman", 0.95, 0.0, 0.0, n) for n in (5, 15))
    assert few == 0.0  # the least p of five is 0.0625
    assert many > 0.7
    assert swap_power("spearman", 0.5, 0.5, 0.3, 10) <= 0.1
