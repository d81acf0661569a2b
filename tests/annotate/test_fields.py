"""What a form may say."""

import pytest

from palate.annotate.fields import LONGEST_COMMENT, BadField, missing, read_field, read_fields


@pytest.mark.parametrize("text", ["0", "6", "", " 3", "3.0", "-1", "three", "３", "1e0", "²", "nan", "<b>"])
def test_a_rating_is_one_to_five_and_nothing_else(text: str) -> None:
    with pytest.raises(BadField, match="factuality of answer A: expected a whole number from 1 to 5") as bad:
        read_field(1, "factuality_a", text)
    assert bad.value.field == "factuality_a"
    with pytest.raises(BadField, match="fit of answer B"):
        read_field(2, "fit_b", text)


def test_what_is_kept() -> None:
    assert [read_field(1, "helpfulness_b", v) for v in "12345"] == list("12345")
    assert [read_field(1, "preference", v) for v in ("a", "none", "b")] == ["a", "none", "b"]
    assert read_field(1, "comment", "two\r\nlines\0") == "two\nlines"
    assert read_field(1, "comment", " \n ") is None


@pytest.mark.parametrize(
    ("step", "field"), [(2, "factuality_a"), (1, "fit_a"), (1, "factuality_c"), (2, "comment"), (1, "x" * 999)]
)
def test_fields_of_other_steps_or_none(step: int, field: str) -> None:
    with pytest.raises(BadField, match=f"step {step} has no field") as bad:
        read_field(step, field, "3")
    assert len(str(bad.value)) < 90


@pytest.mark.parametrize("text", ["A", "chosen", "", "both", "1"])
def test_a_preference_names_a_seat_or_none(text: str) -> None:
    with pytest.raises(BadField, match="preference: expected a, b or none"):
        read_field(1, "preference", text)


def test_a_comment_has_a_limit() -> None:
    assert read_field(1, "comment", "ü" * LONGEST_COMMENT) == "ü" * LONGEST_COMMENT
    with pytest.raises(BadField, match="at most 2000 characters, found 2001"):
        read_field(1, "comment", "ü" * (LONGEST_COMMENT + 1))


def test_one_bad_value_spoils_the_form() -> None:
    with pytest.raises(BadField):
        read_fields(2, {"fit_a": "3", "fit_b": "9"})


def test_what_is_missing() -> None:
    assert missing(2, {"fit_a": "3"}) == ["fit_b"]
    assert "comment" not in missing(1, {})
    assert len(missing(1, {})) == 7
