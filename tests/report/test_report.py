"""The report believes rows, not claims; says what it leaves out; and its figures are those of the runs."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import palate
from palate.data import open_data
from palate.errors import PalateError
from palate.evaluation import Run, measure
from palate.report import Report, write_report
from palate.report.board import lines
from palate.report.build import family_of
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
    edit(runs[0].folder / "run.json", model=f"hf/{NASTY}")
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
    record = json.loads((run.folder / "run.json").read_text())
    record["config"]["model_identity"]["parameters"] = 7
    (run.folder / "run.json").write_text(json.dumps(record))
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
    run = evaluate("sample", tmp_path, "builtin/lexical", views=["history"])[0]
    ids = list(run.rows)
    for name, right in (("good", 58), ("fair", 56), ("poor", 20)):
        folder = RunFolder(tmp_path / name)
        record = json.loads((run.folder / "run.json").read_text())
        record["config"]["model"] = record["model"] = f"hf/org/{name}"
        with folder:
            with RowLog(folder.rows) as log:
                for k, item in enumerate(ids):
                    log.append(dict(run.rows[item]) | {"outcome": "correct" if k < right else "wrong"})
            folder.write_record(record | {"digest": digest_of(record["config"])})
            folder.write_metrics(measure(open_data("sample"), log.rows, open_data("sample").ids))
    ranks = {x.title: x.rank for x in lines(load_boards([tmp_path])[0])}
    assert ranks["hf/org/good"] == ranks["hf/org/fair"] == 1
    assert ranks["hf/org/poor"] is not None
    assert ranks["hf/org/poor"] > 2


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
