"""Strict reading: lines end at newlines only, and what is not one JSON object is refused with a reason."""

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palate.data.lines import BadLine, describe, iter_array, parse_object, read_lines

PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PLAIN
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3), max_leaves=8
)


@settings(deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))),
    st.sampled_from(["\n", "\r\n"]),
)
def test_lines_are_what_was_joined_and_stand_where_they_say(texts: list[str], end: str) -> None:
    raw = "".join(text + end for text in texts).encode()
    lines = list(read_lines(io.BytesIO(raw)))
    assert [line.raw.decode() for line in lines] == [
        t.removeprefix("\ufeff") if not k else t for k, t in enumerate(texts)
    ]
    assert [line.number for line in lines] == list(range(1, len(texts) + 1))
    for line in lines:
        assert raw[line.offset : line.offset + len(line.raw)] == line.raw


def test_other_line_separators_do_not_cut() -> None:
    text = '{"a": "one\u2028two\u2029three\u0085four\x0b"}'
    assert [line.raw.decode() for line in read_lines(io.BytesIO(f"{text}\n{text}".encode()))] == [text, text]


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    lines = list(read_lines(io.BytesIO(b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n")))
    assert (lines[0].offset, lines[0].raw) == (3, b"{}")
    assert lines[1].raw.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "blank line"),
        (b"  ", "blank line"),
        (b'{"id": "q1", "question": "Wh', "cut off in the middle"),
        (b'{"id": "q1",', "cut off in the middle"),
        (b'{"id": "q1"', "cut off in the middle"),
        ('{"id": "café'.encode()[:-1], "cut off in the middle"),
        (b'{"id": "caf\xe9"}', "not UTF-8 (byte 12)"),
        ('{"id": "q"}'.encode("utf-16"), "not UTF-8 (byte 1)"),
        (b"{'id': 1}", "not JSON"),
        (b'{"id": 1} {"id": 2}', "not JSON: Extra data at column 11"),
        (b'{"a": 1, "a": 2}', "the key 'a' is given twice in one object"),
        (b'{"b": [{"a": 1, "a": 1}]}', "the key 'a' is given twice in one object"),
        (b'{"x": NaN}', "NaN is not JSON"),
        (b'{"x": [-Infinity]}', "-Infinity is not JSON"),
        (b'{"x": 1e999}', "the number 1e999 is too large"),
        (b'{"x": ' + b"9" * 5000 + b"}", "not readable as JSON"),
        (b'{"x": "\\ud83d"}', "stands alone"),
        (b'{"\\uDC00": 1}', "stands alone"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"x": ' * 50_000, "nested too deeply"),
        (b"[1, 2]", "expected an object {…}, found a list of 2"),
        (b'"text"', 'expected an object {…}, found the string "text"'),
        (b"null", "expected an object {…}, found null"),
    ],
)
def test_what_is_not_one_strict_object_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(BadLine) as caught:
        parse_object(raw)
    assert why in str(caught.value)


def test_a_surrogate_pair_is_one_character() -> None:
    assert parse_object(b'{"x": "\\ud83c\\udf4f"}') == {"x": "🍏"}


@settings(deadline=None)
@given(st.dictionaries(PLAIN, VALUES), st.booleans())
def test_every_strict_object_is_read_as_json_reads_it(value: dict[str, Any], ascii_only: bool) -> None:
    assert parse_object(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_give_an_object_or_a_reason(raw: bytes) -> None:
    try:
        found: object = parse_object(raw)
    except BadLine as bad:
        found = str(bad)
    assert isinstance(found, dict) or found


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "the boolean true"),
        (7, "the number 7"),
        ("pear", 'the string "pear"'),
        (" ", "a blank string"),
        ("x" * 40, f'the string "{"x" * 29}…"'),
        ([1], "a list of 1"),
        ({}, "an empty object"),
        ({"a": 1, "b": 2}, "an object with a, b"),
    ],
)
def test_values_in_words(value: object, words: str) -> None:
    assert describe(value) == words


def read_array(raw: bytes, chunk: int) -> list[Any]:
    """Return what the elements of an array on disk say."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_bytes(raw)
        return [json.loads(text) for text in iter_array(path, chunk)]


@settings(deadline=None)
@given(
    st.lists(VALUES, max_size=6),
    st.integers(1, 9),
    st.sampled_from([None, 0, 3]),
    st.booleans(),
    st.sampled_from(["", " ", "\r\n", "\ufeff", "\ufeff \n"]),
)
def test_an_array_read_in_pieces_is_the_array(
    values: list[Any], chunk: int, indent: int | None, ascii_only: bool, before: str
) -> None:
    text = before + json.dumps(values, indent=indent, ensure_ascii=ascii_only) + " \n"
    assert read_array(text.encode(), chunk) == values


@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"{}", "expected a JSON array"),
        (b'{"a": 1}\n{"a": 2}', "expected a JSON array"),
        (b"[", "the file ends in the middle of the array"),
        (b"[1,", "the file ends in the middle of the array"),
        (b'[{"a": 1}, {"a', "the file ends in the middle of the array"),
        (b'[{"a": 1}', "the file ends in the middle of the array"),
        (b"[1,]", "record 2: not JSON"),
        (b"[,1]", "record 1: not JSON"),
        (b"[1 2]", "record 1: not JSON: expected ',' or ']'"),
        (b'[{"a" 1}]', "record 1: not JSON"),
        (b"[1] [2]", "more text follows"),
        (b'["caf\xe9"]', "the file is not UTF-8"),
        (b"[" * 100_000, "record 1: lists or objects are nested too deeply"),
    ],
)
def test_a_broken_array_is_refused_with_the_record(raw: bytes, why: str, chunk: int) -> None:
    with pytest.raises(BadLine) as caught:
        read_array(raw, chunk)
    assert why in str(caught.value)


@pytest.mark.parametrize("raw", [b"", b" \n", b"[]", b"[ ]"])
def test_an_array_of_nothing_has_no_elements(raw: bytes) -> None:
    assert read_array(raw, 1) == []
