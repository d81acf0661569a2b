"""The report believes rows, not claims; says what it leaves out; and its figures are those of the runs."""

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import palate
from palate.data import open_data
from palate.errors import PalateError, RunError
from palate.evaluation import Run, measure
from palate.evaluation.names import cut, distinct
from palate.planning.made import plan_all
from palate.report import Report, figures, write_report
from palate.report.browser import chunks
from palate.report.build import family_of
from palate.report.lines import lines
from palate.report.load import load_boards
from palate.store import RowLog, RunFolder, digest_of
from rows import make_row

VIEWS = ["question", "history", "swapped", "history?user=none", "oracle"]
NASTY = '</script><img src=x onerror=alert(1)>"\' onmouseover="alert(2) \u2028 😀 \u05d0\u05d1'


class Elements(HTMLParser):
    """Collects the names of elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def evaluate(data: Path | str, out: Path, *models: str, views: Any = VIEWS, **options: Any) -> list[Run]:
    return list(palate.evaluate(str(data), models or ["builtin/length", "builtin/lexical"], views, out, **options))


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def page_of(made: Report) -> str:
    return made.page.read_text()


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change(folder: Path, *, fit: bool = True, **config: Any) -> None:
    """Change the configuration of a run; with `fit` the digest too, so that it is another honest run."""
    record = json.loads((folder / "run.json").read_text())
    record["config"] |= config
    edit(folder / "run.json", config=record["config"], digest=digest_of(record["config"]) if fit else record["digest"])


def rename(folder: Path, **identity: Any) -> None:
    """Make a run one of another model."""
    record = json.loads((folder / "run.json").read_text())
    change(folder, model=record["config"]["model"] | identity)


def edit_row(folder: Path, number: int, **changes: Any) -> str:
    """Change one row and return its item."""
    path = folder / "rows.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[number] = {k: v for k, v in (rows[number] | changes).items() if v != "gone"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(rows[number]["id"])


def made_up(out: Path, name: str, right: Any, **identity: Any) -> None:
    """Write a run on the sample in which the items are answered as `right(number)` says: True, False or None."""
    data = open_data("sample")
    run = next(iter(evaluate("sample", out / "seed", "builtin/lexical", views=["history"])))
    folder = RunFolder(out / name)
    shutil.copytree(run.folder, folder.path)
    shutil.rmtree(out / "seed")
    (folder.path / "rows.jsonl").unlink()
    with folder, RowLog(folder.rows) as log:
        for k, item in enumerate(data.ids):
            won = right(k)
            told = {"status": "refused", "outcome": None, "chosen_score": None, "rejected_score": None}
            if won is not None:
                told = {"outcome": "correct" if won else "wrong", "chosen_score": float(won), "rejected_score": 0.5}
            log.append(dict(run.rows[item]) | told)
        folder.write_metrics(measure(data, log.rows, data.ids))
    rename(folder.path, **{"family": "hf", "id": f"org/{name}"} | identity)


def board_of(made: Report) -> dict[tuple[str, str], Any]:
    return {(r["system"], r["metric"]): r for r in strict(made.board.read_text())["rows"]}


def marks(out: Path, *paths: Path) -> list[str]:
    return [m for board in load_boards(list(paths) or [out]) for run in board.runs for m in run.marks]


@pytest.fixture
def data(write: Any) -> Path:
    path: Path = write(*(make_row(k, user_id=f"u{k // 2}", domain=f"d{k % 2}") for k in range(1, 13)))
    return path


def test_board_holds_the_metrics_of_the_runs(data: Path, tmp_path: Path) -> None:
    runs = evaluate(data, tmp_path / "runs")
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    rows = strict(made.board.read_text())["rows"]
    found = {(r["system"], r["metric"]): r for r in rows}
    for run in runs:
        row = found[run.model, f"accuracy/{run.view}"]
        assert (row["value"], row["n"], row["ci95"]) == (run.metrics["accuracy"], 12, run.metrics["ci95"])
    assert all(set(r) == {"system", "metric", "value", "ci95", "n", "source"} for r in rows)
    assert found["builtin/lexical", "lift"]["value"] == pytest.approx(
        found["builtin/lexical", "accuracy/history"]["value"]
        - found["builtin/lexical", "accuracy/history?user=none"]["value"]
    )


def test_the_page_is_alone_and_its_data_strict(data: Path, tmp_path: Path) -> None:
    evaluate(data, tmp_path / "runs")
    page = page_of(write_report([tmp_path / "runs"], tmp_path / "out"))
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert "default-src 'none'" in page
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        strict(block)


def test_figures_are_saved_apart_and_repeat(data: Path, tmp_path: Path) -> None:
    evaluate(data, tmp_path / "runs")
    first = write_report([tmp_path / "runs"], tmp_path / "a")
    second = write_report([tmp_path / "runs"], tmp_path / "b")
    assert {f.name for f in first.figures} >= {"ladder-builtin_lexical.svg", "users.svg"}
    for one, two in zip(first.figures, second.figures, strict=True):
        assert one.read_text() == two.read_text()
        assert one.read_text().startswith("<?xml")
    assert page_of(first) == page_of(second)


def test_foreign_text_cannot_become_markup(write: Any, tmp_path: Path) -> None:
    rows = [
        make_row(k, question=f"Q{k} {NASTY}", chosen=f"A{k} {NASTY}", domain=NASTY, user_id=f"{NASTY}{k}",
                 profile=[{"text": NASTY}], narrative=NASTY, rejected="x" * 10_000)
        for k in (1, 2)
    ]  # fmt: skip
    runs = evaluate(write(*rows, name="a b.jsonl"), tmp_path / "runs", "builtin/length", views=["history"])
    rename(runs[0].folder, family=NASTY, id=f"{NASTY}/x", options={NASTY: NASTY})
    page = page_of(write_report([tmp_path / "runs"], tmp_path / "out"))
    found = Elements()
    found.feed(page)
    assert not {"img", "iframe", "object"} & found.names
    assert not any(name.startswith("on") for name in found.attributes)
    assert page.count("</script>") == len(re.findall(r"<script[ >]", page))


def test_a_folder_that_lies_is_marked_and_not_ranked(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])[0]
    assert marks(tmp_path / "runs") == []
    edit(run.folder / "metrics.json", accuracy=0.99)
    assert "does not agree with the rows: accuracy" in marks(tmp_path / "runs")[0]
    board = load_boards([tmp_path / "runs"])[0]
    assert board.runs[0].metrics["accuracy"] != 0.99
    assert lines(board)[0].rank is None


def test_a_changed_record_is_marked(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])[0]
    change(run.folder, fit=False, k=7)
    assert "does not fit its own digest" in marks(tmp_path / "runs")[0]


def test_a_run_still_going_is_shown_as_such(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])[0]
    edit(run.folder / "run.json", status="running")
    rows = (run.folder / "rows.jsonl").read_bytes()
    (run.folder / "rows.jsonl").write_bytes(rows[: len(rows) // 2])
    (run.folder / "metrics.json").unlink()
    whole = rows[: len(rows) // 2].count(b"\n")
    assert f"unfinished (running): {whole} of 12 scored" in marks(tmp_path / "runs")[0]
    assert len((run.folder / "rows.jsonl").read_bytes()) == len(rows) // 2


def test_thin_coverage_is_marked_and_not_ranked(write: Any, tmp_path: Path) -> None:
    data = write(*(make_row(k, rubric_aspects=None if k < 3 else make_row()["rubric_aspects"]) for k in range(10)))
    evaluate(data, tmp_path / "runs", "builtin/lexical", views=["oracle"])
    board = load_boards([tmp_path / "runs"])[0]
    assert board.runs[0].marks == ("coverage 70 %",)
    assert lines(board)[0].rank is None


def test_probes_are_never_ranked(tmp_path: Path) -> None:
    evaluate("sample", tmp_path, "builtin/length", "builtin/random", "builtin/lexical", views=["history"])
    found = lines(load_boards([tmp_path])[0])
    assert (found[0].title, found[0].rank) == ("builtin/lexical", 1)
    assert all(x.rank is None for x in found if x.probe)


def test_models_that_cannot_be_told_apart_share_a_rank(tmp_path: Path) -> None:
    for name, right in (("good", 58), ("fair", 56), ("poor", 20)):
        made_up(tmp_path, name, lambda k, right=right: k < right)
    ranks = {x.title: x.rank for x in lines(load_boards([tmp_path])[0])}
    assert ranks["hf/org/good"] == ranks["hf/org/fair"] == 1
    assert ranks["hf/org/poor"] == 3


def test_ranks_follow_accuracy(tmp_path: Path) -> None:
    """The tests alone find `mid` worse than `high`, but `low`, which is worse still, too uneven to tell from either."""

    def by_user(counts: list[int]) -> Any:
        return lambda k: k % 6 // 2 < counts[k // 6 * 2 + k % 2]

    made_up(tmp_path, "high", by_user([2] * 20))
    made_up(tmp_path, "mid", by_user([1] * 8 + [2] * 12))
    made_up(tmp_path, "low", by_user([0] * 10 + [3] * 10))
    found = lines(load_boards([tmp_path])[0])
    assert [(x.title, x.rank) for x in found] == [("hf/org/high", 1), ("hf/org/mid", 2), ("hf/org/low", 2)]


def test_the_same_run_twice_is_one_line(data: Path, tmp_path: Path) -> None:
    evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])
    shutil.copytree(tmp_path / "runs", tmp_path / "sent")
    boards = load_boards([tmp_path / "runs", tmp_path / "sent", tmp_path / "runs"])
    assert [len(b.runs) for b in boards] == [1]


def test_runs_on_different_data_stand_apart(data: Path, tmp_path: Path) -> None:
    evaluate(data, tmp_path / "runs", "builtin/length", views=["question"])
    evaluate("sample", tmp_path / "runs", "builtin/length", views=["question", "history"])
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    assert [b.name for b in made.boards] == ["sample", "data"]
    assert "2 different data sets" in page_of(made)


def test_runs_whose_data_is_elsewhere(data: Path, tmp_path: Path) -> None:
    evaluate(data, tmp_path / "runs", "builtin/length", views=["question"])
    moved = data.rename(tmp_path / "moved.jsonl")
    assert "the data is not at hand" in " ".join(marks(tmp_path / "runs"))
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    assert "no item browser" in page_of(made)
    assert load_boards([tmp_path / "runs"], [str(moved)])[0].runs[0].marks == ()


@pytest.mark.parametrize("content", [None, "{}", '{"config": 3}', "{"])
def test_bad_folders_are_one_clear_message(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(PalateError):
        write_report([tmp_path], tmp_path / "out")


def test_families_of_models() -> None:
    assert family_of("hf/Skywork/Reward-V2-Qwen3-0.6B") == family_of("hf/Skywork/Reward-V2-Qwen3-8B")
    assert family_of("hf/org/rm-7b-chat") == family_of("hf/org/rm-1.5b-chat") != family_of("hf/other/rm-7b-chat")


# one model identity x one retriever is a line


def test_runs_with_another_retriever_are_lines_of_their_own(tmp_path: Path) -> None:
    for retriever in ("bm25", "recency"):
        evaluate("sample", tmp_path / "runs", "builtin/lexical", retriever=retriever)
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    found = lines(made.boards[0])
    assert [x.title for x in found] == ["builtin/lexical · bm25", "builtin/lexical · recency"]
    assert all(set(x.runs) == set(VIEWS) for x in found)
    assert found[0].runs["question"] is found[1].runs["question"]
    values = {x.title: x.head.metrics["accuracy"] for x in found if x.head}
    assert len(set(values.values())) == 2
    rows = board_of(made)
    assert {t: rows[t, "accuracy/history"]["value"] for t in values} == values
    assert len(rows) == len(strict(made.board.read_text())["rows"])
    assert {f.name for f in made.figures} >= {
        "ladder-builtin_lexical_bm25.svg",
        "ladder-builtin_lexical_recency.svg",
    }


def test_one_retriever_is_not_named(data: Path, tmp_path: Path) -> None:
    evaluate(data, tmp_path, "builtin/lexical")
    assert [x.title for x in lines(load_boards([tmp_path])[0])] == ["builtin/lexical"]


def test_models_are_told_apart_by_options_then_revision_then_digest(tmp_path: Path) -> None:
    made_up(tmp_path, "a", lambda k: k < 30, id="org/rm", options={"template": "plain"}, revision="r1")
    made_up(tmp_path, "b", lambda k: k < 31, id="org/rm", options={"template": "pair"}, revision="r1")
    made_up(tmp_path, "c", lambda k: k < 32, id="org/rm", options={"template": "pair"}, revision="r2")
    made_up(tmp_path, "d", lambda k: k < 33, id="org/rm", options={"template": "pair"}, revision="r2", window=8)
    made_up(tmp_path, "e", lambda k: k < 34, id="/home/me/rm", options={"ref": "/home/me/ref"})
    made = write_report([tmp_path], tmp_path / "out")
    titles = [x.title for x in lines(made.boards[0])]
    assert titles[0] == "hf/rm?ref=ref"
    assert all(re.fullmatch(r"hf/org/rm@r2\?template=pair #[0-9a-f]{8}", t) for t in titles[1:3])
    assert titles[3:] == ["hf/org/rm@r1?template=pair", "hf/org/rm?template=plain"]
    assert len(set(titles)) == 5
    assert "/home/me" not in page_of(made) + made.board.read_text()
    systems = {r["system"] for r in strict(made.board.read_text())["rows"]}
    assert "hf/org/rm@r1?template=pair" in systems
    assert len(systems) == 5


def test_names_stay_distinct_whatever_they_are() -> None:
    found = distinct(
        {"aaaaaaaa1": ["x", "y"], "bbbbbbbb1": ["x", "y"], "cccccccc1": ["x", "x"], "dddddddd1": ["z", "z"]}
    )
    assert len(set(found.values())) == 4
    assert found["dddddddd1"] == "z"
    assert len(cut("n" * 10_000)) == 80
    assert cut("a\u202eb\nc") == "a b c"


def test_runs_of_one_view_with_other_prompts_are_one_line_that_says_so(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    shutil.copytree(run.folder, tmp_path / "older")
    change(tmp_path / "older", prompts={"view": "another"})
    edit(tmp_path / "older" / "run.json", finished="2020-01-01T00:00:00+00:00")
    board = load_boards([tmp_path])[0]
    assert len(board.runs) == 1
    assert board.runs[0].record.config.prompts != {"view": "another"}
    assert board.runs[0].marks == ("the newest of 2: 1 older run with other prompts",)
    assert lines(board)[0].rank == 1


def test_figures_whose_names_are_alike_are_kept_apart(tmp_path: Path) -> None:
    made_up(tmp_path, "a", lambda k: k < 30, id="org/a b")
    made_up(tmp_path, "b", lambda k: k < 40, id="org/a_B")
    for name in ("a", "b"):
        shutil.copytree(tmp_path / name, tmp_path / f"{name}2")
        change(tmp_path / f"{name}2", view="history?user=none")
    made = write_report([tmp_path], tmp_path / "out")
    ladders = [f for f in made.figures if f.name.startswith("ladder-")]
    assert len({f.name.lower() for f in ladders}) == 2
    assert len({f.read_text() for f in ladders}) == 2


# what is not ranked


def test_a_part_of_the_data_is_not_ranked(tmp_path: Path) -> None:
    evaluate("sample", tmp_path, "builtin/lexical", views=["history"], limit=40)
    found = lines(load_boards([tmp_path])[0])[0]
    assert found.marks == ("first 40 items only",)
    assert found.rank is None


@pytest.mark.parametrize("place", ["environment", "earlier_environments"])
def test_an_untrained_head_is_marked_and_other_notes_are_details(place: str, data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])[0]
    notes = {"notes": ["batch sizes differ a little", "UNTRAINED: score.weight not in the checkpoint"]}
    edit(run.folder / "run.json", **{place: [notes] if place == "earlier_environments" else notes})
    found = lines(load_boards([tmp_path / "runs"])[0])[0]
    assert found.marks == ("untrained head",)
    assert found.rank is None
    page = page_of(write_report([tmp_path / "runs"], tmp_path / "out"))
    assert '<span class="soft">batch sizes differ a little</span>' in page


# rows and records of others


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "correct"},
        {"outcome": None},
        {"status": "error"},
        {"status": "refused", "outcome": None},
        {"rejected_score": None},
    ],
)
def test_outcomes_that_do_not_follow_are_derived_again(changes: Any, data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    edit_row(
        run.folder, 0, **({"status": "ok", "outcome": "wrong", "chosen_score": 1.0, "rejected_score": 2.0} | changes)
    )
    shown = load_boards([tmp_path])[0].runs[0]
    assert shown.marks[0] == "1 row whose outcome does not follow from their scores"
    assert not shown.ranked
    asked = changes.get("status", "ok") == "ok" and "rejected_score" not in changes
    assert next(iter(shown.rows.values()))["outcome"] == ("wrong" if asked else None)


def test_outcomes_without_scores_are_marked(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/length", views=["question"])[0]
    edit_row(run.folder, 0, outcome="wrong", chosen_score=None, rejected_score=None)
    edit_row(run.folder, 1, outcome="wrong", chosen_score="gone", rejected_score="gone")
    assert marks(tmp_path)[0] == "2 rows without scores that their outcome could be derived from"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shown": "gone"}, "shown"),
        ({"shown": {"posts": [1]}}, "posts"),
        ({"shown": {"posts": [], "dropped": -1}}, "dropped"),
        ({"status": "fine"}, "status"),
        ({"outcome": "good"}, "outcome"),
        ({"chosen_score": "7"}, "chosen_score"),
        ({"chosen_score": float("nan")}, ""),
        ({"notes": "\ud800"}, ""),
        ({"notes": [3]}, "notes"),
    ],
)
def test_a_row_that_cannot_be_read_is_one_message(changes: Any, said: str, data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    item = edit_row(run.folder, 3, **changes)
    with pytest.raises(RunError) as found:
        load_boards([tmp_path])
    assert "rows.jsonl" in str(found.value)
    assert said in str(found.value)
    if said:
        assert f"item '{item}'" in str(found.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": None},
        {"limit": "x"},
        {"limit": 0},
        {"data": []},
        {"status": "done"},
        {"finished": "yesterday"},
        {"environment": []},
        {"config": {"view": 3}},
        {"config": {"view": "nothing"}},
        {"config": {"model": None}},
        {"config": {"model": {"family": "hf"}}},
        {"config": {"data": []}},
        {"config": {"retriever": "bm25"}},
        {"config": {"k": float("inf")}},
    ],
)
def test_a_record_that_cannot_be_read_is_one_message(changes: Any, data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    record = json.loads((run.folder / "run.json").read_text())
    if "config" in changes:
        changes = {"config": record["config"] | changes["config"]}
    edit(run.folder / "run.json", **changes)
    with pytest.raises(RunError, match=r"run\.json"):
        write_report([tmp_path], tmp_path / "out")


def test_figures_that_cannot_be_read_are_one_message(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    edit(run.folder / "metrics.json", accuracy="high")
    with pytest.raises(RunError, match=r"metrics\.json: accuracy"):
        load_boards([tmp_path])
    (run.folder / "metrics.json").unlink()
    assert marks(tmp_path) == ["metrics.json is missing"]


def test_an_environment_may_be_missing(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    edit(run.folder / "run.json", environment=None)
    assert marks(tmp_path) == []
    write_report([tmp_path], tmp_path / "out")


def test_what_is_not_in_the_digest_names_nothing(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/length", views=["history"])[0]
    edit(run.folder / "run.json", model="hf/the-best", view="oracle", probe=False)
    found = lines(load_boards([tmp_path])[0])[0]
    assert (found.title, found.probe, list(found.runs)) == ("builtin/length", True, ["history"])


# without the data


def test_without_the_data_only_what_rows_give_is_shown(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])[0]
    data.rename(tmp_path / "moved.jsonl")
    claims: Any = {
        "by_domain": {"claimed": {"n": 9, "accuracy": 1.0, "ci95": None}},
        "both_right": 0.987,
        "ci95": [1, 1],
    }
    edit(run.folder / "metrics.json", **claims, accuracy=0.987)
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    shown = made.boards[0].runs[0]
    for name in ("n", "scored", "coverage", "correct", "wrong", "ties", "accuracy", "strict_accuracy"):
        assert shown.metrics[name] == run.metrics[name]
    assert shown.metrics["ci_method"] == "wilson over items (all alike)"
    assert (shown.metrics["both_right"], shown.metrics["by_domain"]) == (None, {})
    assert shown.metrics["reasons"]["by_domain"] == "the data is not at hand"
    assert shown.marks == (
        "the data is not at hand: figures of the rows alone",
        "metrics.json does not agree with the rows: accuracy",
    )
    assert lines(made.boards[0])[0].rank is None
    assert "claimed" not in page_of(made)
    assert "98.7" not in page_of(made)
    row = board_of(made)["builtin/lexical", "both_right/history"]
    assert (row["value"], row["source"]["reason"]) == (None, "the data is not at hand")


def test_of_copies_the_complete_one_counts_then_the_newest(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])[0]
    for name, finished, status in (
        ("z", "2031-01-01", "stopped"),
        ("y", "2030-01-01", "complete"),
        ("a", "2020-01-01", "complete"),
    ):
        shutil.copytree(run.folder, tmp_path / "all" / name)
        edit(tmp_path / "all" / name / "run.json", finished=finished, status=status)
    board = load_boards([tmp_path / "all"])[0]
    assert [r.record.finished for r in board.runs] == ["2030-01-01"]


def test_a_folder_opens_only_samples_and_files_of_the_datas_name(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history"])[0]
    opened: list[str] = []
    monkeypatch.setattr("palate.report.load.open_data", lambda text: opened.append(text) or open_data(text))
    other = data.rename(tmp_path / "other.jsonl")
    record = json.loads((run.folder / "run.json").read_text())
    for spec in (
        "hub:who/knows",
        f"{other}",
        f"{tmp_path}",
        "/dev/stdin",
        "data.jsonl",
        "x" * 5000 + ".jsonl",
        "?",
        "hub:data.jsonl",
    ):
        edit(run.folder / "run.json", data=record["data"] | {"spec": spec})
        assert "not at hand" in marks(tmp_path / "runs")[0]
    assert opened == []
    edit(run.folder / "run.json", data=record["data"] | {"spec": "sample:train"})
    marks(tmp_path / "runs")
    edit(run.folder / "run.json", data=record["data"] | {"spec": str(other), "name": "other"})
    assert marks(tmp_path / "runs") == []
    assert opened == ["sample:train", str(other)]


# the item browser


def details(out: Path) -> list[Any]:
    """Return for each item what the only run showed: turns, or why none."""
    board = load_boards([out])[0]
    found = [item for chunk in chunks(board) for item in chunk]
    return [item["contexts"][item["said"][0][4]] for item in found]


def test_the_browser_says_why_nothing_is_shown(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    failed = {"outcome": None, "chosen_score": None, "rejected_score": None}
    nothing = {"posts": [], "dropped": 0}
    order = [edit_row(run.folder, k) for k in range(6)]
    edit_row(run.folder, 0, status="no_context", shown=nothing, notes=["no other user"], **failed)
    edit_row(run.folder, 1, status="overlong", shown=nothing, notes=["too much"], **failed)
    edit_row(run.folder, 2, status="overlong", notes=["answer of 9 tokens"], **failed)
    edit_row(run.folder, 3, shown={"posts": ["not there"], "dropped": 0})
    edit_row(run.folder, 4, status="error", shown=nothing, notes=["the template refuses"], **failed)
    path = run.folder / "rows.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    told = dict(zip(open_data(str(data)).ids, details(tmp_path), strict=True))
    assert told[order[0]] == "The model was not asked about this item under this view: no other user."
    assert told[order[1]] == "Not shown to the model, because it is too long for it: too much."
    assert "[1] " in told[order[2]][1]
    assert "cannot be told" in told[order[3]]
    assert "the template refuses" in told[order[4]]
    assert "[1] " in told[order[5]][1]
    assert "no verdict on this item yet" in list(told.values())[-1]


def test_the_browser_does_not_rebuild_with_other_prompts(data: Path, tmp_path: Path) -> None:
    run = evaluate(data, tmp_path, "builtin/lexical", views=["history"])[0]
    change(run.folder, prompts={"view": "another"})
    assert all("other prompts" in told for told in details(tmp_path))


# the page and the board


@pytest.mark.parametrize("name", ["a$\\frac{$b", "$x_1$", "n" * 10_000, "<b>\U0001f600</b>", "\u05d0\u05d1\u202e\x1b"])
def test_any_name_works_everywhere(name: str, data: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    for run in evaluate(data, tmp_path / "runs", "builtin/lexical"):
        rename(run.folder, id=name, parameters=7)
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    assert page_of(made)
    assert not [w for w in recwarn if "Glyph" in str(w.message)]
    for path in made.figures:
        assert len(path.name) <= 64
        ElementTree.fromstring(path.read_text())
    if "$" in name:
        assert name in (tmp_path / "out" / "figures" / "users.svg").read_text()


def test_scripts_run_by_hash_only(data: Path, tmp_path: Path) -> None:
    import base64
    import hashlib

    evaluate(data, tmp_path / "runs", "builtin/length", views=["question"])
    page = page_of(write_report([tmp_path / "runs"], tmp_path / "out"))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    parts = dict(part.split(" ", 1) for part in policy[1].split("; "))
    assert (parts["default-src"], parts["base-uri"], parts["form-action"]) == ("'none'",) * 3
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts]
    assert len(scripts) == 2
    assert parts["script-src"].split() == hashes


def test_no_two_elements_of_the_page_share_an_id(tmp_path: Path) -> None:
    evaluate("sample", tmp_path / "runs")
    page = page_of(write_report([tmp_path / "runs"], tmp_path / "out"))
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_the_bar_of_the_users_figure_is_the_median(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(figures, "users", lambda found: seen.extend(found))
    run = evaluate("sample", tmp_path / "runs", "builtin/length", views=["history"])[0]
    write_report([tmp_path / "runs"], tmp_path / "out")
    assert [median for _, _, median in seen] == [run.metrics["users"]["median"]] == [0.5]
    assert sorted(seen[0][1])[len(seen[0][1]) // 2] != 0.5


def test_undefined_results_stay_on_the_board_with_a_reason(data: Path, tmp_path: Path) -> None:
    evaluate(data, tmp_path / "runs", "builtin/lexical", views=["history", "swapped"])
    rows = board_of(write_report([tmp_path / "runs"], tmp_path / "out"))
    both = rows["builtin/lexical", "both_right/history"]
    assert (both["value"], both["source"]["reason"], both["source"]["of"]) == (None, "no twins", 0)
    lift = rows["builtin/lexical", "lift"]
    assert (lift["value"], lift["source"]["reason"]) == (None, "not run under history?user=none")
    assert rows["builtin/lexical", "swap_drop"]["value"] is not None
    full = rows["builtin/lexical", "accuracy/history"]["source"]
    assert (full["of"], full["coverage"]) == (12, 1.0)
    assert "reason" not in full


def test_json_is_the_board(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from palate.cli.app import run

    evaluate(data, tmp_path / "runs", "builtin/length", views=["question"])
    assert run(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "out" / "board.json").read_text()


def test_one_unreadable_folder_is_named_and_left_out(data: Path, tmp_path: Path) -> None:
    runs = evaluate(data, tmp_path / "runs", "builtin/length", "builtin/lexical", views=["question"])
    (runs[0].folder / "run.json").write_text("{broken")
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    assert [r.title for b in made.boards for r in b.runs] == ["builtin/lexical"]
    assert runs[0].folder.name in made.unread[0]
    assert "left out:" in page_of(made)
    assert strict(made.board.read_text())["unread"] == list(made.unread)


def test_scorecards_of_planners_stand_on_the_page(tmp_path: Path) -> None:
    evaluate("sample", tmp_path / "runs", "builtin/lexical", views=["question"], limit=6)
    plan_all("sample", "keyphrase", tmp_path / "runs" / "plans", limit=6, score=True)
    page = page_of(write_report([tmp_path / "runs"], tmp_path / "out"))
    assert "true aspects met" in page
    assert page.count('<td class="left">question-only</td>') == 1
    (tmp_path / "runs" / "plans" / "scorecard.json").write_text("[]")
    made = write_report([tmp_path / "runs"], tmp_path / "out")
    assert "not a readable scorecard" in made.unread[0]
    assert "true aspects met" not in page_of(made)
