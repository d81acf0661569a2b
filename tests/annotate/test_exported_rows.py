"""Rows: what was answered, by role and not by seat, once each, as of one moment."""

import json
from pathlib import Path
from typing import Any

import pytest

from palate.annotate import export_rows, read_status
from palate.errors import RunError
from rows import make_row


def rows(folder: Path, **how: Any) -> list[dict[str, Any]]:
    export_rows(folder, **how)
    return [json.loads(line) for line in (folder / "annotations.jsonl").read_text().splitlines()]


def test_rows_speak_of_roles_whatever_the_seats(desk: Any) -> None:
    d = desk(names="ana,ben", limit=6, overlap=2)
    for name in ("ana", "ben"):
        for number in range(1, 7):
            d.person(name).finish(number, comment="fine" if number == 1 else "")
            d.person(name).finish(number, 2)
    found = rows(d.study.folder)
    assert len(found) == 24
    assert {r["seats"][0] for r in found} == {"chosen", "rejected"}
    for row in found:
        a, b = row["seats"]
        assert set(row["seats"]) == {"chosen", "rejected"}
        if row["step"] == 1:
            assert row["factuality"] == row["relevance"] == row["helpfulness"] == {a: 4, b: 2}
            assert row["preference"] == a
            assert "fit" not in row
        else:
            assert row["fit"] == {a: 5, b: 1}
            assert not {"factuality", "relevance", "helpfulness", "preference"} & set(row)
        assert (row["attention"], row["passed"]) == (False, None)
        assert row["started"] <= row["finished"]
    assert [r["comment"] for r in found if r["comment"]] == ["fine", "fine"]
    keys = [(r["item_id"], r["annotator"], r["step"]) for r in found]
    assert len(set(keys)) == 24
    assert list(found[0]) == [
        *("item_id", "annotator", "step", "seats", "factuality", "relevance", "helpfulness", "preference", "comment"),
        *("attention", "passed", "started", "finished"),
    ]


def test_what_was_not_given_is_absent(desk: Any) -> None:
    d = desk(limit=3)
    ana = d.person("ana")
    ana.save(1, factuality_b="1")
    ana.finish(2, preference="none")
    ana.save(2, 2, fit_a="3")
    made = export_rows(d.study.folder)
    assert (made.rows, made.unfinished, made.unbegun) == (1, 2, 3)
    (only,) = rows(d.study.folder)
    assert only["preference"] == "none"
    assert only["comment"] is None
    first, second, third = rows(d.study.folder, partial=True)
    seats = d.seats("ana", 1)
    assert first["factuality"] == {seats[1]: 1}
    assert not {"relevance", "helpfulness", "preference", "finished"} & set(first)
    assert second == only
    assert third["fit"] == {d.seats("ana", 2)[0]: 3}
    assert export_rows(d.study.folder, partial=True).rows == 3


def test_a_step_under_correction_counts_as_it_was_finished(desk: Any) -> None:
    d = desk(limit=1)
    ana = d.person("ana")
    ana.finish(1)
    ana.post(1, 1, "correct", {})
    before = rows(d.study.folder)
    ana.save(1, preference="b")
    assert rows(d.study.folder) == before == rows(d.study.folder, partial=True)
    ana.finish(1, preference="b")
    (after,) = rows(d.study.folder)
    assert after["preference"] == d.seats("ana", 1)[1]
    assert after["started"] == before[0]["started"]
    assert after["finished"] >= before[0]["finished"]


@pytest.mark.parametrize("right", [True, False])
def test_attention_items_are_marked_and_passed_or_not(desk: Any, write: Any, right: bool) -> None:
    file = write(make_row(7, id="check", expected="rejected", rubric_aspects=None), name="checks.jsonl")
    d = desk(limit=2, attention=str(file))
    ana = d.person("ana")
    number = next(n for n in (1, 2, 3) if d.item("ana", n) == "check")
    ana.save(number, preference="a")
    assert [r["passed"] for r in rows(d.study.folder, partial=True)] == [None]
    rejected = "ab"[d.seats("ana", number).index("rejected")]
    ana.finish(number, preference=rejected if right else "none")
    (row,) = rows(d.study.folder)
    assert (row["attention"], row["passed"]) == (True, right)
    (status,) = read_status(d.study.folder)
    assert (status.checked, status.passed) == (1, int(right))
    for other in {1, 2, 3} - {number}:
        ana.finish(other)
    assert [r["passed"] for r in rows(d.study.folder) if not r["attention"]] == [None, None]


def test_an_unexpected_no_difference_can_be_what_is_expected(desk: Any, write: Any) -> None:
    file = write(make_row(7, id="check", expected="none"), name="checks.jsonl")
    d = desk(limit=1, attention=str(file))
    ana = d.person("ana")
    for number in (1, 2):
        ana.finish(number, preference="none")
        ana.finish(number, 2)
    assert [r["passed"] for r in rows(d.study.folder) if r["attention"]] == [True, True]


def test_export_to_a_file_or_to_the_screen(desk: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    d = desk(limit=1)
    d.person("ana").finish(1)
    export_rows(d.study.folder, tmp_path / "rows.jsonl")
    export_rows(d.study.folder, "-")
    assert capsys.readouterr().out == (tmp_path / "rows.jsonl").read_text()
    assert not (d.study.folder / "annotations.jsonl").exists()
    with pytest.raises(RunError, match=r"a folder\. Name a file"):
        export_rows(d.study.folder, tmp_path)
    with pytest.raises(RunError, match=r"the folder .*nowhere is not there"):
        export_rows(d.study.folder, tmp_path / "nowhere" / "rows.jsonl")
