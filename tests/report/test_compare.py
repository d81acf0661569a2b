"""Two runs of the same items: what agrees is counted, what differs is named, and what cannot be told is no number."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palate
from llm.stub import Stub, always, verdict
from models import TinyModels
from palate.cli.app import run as run_command
from palate.errors import RunError, SpecError
from palate.evaluation.runs import Row
from palate.report import compare_runs
from palate.report.agreement import UNUSABLE, gaps_of, pair_up
from palate.report.compare import differing
from palate.store import digest_of
from rows import make_row

Told = tuple[float, float] | str | None
Make = Callable[..., Path]
NASTY = "\x1b[31m\u202eorg/\n" + "x" * 300
SAME = {f"q{k}": (2.0, 1.0) for k in range(4)}


def row(item: str, told: Told) -> dict[str, Any]:
    """Return a row with these two scores, or with this status."""
    found = {"id": item, "status": told, "outcome": None, "chosen_score": None, "rejected_score": None}
    if isinstance(told, tuple):
        up, down = told
        outcome = "tie" if up == down else "correct" if up > down else "wrong"
        found |= {"status": "ok", "outcome": outcome, "chosen_score": up, "rejected_score": down}
    return found | {"shown": {"posts": [], "dropped": 0}, "notes": []}


def edit(folder: Path, **changes: Any) -> None:
    """Change the record of a run; `config`, `model` and `environment` are changed field by field."""
    path = folder / "run.json"
    record = json.loads(path.read_text())
    record["config"]["model"] |= changes.pop("model", {})
    for name in ("config", "environment"):
        record[name] |= changes.pop(name, {})
    record |= changes
    path.write_text(json.dumps(record | {"digest": digest_of(record["config"])}))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make the folder of a run whose items have the scores given, or the status; a None is no row at all."""

    def to(name: str, told: Mapping[str, Told], **changes: Any) -> Path:
        data = tmp_path / "data.jsonl"
        data.write_text("".join(json.dumps(make_row(k)) + "\n" for k in range(3)))
        folder = palate.evaluate(data, "builtin/lexical", "history", tmp_path / "seed").runs[0].folder
        made = shutil.copytree(folder, tmp_path / name)
        (made / "rows.jsonl").write_text("".join(json.dumps(row(i, t)) + "\n" for i, t in told.items() if t))
        edit(made, **changes)
        return made

    return to


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


# figures


def test_gaps_and_one_flipped_pair(make: Make) -> None:
    """Gaps of 0.05 throughout and one pair whose answers change places."""
    a = make("a", {"q1": (7.94, 3.0), "q2": (1.0, 2.0), "q3": (1.04, 1.0), "q4": (0.5, 0.1)})
    b = make("b", {"q1": (7.89, 3.0), "q2": (1.05, 2.05), "q3": (1.0, 1.05), "q4": (0.5, 0.1)})
    found = compare_runs(a, b)
    assert (len(found.scored), found.same, found.share) == (4, 3, 0.75)
    assert [p.id for p in found.flipped] == ["q3"]
    assert found.gaps is not None
    assert found.gaps.largest == 0.05
    assert (found.gaps.scores, found.gaps.equal) == (8, 3)
    assert found.gaps.median == pytest.approx(0.045)
    assert found.gaps.margin_largest == 0.09
    assert found.gaps.margin_median == 0.025
    assert found.accuracy == (0.75, 0.5)
    assert found.difference == -0.25
    assert [p.id for p in found.worst] == ["q3", "q1", "q2"]
    assert found.passed is None


def test_a_tie_that_is_decided_is_no_flip(make: Make) -> None:
    a = make("a", {"q1": (1.0, 1.0), "q2": (2.0, 1.0), "q3": (1.0, 1.0)})
    found = compare_runs(a, make("b", {"q1": (1.0, 0.99), "q2": (2.0, 2.0), "q3": (1.0, 1.0)}))
    assert ([p.id for p in found.tie_changed], found.flipped, found.same) == (["q1", "q2"], (), 1)
    assert found.accuracy == (2 / 3, 2 / 3)
    assert found.as_dict()["order"]["outcomes"] == [
        {"a": "tie", "b": "correct", "count": 1},
        {"a": "correct", "b": "tie", "count": 1},
        {"a": "tie", "b": "tie", "count": 1},
    ]


def test_items_and_statuses_that_only_one_run_has(make: Make) -> None:
    a = make("a", {"q1": (2.0, 1.0), "q2": "overlong", "q3": (2.0, 1.0), "q4": "error", "q5": (2.0, 1.0)})
    b = make("b", {"q0": (2.0, 1.0), "q1": (2.0, 1.0), "q2": "overlong", "q3": "error", "q4": (2.0, 1.0)})
    found = compare_runs(a, b)
    assert (found.only_a, found.only_b, len(found.pairs), len(found.scored)) == (("q5",), ("q0",), 4, 1)
    assert [(p.id, p.a.status, p.b.status) for p in found.status_differs] == [
        ("q3", "ok", "error"),
        ("q4", "error", "ok"),
    ]
    assert found.accuracy == (1.0, 1.0)
    assert {"a": "overlong", "b": "overlong", "count": 1} in found.as_dict()["items"]["statuses"]


def test_nothing_scored_by_both_is_no_number(make: Make) -> None:
    found = compare_runs(make("a", {"q1": (2.0, 1.0)}), make("b", {"q1": "error"}), tolerance=1)
    told = strict(json.dumps(found.as_dict(), allow_nan=False))
    assert (told["gaps"], told["order"]["share"], told["accuracy"]["a"], told["accuracy"]["difference"]) == (None,) * 4
    assert set(told["reasons"]) == {"gaps", "share", "accuracy", "difference"}
    assert found.passed is False


def test_a_row_without_a_believable_outcome_is_not_scored(make: Make) -> None:
    a, b = make("a", SAME), make("b", SAME)
    lines = [json.loads(line) for line in (b / "rows.jsonl").read_text().splitlines()]
    lines[0]["rejected_score"] = None
    lines[1] |= {"outcome": "wrong"}
    (b / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = compare_runs(a, b, tolerance=9)
    assert [(p.id, p.b.status) for p in found.status_differs] == [("q0", UNUSABLE)]
    assert not found.flipped
    assert found.b.remarks == ("2 rows whose outcome does not follow from their scores",)
    assert found.failures == ("1 item with another status",)


def test_outcomes_without_scores_cannot_pass_a_tolerance(make: Make) -> None:
    a, b = make("a", SAME), make("b", SAME)
    lines = [json.loads(line) for line in (b / "rows.jsonl").read_text().splitlines()]
    lines[0] |= {"chosen_score": None, "rejected_score": None}
    (b / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert compare_runs(a, b, tolerance=9).failures == ("1 pair without scores",)


numbers = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=8))
def test_figures_are_those_of_a_plain_loop(scores: list[tuple[float, float, float, float]]) -> None:
    names = [f"q{k}" for k in range(len(scores))]
    a = {n: Row.model_validate(row(n, (s[0], s[1]))) for n, s in zip(names, scores, strict=True)}
    b = {n: Row.model_validate(row(n, (s[2], s[3]))) for n, s in zip(names, scores, strict=True)}
    pairs, gaps = pair_up(a, b), gaps_of(pair_up(a, b))
    assert not isinstance(gaps, str)
    assert gaps.largest == pytest.approx(max(max(abs(x - u), abs(y - v)) for x, y, u, v in scores), abs=1e-9)
    assert gaps.margin_largest == pytest.approx(max(abs((x - y) - (u - v)) for x, y, u, v in scores), abs=1e-9)
    assert gaps.equal == sum((x == u) + (y == v) for x, y, u, v in scores)
    assert sum(p.flipped for p in pairs) == sum((x > y and u < v) or (x < y and u > v) for x, y, u, v in scores)
    turned = gaps_of(pair_up(b, a))
    assert turned == gaps


# what differs


def test_differing_fields_are_named_with_both_values(make: Make) -> None:
    a = make("a", SAME, environment={"dtype": "float32", "device": "cpu"}, model={"options": {"attn": "eager"}})
    b = make("b", SAME, environment={"dtype": "bfloat16", "device": "cpu"}, limit=4)
    found = compare_runs(a, b)
    assert found.environment == {"dtype": ("float32", "bfloat16")}
    assert found.config["limit"] == (None, 4)
    assert found.config["model.options.attn"] == ("eager", None)
    assert found.other_model == ()


def test_true_and_one_are_not_the_same() -> None:
    assert differing({"x": True, "y": {"z": 1}}, {"x": 1, "y": {"z": 1}}) == {"x": (True, 1)}


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ({"weights": "w1", "id": "x"}, {"weights": "w2", "id": "x"}, ("model.weights",)),
        ({"weights": "w1", "id": "/here/x"}, {"weights": "w1", "id": "org/x"}, ()),
        ({"id": "x"}, {"id": "y"}, ("model.id",)),
        ({"weights": "w1", "id": "x"}, {"id": "x", "family": "http"}, ("model.family",)),
    ],
)
def test_different_models_are_compared_and_named(
    a: Any, b: Any, differ: tuple[str, ...], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = make("a", SAME, model=a), make("b", SAME, model=b)
    assert compare_runs(one, other).other_model == differ
    assert run_command(["report", "--compare", str(one), str(other)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("These are different models") == bool(differ)
    assert all(name in shown for name in differ)


def test_what_a_reader_has_to_know_of_a_run(make: Make) -> None:
    a = make("a", SAME, status="stopped", earlier_environments=[{"dtype": "float16"}])
    (a / "metrics.json").unlink()
    b = make("b", SAME)
    record = json.loads((b / "run.json").read_text())
    (b / "run.json").write_text(json.dumps(record | {"digest": "0" * 64}))
    found = compare_runs(a, b)
    assert found.a.remarks == ("unfinished (stopped)", "computed in 2 environments; the last one is compared")
    assert found.b.remarks == ("the record does not fit its own digest",)
    assert found.config == {}


def test_other_entries_shown_are_counted(make: Make) -> None:
    a, b = make("a", SAME), make("b", SAME)
    text = (b / "rows.jsonl").read_text()
    (b / "rows.jsonl").write_text(text.replace('"posts": []', '"posts": ["p"]', 1))
    assert compare_runs(a, b).shown_differs == 1


# what is refused


def test_what_cannot_be_compared_is_one_message(make: Make, tmp_path: Path) -> None:
    a = make("a", SAME)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(a)
    other_data = {"digest": "d" * 64, "skipped": 0}
    for b, said in [
        (tmp_path / "nowhere", "no such folder"),
        (tmp_path / "empty", "not a run folder"),
        (tmp_path, r"holds \d runs"),
        (a, "same run folder"),
        (tmp_path / "link", "same run folder"),
        (make("data", SAME, config={"data": other_data}), "different data"),
        (make("view", SAME, config={"view": "question"}), "different views, history and question"),
        (make("k", SAME, config={"view": "history?k=5"}), "different views"),
        (make("items", {"z": (1.0, 2.0)}), "no item in common"),
        (make("large", SAME | {"q0": (1e308, -1e308)}), "item 'q0'"),
    ]:
        with pytest.raises(RunError, match=said):
            compare_runs(a, b)
        assert run_command(["report", "--compare", str(a), str(b)]) == 2


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_that_is_none(tolerance: float, make: Make) -> None:
    with pytest.raises(SpecError, match="tolerance"):
        compare_runs(make("a", SAME), make("b", SAME), tolerance)


# judges


def test_judges_are_compared_by_outcome(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(make_row(k)) + "\n" for k in range(3)))
    folders = []
    for name, letter in (("a", "A"), ("b", "B")):
        with Stub(always(verdict(letter))) as server:
            model = "judge/m?orders=one"
            run = palate.evaluate(data, model, "question", tmp_path / name, base_url=server.url).runs[0]
            folders.append(run.folder)
    found = compare_runs(*folders, tolerance=9)
    assert (len(found.scored), found.same, len(found.flipped)) == (3, 0, 3)
    assert (found.gaps, found.worst, found.flipped[0].a.chosen) == (None, (), None)
    assert found.reasons["gaps"] == "a judge compares two answers and scores neither: a and b"
    assert set(found.environment) == {"base_url"}
    assert found.passed is False
    strict(json.dumps(found.as_dict(), allow_nan=False))


# the command


def test_exit_codes_and_the_line_that_says_why(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    a = make("a", {"q1": (2.0, 1.0), "q2": (1.0, 2.0), "q3": (2.0, 1.0)})
    near = make("near", {"q1": (2.05, 1.0), "q2": (1.0, 2.0), "q3": (2.0, 1.0)})
    flip = make("flip", {"q1": (2.0, 2.01), "q2": "error", "q3": (2.0, 1.0)})
    for b, options, code, said in [
        (near, [], 0, "3 of 3 pairs in the same order, 0 flipped, largest gap 0.05\n"),
        (near, ["--tolerance", "0.05"], 0, "agree: within the tolerance of 0.05"),
        (near, ["--tolerance", "0.049"], 1, "disagree: largest gap 0.05 over 0.049\n"),
        (flip, [], 0, "1 of 2 pairs in the same order, 1 flipped, largest gap 1.01\n"),
        (flip, ["--tolerance", "2"], 1, "disagree: 1 pair flipped; 1 item with another status\n"),
    ]:
        assert run_command(["report", "--compare", str(a), str(b), *options]) == code
        shown = capsys.readouterr()
        assert said in shown.out + shown.err


def test_json_is_strict_and_alone(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = make("a", SAME), make("b", dict.fromkeys(SAME, (1.0, 2.0)))
    assert run_command(["report", "--json", "--compare", str(a), str(b), "--tolerance", "5"]) == 1
    told = strict(capsys.readouterr().out)
    assert (told["order"]["flipped"], told["gaps"]["largest"], told["passed"]) == (4, 1.0, False)
    assert told == compare_runs(a, b, 5).as_dict()


def test_flipped_ones_are_shown_up_to_ten(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    up, down = ({f"q{k}": told for k in range(14)} for told in ((2.0, 1.0), (1.0, 2.0)))
    a, b = make("a", up), make("b", down)
    assert run_command(["report", "--compare", str(a), str(b)]) == 0
    assert "… and 4 more (--json has all)" in capsys.readouterr().out
    told = compare_runs(a, b).as_dict()
    assert (len(told["flipped"]), len(told["worst"])) == (14, 5)


def test_hostile_names_stay_on_their_line(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    long = {NASTY + str(k): (-1.23456789e-05, 1.5) for k in range(2)}
    model = {"id": NASTY, "options": {NASTY: NASTY}}
    spot = {"digest": "d" * 64, "skipped": 0}
    a = make("a", long, model=model, environment={NASTY: NASTY}, data={"spec": "x", "name": NASTY})
    b = make("b", dict.fromkeys(long, (1e300, 1.5)), model={"id": "[bold]x[/bold]"})
    c = make("c", long, config={"data": spot}, data={"spec": "x", "name": NASTY})
    assert run_command(["report", "--compare", str(a), str(b)]) == 0
    assert run_command(["report", "--compare", str(a), str(c)]) == 2
    shown = capsys.readouterr()
    assert "[bold]x[/bold]" in shown.out
    assert all(len(line) <= 80 and line.isprintable() for line in shown.out.splitlines() if str(a.parent) not in line)
    assert "\x1b" not in shown.out + shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "args", [[], ["--tolerance", "1", "x"], ["--compare", "x"], ["--compare", "x", "y", "z"], ["--compare", "x", "x"]]
)
def test_what_the_command_does_not_take(args: list[str]) -> None:
    assert run_command(["report", *args]) == 2


def test_no_page_is_written(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = make("a", SAME), make("b", SAME)
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert run_command(["report", "--compare", "a", "b"]) == 0
    assert set(tmp_path.rglob("*")) == before
    assert run_command(["report", "--compare", "a", "b", "--out", "page"]) == 2
    assert (a.exists(), b.exists()) == (True, True)


# real runs


@pytest.mark.hf
def test_a_real_model_with_another_kernel_and_another_batch(tmp_path: Path) -> None:
    folder = TinyModels(tmp_path / "models")()

    def run(name: str, options: str) -> Path:
        made = palate.evaluate("sample", f"hf/{folder}?{options}", "history", tmp_path / name, limit=6)
        return made.runs[0].folder

    plain, eager = run("a", "attn=sdpa"), run("b", "attn=eager")
    kernel = compare_runs(plain, eager, tolerance=1e-5)
    assert kernel.passed
    assert (len(kernel.scored), kernel.same, kernel.other_model) == (6, 6, ())
    assert kernel.config == {"model.options.attn": ("sdpa", "eager")}
    assert kernel.environment == {"attention_kernel": ("sdpa", "eager")}
    batch = compare_runs(plain, run("c", "attn=sdpa&batch_tokens=1"), tolerance=1e-5)
    assert batch.passed
    assert batch.config == {"model.options.batch_tokens": (None, "1")}
    assert set(batch.environment) == {"batching"}
