"""The commands about what people said, as a user meets them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from said import first, save, second

from palate.cli.app import run
from palate.data import label_studio, open_data


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    people = ("ana", "ben")
    found = [first(f"q{k}", who, "none" if k == 3 else "chosen") for k in range(12) for who in people]
    found += [second(f"q{k}", who, 5, 1 + k % 2) for k in range(12) for who in people]
    found += [first("check", who, attention=True, passed=who == "ana") for who in people]
    return save(tmp_path / "annotations.jsonl", found)


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_agreement_prints_tables_of_80_columns(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["annotate", "agreement", str(rows)]) == 0
    text = capsys.readouterr().out
    assert "preference (nominal): 12 items, 2 annotators, 24 labels" in text
    assert "undefined: one label used" in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_agreement_as_strict_json(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["annotate", "agreement", str(rows), "--json"]) == 0
    found = strict(capsys.readouterr().out)
    names = [q["name"] for q in found["agreement"]]
    assert names == ["preference", "preference, sides unnamed", "factuality", "relevance", "helpfulness", "fit"]
    figure = found["agreement"][2]["figures"][1]
    assert (figure["value"], figure["reason"]) == (None, "one label used")


def test_report_writes_a_page_and_its_numbers(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["annotate", "report", str(rows), "--out", str(tmp_path / "out")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "attention items failed: ben 1 of 1" in text
    assert "people pick the chosen answer: 95.8 %" in text
    numbers = strict((tmp_path / "out/people.json").read_text())
    assert (numbers["margin"], numbers["floor"], numbers["items"]) == (0.25, 3.5, 12)
    assert numbers["fit"]["value"] == pytest.approx(3.5)
    assert numbers["criteria"][0]["equivalence"]["reason"].startswith("all values are the same")
    page = (tmp_path / "out/people.html").read_text()
    assert "undefined: one label used" in page
    assert "http" not in page.split("<body>")[1].split("<svg")[0]
    assert run(["annotate", "report", str(rows), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert strict(capsys.readouterr().out) == numbers


def test_report_with_runs_and_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = open_data("sample").ids
    path = save(tmp_path / "a.jsonl", [first(item, who) for item in ids for who in ("ana", "ben")])
    runs = tmp_path / "runs"
    assert run(["eval", "--data", "sample", "--model", "builtin/lexical", "--view", "oracle", "--out", str(runs)]) == 0
    args = ["annotate", "report", str(path), "--runs", str(runs), "--data", "sample", "--out", str(tmp_path / "out")]
    capsys.readouterr()
    assert run(args) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "71.7 %" in text
    assert "60/60" in text
    assert "over users" in text


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "give files of annotation rows, or --table"),
        (["a.jsonl", "--table", "t.csv"], "give files of annotation rows, or --table"),
        (["a.jsonl", "--item", "x"], "go with --table"),
        (["--table", "t.csv", "--runs", "runs"], "--runs goes with annotation rows"),
        (["--table", "t.csv", "--item", "a", "--label", "b", "--level", "nominel"], "Did you mean 'nominal'"),
        (["none.jsonl"], "none.jsonl: no such file"),
        (["."], ".: a folder; a file is needed. The rows of a study: palate annotate export ."),
    ],
)
def test_bad_usage_is_one_message(args: list[str], text: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "palate", "annotate", "agreement", *args]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert text in found.stderr
    assert "Traceback" not in found.stderr


def test_label_studio_there_and_back_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = tmp_path / "tasks.json"
    assert run(["data", "export", "sample", str(tasks), "--to", "label-studio"]) == 0
    assert "left behind" in capsys.readouterr().err
    done = strict(tasks.read_text())
    for k, task in enumerate(done):
        seat = "AB"[label_studio.seats(task["data"]["item_id"]).index("chosen")]
        result = [{"from_name": "preference", "value": {"choices": [seat if k % 4 else "no difference"]}}]
        task["annotations"] = [{"completed_by": who, "result": result} for who in (1, 2)]
        task["annotations"].append({"completed_by": 3, "was_cancelled": True, "result": []})
    (tmp_path / "done.json").write_text(json.dumps(done))
    rows = tmp_path / "rows.jsonl"
    assert run(["annotate", "import", str(tmp_path / "done.json"), str(rows)]) == 0
    said = capsys.readouterr()
    assert "120 rows written" in said.out
    assert "60 annotations were skipped" in said.err
    assert run(["annotate", "report", str(rows), "--out", str(tmp_path / "out"), "--json"]) == 0
    share = strict(capsys.readouterr().out)["share"]
    assert (share["chosen"], share["none"], share["rejected"], share["share"]) == (90, 30, 0, 0.875)


def test_one_who_answered_a_task_twice_is_told_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = [[{"from_name": "preference", "value": {"choices": [c]}}] for c in "AB"]
    task = {"data": {"item_id": "q", "step": 1}, "annotations": [{"completed_by": 1, "result": r} for r in result]}
    (tmp_path / "done.json").write_text(json.dumps([task]))
    assert run(["annotate", "import", str(tmp_path / "done.json"), str(tmp_path / "rows.jsonl")]) == 2
    assert "rows.jsonl, line 2: '1' on 'q', step 1: said otherwise in rows.jsonl, line 1" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["done.json"]


def test_export_refuses_views_that_are_no_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "x.jsonl")
    for view in ("oracle", "swapped", "plan"):
        assert run(["data", "export", "sample", out, "--to", "trl", "--view", view]) == 2
        assert "an export knows question and history" in capsys.readouterr().err
    tasks = str(tmp_path / "t.json")
    assert run(["data", "export", "sample", tasks, "--to", "label-studio", "--with-keys", "--view", "history"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_report_into_a_file_is_refused(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    assert run(["annotate", "report", str(rows), "--out", str(tmp_path / "taken")]) == 2
    assert "there is a file of that name; a folder is needed" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "mine"
