"""One pass over a file: every bad record is told at once, by line, and left out only when that is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from palate.data import open_data
from palate.errors import DataError
from rows import make_row


def refused(path: Path, options: str = "") -> DataError:
    """Return the error that opening `path` gives."""
    with pytest.raises(DataError) as caught:
        open_data(f"{path}{options}")
    return caught.value


def twins(**changes: Any) -> list[dict[str, Any]]:
    """Return two items that are twins, the second with changes."""
    one = make_row(1, twin="q2", question="Soup or salad?", chosen="Soup.", rejected="Salad.")
    two = make_row(2, twin="q1", question="Soup or salad?", chosen="Salad.", rejected="Soup.")
    return [one, {k: v for k, v in (two | changes).items() if v is not None}]


def test_every_bad_line_is_told_with_its_number_and_reason(write: Any) -> None:
    path = write(make_row(1), "", '{"a":1,"a":2}', '{"id": "q3", "score": NaN}', '{"id": "q4", "question": "Wh')
    error = refused(path)
    assert error.problems == (
        "data.jsonl, line 2: blank line",
        "data.jsonl, line 3: the key 'a' is given twice in one object",
        "data.jsonl, line 4: NaN is not JSON; use null or leave the field out",
        "data.jsonl, line 5: the line is cut off in the middle of a record",
    )
    assert str(error).startswith("data: 4 problems\n  data.jsonl, line 2: blank line\n")
    assert "?invalid=skip" in str(error)


def test_skipping_leaves_the_good_ones_and_counts_the_others(write: Any) -> None:
    path = write(make_row(1), "", '{"a":1,"a":2}', make_row(2, chosen=5), make_row(3))
    data = open_data(f"{path}?invalid=skip")
    assert data.ids == ["q1", "q3"]
    assert data.skipped == 3
    assert data.notes == ("3 invalid records were left out, as asked (?invalid=skip)",)
    assert open_data(str(write(make_row(1), name="good.jsonl")) + "?invalid=skip").skipped == 0


def test_a_record_with_two_faults_is_one_record_left_out(write: Any) -> None:
    path = write(make_row(1), make_row(2, question=5, domain=6))
    assert len(refused(path).problems) == 2
    assert open_data(f"{path}?invalid=skip").skipped == 1


def test_skipping_everything_is_refused(write: Any) -> None:
    error = refused(write("[]", "3"), "?invalid=skip")
    assert "No record is left." in str(error)
    assert len(error.problems) == 2


def test_twenty_problems_are_told_and_the_others_counted(write: Any) -> None:
    error = refused(write(*(make_row(k, question=k) for k in range(1, 28))))
    assert len(error.problems) == 20
    assert str(error).startswith("data: 27 problems")
    assert "\n  … and 7 more\n" in str(error)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
def test_an_empty_file_gets_a_plain_message(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "none.jsonl"
    path.write_bytes(content)
    assert str(refused(path)) == "none.jsonl: the file is empty; it needs at least one record."


def test_blank_lines_at_the_end_do_not_matter(write: Any) -> None:
    assert open_data(str(write(make_row(1), make_row(2), "", "  ", ""))).ids == ["q1", "q2"]


def test_a_blank_line_inside_does(write: Any) -> None:
    assert refused(write(make_row(1), "", make_row(2), "")).problems == ("data.jsonl, line 2: blank line",)


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x1c"])
def test_separators_inside_strings_cut_nothing(write: Any, mark: str) -> None:
    chosen = f"Soup{mark}with bread."
    raw = json.dumps(make_row(1, chosen=chosen), ensure_ascii=mark < " ")
    data = open_data(str(write(raw, make_row(2))))
    assert data.ids == ["q1", "q2"]
    assert data.answers("q1")[0].text == chosen


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(write: Any, tmp_path: Path) -> None:
    plain = write(make_row(1), make_row(2))
    other = tmp_path / "windows.jsonl"
    other.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n"))
    one, two = open_data(str(plain)), open_data(str(other))
    assert list(one) == list(two)
    assert one.digest == two.digest


def test_a_last_line_without_a_newline_counts(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(make_row(1)) + "\n" + json.dumps(make_row(2)), encoding="utf-8")
    assert open_data(str(path)).ids == ["q1", "q2"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1]", "expected an object {…}, found a list of 1"),
        ('{"x": ' + "[" * 50_000, "lists or objects are nested too deeply to be read"),
        ('{"question": "\\ud800"}', "a \\ud800–\\udfff escape stands alone, so the text cannot be written as UTF-8"),
    ],
)
def test_lines_that_are_no_record(write: Any, line: str, reason: str) -> None:
    assert refused(write(make_row(1), line)).problems == (f"data.jsonl, line 2: {reason}",)


def test_bytes_that_are_not_utf8_are_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(json.dumps(make_row(1)).encode() + b'\n{"question": "caf\xe9?"}\n')
    assert refused(path).problems == ("latin.jsonl, line 2: not UTF-8 (byte 18)",)


def test_two_thousand_users_without_posts_then_one_with_two(write: Any) -> None:
    rows = [make_row(k, profile=[]) for k in range(2000)]
    data = open_data(str(write(*rows, make_row(2000))))
    assert len(data) == 2001
    assert [len(data.get(name).posts) for name in ("q0", "q1999", "q2000")] == [0, 0, 2]


@pytest.mark.parametrize("field", ["user_id", "id"])
def test_ids_are_all_numbers_or_all_strings(write: Any, field: str) -> None:
    error = refused(write(make_row(1, **{field: 7}), make_row(2, **{field: "u8"}), make_row(3, **{field: 9})))
    assert error.problems == (
        f'data.jsonl, line 2: {field}: expected a number as in data.jsonl, line 1, found the string "u8"',
    )


def test_ids_that_are_numbers_become_text(write: Any) -> None:
    data = open_data(str(write(make_row(1, id=7, user_id=10), make_row(2, id=8, user_id=10))))
    assert data.ids == ["7", "8"]
    assert {e.user_id for e in data.entries.values()} == {"10"}


def test_text_and_messages_may_not_share_a_column_of_text(write: Any) -> None:
    error = refused(write(make_row(1), make_row(2, chosen=[{"role": "assistant", "content": "Soup."}])))
    assert error.problems == ("data.jsonl, line 2: chosen: expected a string, found a list of 1",)


def test_an_unknown_column_may_hold_numbers_and_text(write: Any) -> None:
    data = open_data(str(write(make_row(1, score=1.5), make_row(2, score="n/a"))))
    assert [item.extra["score"] for item in data] == [1.5, "n/a"]


def test_a_repeated_id_names_both_lines(write: Any) -> None:
    error = refused(write(make_row(1), make_row(2), make_row(1), make_row(3)))
    assert error.problems == (
        "data.jsonl, line 3: id: 'q1' is already the id of data.jsonl, line 1; ids must be unique",
    )


def test_a_repeated_id_in_another_file_names_both_files(write: Any, tmp_path: Path) -> None:
    write(make_row(1), name="a.jsonl")
    write(make_row(1), name="b.jsonl")
    error = refused(tmp_path)
    assert error.problems == ("b.jsonl, line 1: id: 'q1' is already the id of a.jsonl, line 1; ids must be unique",)


def test_an_array_tells_records_not_lines(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    rows = json.dumps([make_row(1), make_row(1), 5, make_row(2, question=None, narrative=float("nan"))], indent=1)
    path.write_text(rows.replace("]\n}", ']\n, "id": "q9"}'), encoding="utf-8")
    assert refused(path).problems == (
        "data.json, record 2: id: 'q1' is already the id of data.json, record 1; ids must be unique",
        "data.json, record 3: expected an object {…}, found the number 5",
        "data.json, record 4: NaN is not JSON; use null or leave the field out",
    )
    assert open_data(f"{path}?invalid=skip").skipped == 3


def test_a_doubled_key_in_an_array_is_one_record_left_out(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(f'[{{"id": 1, "id": 2}}, {json.dumps(make_row(2))}]', encoding="utf-8")
    assert refused(path).problems == ("data.json, record 1: the key 'id' is given twice in one object",)
    assert open_data(f"{path}?invalid=skip").ids == ["q2"]


def test_a_broken_array_is_refused_whole(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text("[" + json.dumps(make_row(1)), encoding="utf-8")
    assert str(refused(path, "?invalid=skip")) == "data.json: the file ends in the middle of the array"


def test_a_first_record_of_no_form_does_not_spoil_the_others(write: Any) -> None:
    path = write({"header": True}, make_row(1), make_row(2))
    assert all("line 1: " in text for text in refused(path).problems)
    assert open_data(f"{path}?invalid=skip").ids == ["q1", "q2"]


def test_a_file_has_one_form(write: Any) -> None:
    error = refused(write(make_row(1), {"prompt": "Soup?", "chosen": "Yes.", "rejected": "No."}))
    assert error.problems == ("data.jsonl, line 2: exactly one of 'question' and 'messages' is needed",)


def test_twins_that_oppose_each_other_are_twins(write: Any) -> None:
    data = open_data(str(write(*twins())))
    assert {name: entry.twin for name, entry in data.entries.items()} == {"q1": "q2", "q2": "q1"}


def test_twins_without_user_ids_are_two_users(write: Any) -> None:
    assert len(open_data(str(write(*({k: v for k, v in row.items() if k != "user_id"} for row in twins()))))) == 2


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"id": "q3"}, ["line 1: twin: no item has the id 'q2'", "line 2: twin: 'q1' does not name 'q3' as its twin"]),
        ({"twin": None}, ["line 1: twin: 'q2' does not name 'q1' as its twin"]),
        ({"twin": "q2"}, ["line 1: twin: 'q2' does not name 'q1' as its twin", "line 2: twin: 'q2' must have"]),
        ({"chosen": "Soup.", "rejected": "Salad."}, ["line 1: twin: 'q2' must have the same question", "line 2: twin"]),
        ({"question": "Salad or soup?"}, ["line 1: twin: 'q2' must have the same question", "line 2: twin"]),
        ({"chosen": "Bread."}, ["line 1: twin: 'q2' must have the same question", "line 2: twin"]),
        ({"user_id": "u1"}, ["line 1: twin: 'q2' belongs to the same user", "line 2: twin: 'q1' belongs to the same"]),
    ],
)
def test_twins_that_are_none_are_refused(write: Any, changes: dict[str, Any], problems: list[str]) -> None:
    found = refused(write(*twins(**changes))).problems
    assert len(found) == len(problems)
    for text, expected in zip(found, problems, strict=True):
        assert text.startswith(f"data.jsonl, {expected}")


def test_skipping_a_record_leaves_its_twin_out_too(write: Any) -> None:
    data = open_data(str(write(*twins(rejected=5), make_row(3))) + "?invalid=skip")
    assert data.ids == ["q3"]
    assert data.skipped == 2


def test_a_chain_of_lost_twins_is_left_out_to_its_end(write: Any) -> None:
    rows = [make_row(k, twin=f"q{k + 1}") for k in range(1, 4)]
    data = open_data(str(write(*rows, make_row(9))) + "?invalid=skip")
    assert data.ids == ["q9"]
    assert data.skipped == 3


def test_the_digest_follows_the_records(write: Any) -> None:
    one = open_data(str(write(make_row(1), make_row(2)))).digest
    assert open_data(str(write(make_row(1), make_row(2), "", name="copy.jsonl"))).digest == one
    assert open_data(str(write(make_row(1), make_row(3), name="other.jsonl"))).digest != one
