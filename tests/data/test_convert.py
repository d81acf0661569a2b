"""`convert_data`: known forms come through whole, others by a map, and a failure leaves nothing behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from palate.data import Dataset, open_data
from palate.data.convert import convert_data
from palate.errors import DataError, PalateError, SpecError
from rows import make_row


def turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return what a JSONL file holds."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def seen(data: Dataset) -> list[Any]:
    """Return all that a dataset holds."""
    return [(data.get(name), data.answers(name), data.key(name)) for name in data.ids]


OWN = [make_row(1, category="soup", persona="A cook.", mood="calm"), make_row(2, user_id=None, narrative=None)]
CHAT = [turn("system", "Be brief."), turn("user", "Tea?")]
FORMS = {
    "own": OWN,
    "own without answers": [make_row(1, chosen=None, rejected=None)],
    "turns": [{"id": "a", "messages": CHAT, "chosen": "Yes.", "rejected": "No."}],
    "rewardbench": [{"prompt": "Tea?", "chosen": "Yes.", "rejected": "No.", "subset": "chat", "id": 4}],
    "best-of-n": [{"id": "a", "question": "Tea?", "responses": ["Yes.", "No.", ""]}],
    "earlier choices": [make_row(1, profile=[{"id": "p", "text": "Yes.", "rejected": "No.", "prompt": "Tea?"}])],
}


@pytest.mark.parametrize("form", FORMS)
def test_known_forms_come_through_whole(write: Any, tmp_path: Path, form: str) -> None:
    source, out = write(*FORMS[form]), tmp_path / "new.jsonl"
    assert convert_data(str(source), out) == len(FORMS[form])
    assert seen(open_data(str(out))) == seen(open_data(str(source)))


def test_the_train_pairs_of_users_are_written_as_their_history(write: Any, tmp_path: Path) -> None:
    row = {
        "user_id": "ann",
        "context": [turn("user", "Tea?")],
        "chosen": turn("model", "Yes."),
        "rejected": turn("model", "No."),
    }
    source = write(row | {"split": "train"}, row | {"context": [turn("user", "Milk?")], "type": "drinks"})
    assert convert_data(str(source), tmp_path / "new.jsonl") == 1
    one, two = open_data(str(source)), open_data(str(tmp_path / "new.jsonl"))
    assert two.format == "lamp-qa"
    assert seen(one) == seen(two)


def test_the_sample_converts_to_itself(tmp_path: Path) -> None:
    convert_data("sample", tmp_path / "new.jsonl")
    assert seen(open_data(str(tmp_path / "new.jsonl"))) == seen(open_data("sample"))


def test_a_map_moves_columns_and_keeps_the_others(write: Any, tmp_path: Path) -> None:
    source = write({"q": "Tea?", "options": ["Yes.", "No."], "who": {"name": "ann"}, "mood": "calm"})
    out = tmp_path / "new.jsonl"
    maps = ["question=q", "chosen=options.0", "rejected=options.1", "user_id=who.name"]
    assert convert_data(str(source), out, maps) == 1
    (row,) = rows_of(out)
    assert row == {
        "options": ["Yes.", "No."],
        "who": {"name": "ann"},
        "mood": "calm",
        "question": "Tea?",
        "chosen": "Yes.",
        "rejected": "No.",
        "user_id": "ann",
    }


def test_a_column_whose_name_has_a_dot_goes_before_a_path(write: Any, tmp_path: Path) -> None:
    source = write({"a.b": "Tea?", "a": {"b": "Rum?"}, "chosen": "Yes.", "rejected": "No."})
    convert_data(str(source), tmp_path / "new.jsonl", ["question=a.b"])
    assert open_data(str(tmp_path / "new.jsonl")).get("1").question == "Tea?"


def test_two_fields_may_be_swapped(write: Any, tmp_path: Path) -> None:
    convert_data(str(write(make_row(1))), tmp_path / "new.jsonl", ["chosen=rejected", "rejected=chosen"])
    assert rows_of(tmp_path / "new.jsonl")[0]["chosen"] == make_row(1)["rejected"]


def test_a_map_keeps_the_domains_of_folders(write: Any, tmp_path: Path) -> None:
    (tmp_path / "in" / "art").mkdir(parents=True)
    write({"q": "Tea?"}, name="in/art/a.jsonl")
    write({"q": "Rum?"}, {"q": "Milk?", "domain": "sport"}, name="in/b.jsonl")
    convert_data(str(tmp_path / "in"), tmp_path / "new.jsonl", ["question=q"])
    assert [item.domain for item in open_data(str(tmp_path / "new.jsonl"))] == ["art", "all", "sport"]


def test_an_array_and_a_path_with_odd_signs(tmp_path: Path) -> None:
    folder = tmp_path / "a?b=c %41 & é"
    folder.mkdir()
    (tmp_path / "in.json").write_text(json.dumps([make_row(1), make_row(2)]), encoding="utf-8")
    assert convert_data(str(tmp_path / "in.json"), folder / "new.jsonl") == 2
    assert [row["id"] for row in rows_of(folder / "new.jsonl")] == ["q1", "q2"]


@pytest.mark.parametrize(
    ("maps", "kind", "why"),
    [
        (["question"], SpecError, "must look like field=source"),
        (["question="], SpecError, "must look like field=source"),
        (["qestion=q"], SpecError, "unknown field 'qestion'. Did you mean 'question'?"),
        (["question=qq.text"], DataError, "in.jsonl, line 1: no 'qq' of 'qq.text'. Did you mean 'q'?"),
        (["question=options.2"], DataError, "in.jsonl, line 1: no '2' of 'options.2'."),
        (
            ["chosen=options.0", "question=q"],
            DataError,
            "new.jsonl, line 1: 'chosen' is given but 'rejected' is missing",
        ),
        (["question=options"], DataError, "new.jsonl, line 1: question: expected a string, found a list of 2"),
    ],
)
def test_what_cannot_be_mapped_is_refused_and_nothing_is_left(
    write: Any, tmp_path: Path, maps: list[str], kind: type[PalateError], why: str
) -> None:
    source = write({"q": "Tea?", "options": ["Yes.", "No."]}, name="in.jsonl")
    with pytest.raises(kind) as caught:
        convert_data(str(source), tmp_path / "new.jsonl", maps)
    assert why in str(caught.value)
    assert ".new" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_bad_line_is_told_by_its_place_in_the_source(write: Any, tmp_path: Path) -> None:
    source = write({"q": "Tea?"}, '{"q": NaN}', name="in.jsonl")
    with pytest.raises(DataError, match=r"in\.jsonl, line 2: NaN is not JSON"):
        convert_data(str(source), tmp_path / "new.jsonl", ["question=q"])


def test_nothing_is_written_over(write: Any, tmp_path: Path) -> None:
    source, out = write(make_row(1)), tmp_path / "new.jsonl"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match="exists already; nothing was written"):
        convert_data(str(source), out)
    assert out.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("name", "why"), [("new.json", r"must end in \.jsonl"), ("nowhere/new.jsonl", "the folder .* is not there")]
)
def test_where_nothing_can_be_written(write: Any, tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        convert_data(str(write(make_row(1))), tmp_path / name)
