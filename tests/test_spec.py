"""The one grammar of strings: what it reads, what it refuses, and that it prints back to itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palate.errors import SpecError
from palate.spec import Spec, short_model, slug

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
SPECS = st.builds(
    Spec,
    head=TEXT,
    revision=st.none() | TEXT,
    options=st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), TEXT, max_size=3),
)


@settings(deadline=None)
@given(SPECS)
def test_a_string_prints_back_to_itself(spec: Spec) -> None:
    assert Spec.parse(str(spec)) == spec
    assert str(Spec.parse(str(spec))) == str(spec)


@settings(deadline=None)
@given(TEXT, st.dictionaries(st.sampled_from(["split", "k"]), TEXT))
def test_a_name_with_an_at_sign_prints_back_where_there_are_no_revisions(head: str, options: dict[str, str]) -> None:
    spec = Spec(head, None, options)
    assert Spec.parse(str(spec), revisions=False) == spec


@pytest.mark.parametrize(
    ("text", "head", "revision", "options"),
    [
        ("history", "history", None, {}),
        ("history?user=other&k=5", "history", None, {"user": "other", "k": "5"}),
        ("hf/org/model@v1.2?dtype=float32", "hf/org/model", "v1.2", {"dtype": "float32"}),
        ("http/user@host:80/score", "http/user@host:80/score", None, {}),
        ("hf/a@refs%2Fpr%2F1", "hf/a", "refs/pr/1", {}),
        ("hf/a%40b", "hf/a@b", None, {}),
        ("my%20data.jsonl?split=a%26b", "my data.jsonl", None, {"split": "a&b"}),
        ("  question ", "question", None, {}),
        ("question?", "question", None, {}),
    ],
)
def test_strings_are_read(text: str, head: str, revision: str | None, options: dict[str, str]) -> None:
    assert Spec.parse(text) == Spec(head, revision, options)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a name is needed"),
        ("?k=1", "a name is needed"),
        ("@main", "a name is needed"),
        ("hf/a@", "a revision after '@'"),
        ("history?k", "must look like key=value"),
        ("history?k=", "must look like key=value"),
        ("history?=1", "must look like key=value"),
        ("history?k=1&k=2", "'k' is given twice"),
    ],
)
def test_strings_that_say_nothing_clear_are_refused(text: str, why: str) -> None:
    with pytest.raises(SpecError, match="view") as caught:
        Spec.parse(text, "view")
    assert why in str(caught.value)


def test_an_unknown_option_gets_the_nearest_name() -> None:
    spec = Spec.parse("history?usr=own")
    with pytest.raises(SpecError, match=r"unknown option 'usr'\. Did you mean 'user'\?"):
        spec.only(("user", "k"), "view")
    with pytest.raises(SpecError, match="It takes none"):
        spec.only((), "view")
    assert spec.only(("usr",), "view") is spec


def test_an_option_of_a_closed_list() -> None:
    spec = Spec.parse("history?user=othr")
    with pytest.raises(SpecError, match="Did you mean 'other'"):
        spec.choice("user", ("own", "other", "none"), "own", "view")
    assert Spec.parse("history").choice("user", ("own",), "own", "view") == "own"


@pytest.mark.parametrize("value", ["-1", "1.5", "ten", "0"])
def test_an_option_that_must_be_a_whole_number(value: str) -> None:
    with pytest.raises(SpecError, match="whole number from 1 up"):
        Spec.parse(f"history?k={value}").whole("k", 10, "view", least=1)


def test_a_whole_number_and_its_default() -> None:
    assert Spec.parse("history?k=3").whole("k", 10, "view") == 3
    assert Spec.parse("history").whole("k", None, "view") is None


@settings(deadline=None)
@given(st.text())
def test_a_slug_is_one_safe_part_of_a_path(text: str) -> None:
    found = slug(text)
    assert found
    assert set(found) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not found.startswith(".")


@pytest.mark.parametrize(
    ("head", "short"),
    [
        ("hf/org/model", "hf/org/model"),
        ("hf//home/me/checkpoints/step-5/", "hf/step-5"),
        ("hf/./model", "hf/model"),
        ("builtin/length", "builtin/length"),
    ],
)
def test_the_name_of_a_model_for_people(head: str, short: str) -> None:
    assert short_model(head) == short
