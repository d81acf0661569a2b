"""The worked example on published best-of-16 picks, the figures that the chapter on trust tells, and its recipe."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from palate.correlate import correlate
from palate.metrics.ranking import agreement, all_orders, ndcg, spearman
from palate.metrics.swap import swap_test
from places import ROOT

BOARD = (
    "palate eval --data sample --model builtin/random --model builtin/length --model builtin/style "
    "--model builtin/lexical --view question --view history"
)
PAGE = (ROOT / "docs" / "trust.md").read_text()
SCRIPT = ROOT / "examples" / "rewardbench_bon.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rewardbench_bon", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.shared
def test_stored_samples_give_the_published_random_win_rates(shared: Path, example: ModuleType) -> None:
    rows, published = example.read(shared / "rewardbench_bon")
    for told in (published["random_max"], published["random_median"], published["random_min"]):
        index = told["reward_model"].rpartition(".")[2]
        mean = sum(row["judge_pref_vs_gpt35"][index] - 1 for row in rows) / len(rows)
        assert mean == pytest.approx(told["win_rate"] / 100, abs=1e-6)


@pytest.mark.shared
def test_what_the_judged_picks_can_and_cannot_say(shared: Path, example: ModuleType) -> None:
    rows, published = example.read(shared / "rewardbench_bon")
    found = example.picks(rows, published)
    assert [p.judged for p in found] == [469, 491, 418, 285, 314, 333]
    assert [round(p.preference, 3) for p in found] == [0.321, 0.301, 0.325, 0.276, 0.445, 0.352]
    bounds = [p.bounds(len(rows)) for p in found]
    assert all(low <= p.published <= high for p, (low, high) in zip(found, bounds, strict=True))
    assert max(low for low, _ in bounds) < min(high for _, high in bounds)
    assert all(p.unseen(len(rows)) > p.preference for p in found)  # longer picks, which the judge likes better
    assert spearman([p.length for p in found], [p.judged for p in found]) < -0.8


@pytest.mark.shared
def test_six_models_do_not_tell_it_from_chance(shared: Path, example: ModuleType) -> None:
    found = example.picks(*example.read(shared / "rewardbench_bon"))
    truth, scores, lengths = zip(*((p.published, p.preference, p.length) for p in found), strict=True)
    close = agreement("ndcg", truth, scores)
    assert (close.value, close.p_greater) == (pytest.approx(0.967, abs=5e-4), pytest.approx(42 / 720))
    rank = agreement("spearman", truth, scores)
    assert (rank.value, rank.p_greater) == (pytest.approx(0.6), pytest.approx(87 / 720))
    swap = swap_test("spearman", truth, scores, lengths)
    assert swap.difference == pytest.approx(0.2286, abs=1e-4)
    assert swap.p is not None
    assert swap.p > 0.5
    assert swap.least_p == pytest.approx(1 / 32)


@pytest.mark.shared
def test_order_by_length_makes_the_first_samples_worse(shared: Path, example: ModuleType) -> None:
    rows, _ = example.read(shared / "rewardbench_bon")
    stored = example.best_of(rows, None)
    for seed in range(5):
        mixed = example.best_of(rows, seed)
        assert (mixed[:6] > stored[:6]).all()
        assert mixed[-1] == pytest.approx(stored[-1])  # the best of all eleven does not depend on their order
    assert (example.best_of(rows, 0) == example.best_of(rows, 0)).all()


@pytest.mark.shared
def test_the_script_prints_what_the_page_tells_and_writes_tables(shared: Path, tmp_path: Path) -> None:
    args = [sys.executable, str(SCRIPT), str(shared / "rewardbench_bon"), "--out", str(tmp_path / "out")]
    shown = subprocess.run(args, capture_output=True, text=True, check=True).stdout
    for figure in (
        "0.445 as stored, 0.488 shuffled",
        "0.098 – 0.744",
        "+0.967",
        "p 0.0583",
        "95 % -0.289 – +0.958",
        "+0.229, p 0.562",
    ):
        assert figure in shown
    assert "Cannot be said" in shown
    tables = {p.name: p.read_text().splitlines() for p in (tmp_path / "out").iterdir()}
    assert sorted(tables) == ["length.csv", "picks.csv", "published.csv"]
    assert tables["published.csv"][0] == "model,score,low,high"
    assert all(len(lines) == 7 for lines in tables.values())


def test_the_page_shows_the_power_that_its_python_prints() -> None:
    code, shown = re.findall(r"^```(?:python|text)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[:2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == shown


def test_the_page_tells_the_shares_of_random_orders() -> None:
    order = range(6)
    for kind in ("rank", "rank0", "exponential"):
        share = (ndcg(order, all_orders(6), kind) >= 0.918).mean()
        assert re.search(rf"`{kind}`\) \| {share:.4f} \|", PAGE)
    found = ndcg(order, all_orders(6))
    assert (round(found.mean(), 2), round(found.min(), 2)) == (0.85, 0.70)


def test_the_recipe_names_three_benchmarks_and_two_outcomes() -> None:
    recipe = tomllib.loads((ROOT / "recipes" / "correlate-paper.toml").read_text())
    assert (len(recipe["benchmark"]), len(recipe["downstream"])) == (3, 2)


@pytest.mark.shared
def test_two_personal_benchmarks_are_compared_as_the_page_tells(shared: Path, tmp_path: Path) -> None:
    block = next(b for b in re.findall(r"^```bash not-run\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "prism" in b)
    score, compare, *_ = block.splitlines()
    assert BOARD in PAGE
    for line in (BOARD, "palate report runs --out board", score, compare):
        args = shlex.split(line.replace("../shared", str(shared.parent)))[1:]
        done = subprocess.run([sys.executable, "-m", "palate", *args], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "correlate" / "correlate.json").read_text())
    assert {row["n"] for row in found["rows"]} == {4}
    assert all("cannot be told" in told for told in found["verdict"])


@pytest.mark.shared
def test_the_tables_of_the_example_go_through(shared: Path, example: ModuleType, tmp_path: Path) -> None:
    picked = example.picks(*example.read(shared / "rewardbench_bon"))
    assert len(picked) == 6
    subprocess.run([sys.executable, str(SCRIPT), str(shared / "rewardbench_bon"), "--out", str(tmp_path)], check=True)
    names = ("picks", "length", "published")
    one, other, truth = (str(tmp_path / f"{name}.csv") for name in names)
    found = correlate([one, other], [truth], statistics=["spearman"])
    assert [round(r.value or 0, 3) for r in found.rows] == [0.6, 0.371]
    assert found.comparisons[0].p == pytest.approx(0.5625)
