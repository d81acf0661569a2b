"""Tables of labels in any form, through the reader and the command."""

import csv
import json
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest

from palate.annotate.tables import Columns, read_table
from palate.cli.app import run
from palate.errors import DataError, PalateError, SpecError
from palate.metrics import krippendorff_alpha

LONG = [("q1", "ana", "good"), ("q1", "ben", "bad"), ("q2", "ana", "fair"), ("q2", "ben", "fair"), ("q3", "ana", "bad")]
COLUMNS = Columns(("item",), "who", ("label",))


def save(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def long() -> list[dict[str, Any]]:
    return [dict(zip(("item", "who", "label"), row, strict=True)) for row in LONG]


@pytest.mark.parametrize("ending", [".csv", ".json", ".jsonl"])
def test_long_and_wide_tables_are_one(tmp_path: Path, ending: str) -> None:
    one = read_table(save(tmp_path / f"long{ending}", long()), COLUMNS, "nominal")
    said = {(q, who): label for q, who, label in LONG}
    wide = [{"item": q, **{who: said.get((q, who), "") for who in ("ana", "ben")}} for q in ("q1", "q2", "q3")]
    two = read_table(save(tmp_path / f"wide{ending}", wide), Columns(("item",), None, ("ana", "ben")), "nominal")
    assert one.codes.tolist() == two.codes.tolist() == [[2, 0], [1, 1], [0, -1]]
    assert one.labels == two.labels == ("bad", "fair", "good")
    assert one.annotators == two.annotators == ("ana", "ben")


def test_an_order_makes_words_ordinal(tmp_path: Path) -> None:
    path = save(tmp_path / "t.csv", long())
    found = read_table(path, COLUMNS, "ordinal", ["bad", "fair", "good", "great"])
    assert found.labels == ("bad", "fair", "good", "great")
    with pytest.raises(SpecError, match="needs numbers or, for ordinal, --order; these are neither: bad, fair, good"):
        read_table(path, COLUMNS, "ordinal")
    with pytest.raises(SpecError, match="--order lacks the labels fair"):
        read_table(path, COLUMNS, "ordinal", ["bad", "good"])
    with pytest.raises(SpecError, match="--order names a label twice"):
        read_table(path, COLUMNS, "ordinal", ["bad", "fair", "good", "bad"])


def test_numbers_in_text_are_numbers(tmp_path: Path) -> None:
    rows = [{"item": k, "a": x, "b": y} for k, (x, y) in enumerate([("10", "9.5"), ("2", "2.0"), ("", "3")])]
    found = read_table(save(tmp_path / "t.csv", rows), Columns(("item",), None, ("a", "b")), "interval")
    assert found.labels == (2, 3, 9.5, 10)
    expected = krippendorff.alpha(np.array([[10, 2, np.nan], [9.5, 2, 3]]), level_of_measurement="interval")
    assert krippendorff_alpha(found, "interval").value == pytest.approx(expected)


FAULTS: dict[str, tuple[list[dict[str, Any]], Columns, str]] = {
    "column": (long(), Columns(("item",), "annotator", ("label",)), "no column 'annotator'"),
    "twice": ([*long(), long()[0]], COLUMNS, "'ana' labelled q1 already in t.jsonl, line 1"),
    "nobody": ([{"item": "q", "who": "", "label": "x"}], COLUMNS, "who: empty, so nobody gave the label"),
    "no item": ([{"item": None, "who": "a", "label": "x"}], COLUMNS, "item: empty, so the item is not named"),
    "object": ([{"item": "q", "who": "a", "label": [1]}], COLUMNS, "label: expected a text or a number, found a list"),
    "nothing": ([{"item": "q", "who": "a", "label": ""}], COLUMNS, "no labels in it"),
    "many": ([{"item": k, "who": "a", "label": k} for k in range(61)], COLUMNS, "61 different labels; at most 60"),
    "same": (long(), Columns(("item",), None, ("label", "label")), "must be different columns"),
    "both": (long(), Columns(("item",), "who", ("label", "x")), "with --annotator there is one --label"),
    "none": (long(), Columns((), "who", ("label",)), "needs --item and --label"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_tables_say_what_is_wrong(tmp_path: Path, fault: str) -> None:
    rows, columns, text = FAULTS[fault]
    with pytest.raises(PalateError) as caught:
        read_table(save(tmp_path / "t.jsonl", rows), columns, "nominal")
    assert text in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("item,who,label\nq1,ana,x,y\n")
    with pytest.raises(DataError, match="line 2: more cells than columns"):
        read_table(tmp_path / "t.csv", COLUMNS, "nominal")
    (tmp_path / "t.csv").write_text("item,item,label\n")
    with pytest.raises(DataError, match="two columns have one name"):
        read_table(tmp_path / "t.csv", COLUMNS, "nominal")
    (tmp_path / "t.csv").write_bytes(b"item,who,label\nq1,ana,\xff\n")
    with pytest.raises(DataError, match="not readable as CSV in UTF-8"):
        read_table(tmp_path / "t.csv", COLUMNS, "nominal")
    (tmp_path / "t.txt").write_text("x")
    with pytest.raises(DataError, match=r"the ending '\.txt' is not known"):
        read_table(tmp_path / "t.txt", COLUMNS, "nominal")


def printed(capsys: pytest.CaptureFixture[str], *args: str | Path) -> str:
    assert run(["annotate", "agreement", *map(str, args)]) == 0
    return capsys.readouterr().out


@pytest.mark.shared
def test_pandalm_through_the_command(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared / "pandalm/testset-v1.json"
    names = ["annotator1", "annotator2", "annotator3"]
    args = [path, "--item", "idx", *(x for name in names for x in ("--label", name))]
    (found,) = json.loads(printed(capsys, "--table", *args, "--json"))["agreement"]
    rows = json.loads(path.read_text())
    expected = krippendorff.alpha([[r[name] for r in rows] for name in names], level_of_measurement="nominal")
    alpha = next(f for f in found["figures"] if f["name"] == "alpha nominal")
    assert alpha["value"] == pytest.approx(expected)
    assert (found["items"], found["annotators"], found["labels"]) == (999, 3, 2997)
    text = printed(capsys, "--table", *args)
    assert f"{expected:.3f}" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.shared
def test_mt_bench_through_the_command(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared / "mtbench_human_votes/human.jsonl"
    items = [x for name in ("question_id", "turn", "model_a", "model_b") for x in ("--item", name)]
    args = ["--table", path, *items, "--annotator", "judge", "--label", "winner"]
    (found,) = json.loads(printed(capsys, *args, "--json"))["agreement"]
    assert (found["annotators"], found["labels"]) == (65, 3355)
    assert any(p["kappa"]["reason"] == "one label used" and p["raw"]["value"] == 1 for p in found["pairs"])
