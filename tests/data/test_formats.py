"""Each form of data becomes the same records; what cannot be read is told by field, expected and found."""

from typing import Any

import pytest

from palate.data import open_data
from palate.data.formats import FORMATS, Place, Record, read_record, recognise
from palate.errors import DataError
from palate.records import Aspect, Message, Post
from rows import make_row

Row = dict[str, Any]
HERE = Place("1", "all")


def turn(role: str, content: str) -> Row:
    return {"role": role, "content": content}


ASK, REPLY, OTHER = turn("user", "Tea or coffee?"), turn("assistant", "Tea."), turn("assistant", "Coffee.")
PERSONAL: Row = {
    "user_id": "ann",
    "context": [turn("user", "Hello"), turn("model", "Hi."), turn("user", "Tea or coffee?")],
    "chosen": turn("model", "Tea."),
    "rejected": turn("model", "Coffee."),
    "type": "drinks",
    "split": "train",
    "flip": True,
}


def read(row: Row, place: Place = HERE) -> Record:
    """Return the record in a row that has no faults."""
    record, faults = read_record(recognise(row), row, place)
    assert faults == []
    assert record is not None
    return record


def faults_of(row: Row) -> list[str]:
    """Return the faults of a row that cannot be read."""
    record, faults = read_record(recognise(row), row, HERE)
    assert record is None
    return faults


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (make_row(), "lamp-qa"),
        ({"messages": [ASK]}, "lamp-qa"),
        (make_row(context="a column of the user's own", prompt="another"), "lamp-qa"),
        ({"prompt": "Q", "chosen": "a", "rejected": "b"}, "rewardbench"),
        (PERSONAL, "personal-rewardbench"),
        ({k: v for k, v in PERSONAL.items() if k != "user_id"}, "personal-rewardbench"),
        ({"question": "Q", "responses": ["a"]}, "best-of-n"),
        ({"question": "Q", "responses": None, "chosen": "a", "rejected": "b"}, "lamp-qa"),
        ({"something": 1}, "rewardbench"),
    ],
)
def test_a_form_is_recognised_by_its_fields(row: Row, name: str) -> None:
    assert recognise(row) is FORMATS[name]


def test_the_own_form_keeps_everything_in_its_place() -> None:
    record = read(make_row(3, category="soup", persona="A gardener.", twin=8, mood="calm", date="2024-02-03"))
    item = record.item
    assert (item.id, item.user_id, item.domain, item.category, item.twin) == ("q3", "u3", "food", "soup", "8")
    assert item.messages == (Message("user", "What should I cook on day 3?"),)
    assert item.posts[0] == Post("p3-1", "I grow beans number 3 on my roof.", "food")
    assert item.persona == "A gardener."
    assert dict(item.extra) == {"mood": "calm", "date": "2024-02-03"}
    assert [(a.id, a.item_id, a.role) for a in record.answers] == [
        ("q3#chosen", "q3", "chosen"),
        ("q3#rejected", "q3", "rejected"),
    ]
    assert record.key is not None
    assert record.key.aspects == (Aspect("Beans", "I eat beans", "They have plenty."),)
    assert record.key.narrative == "I eat beans and I have many of them, number 3."


def test_rubric_and_narrative_are_in_the_key_and_nowhere_else() -> None:
    row = make_row(rubric_aspects=[{"aspect": "SECRET1", "evidence": "SECRET2", "reason": "SECRET3"}])
    record = read(row | {"narrative": "SECRET4"})
    assert "SECRET" not in repr(record.item)
    assert "SECRET" not in repr(record.answers)


def test_published_rows_without_user_domain_and_post_ids() -> None:
    record = read({"question": "Q", "profile": [{"text": "a"}, {"text": "b"}]}, Place("food:4", "food"))
    assert (record.item.id, record.item.user_id, record.item.domain) == ("food:4", None, "food")
    assert [p.id for p in record.item.posts] == ["0", "1"]
    assert record.answers == ()
    assert record.key is None


def test_an_earlier_choice_is_a_post_with_prompt_and_rejected() -> None:
    post = {"id": 5, "text": "Tea.", "prompt": "Tea or coffee?", "rejected": "Coffee.", "date": "2024-01-02"}
    record = read(make_row(profile=[post]))
    assert record.item.posts == (Post("5", "Tea.", None, "2024-01-02", "Tea or coffee?", "Coffee."),)


def test_turns_of_several_speakers() -> None:
    turns = [turn("system", "Be brief."), turn("human", "Hi"), turn("GPT", "Hello."), turn("user", "Tea?")]
    item = read({"messages": turns, "chosen": "Yes.", "rejected": "No."}).item
    assert [m.role for m in item.messages] == ["system", "user", "assistant", "user"]
    assert item.question == "Tea?"


@pytest.mark.parametrize(
    ("prompt", "chosen", "rejected"),
    [
        ("Tea or coffee?", "Tea.", "Coffee."),
        ([ASK], "Tea.", "Coffee."),
        ([ASK], [REPLY], [OTHER]),
        ([ASK], [ASK, REPLY], [ASK, OTHER]),
        ("Tea or coffee?", [ASK, REPLY], [OTHER]),
    ],
)
def test_rewardbench_as_text_and_as_messages_is_one_thing(prompt: Any, chosen: Any, rejected: Any) -> None:
    record = read({"prompt": prompt, "chosen": chosen, "rejected": rejected, "subset": "chat", "chosen_model": "m"})
    assert record.item.messages == (Message("user", "Tea or coffee?"),)
    assert record.item.domain == "chat"
    assert dict(record.item.extra) == {"chosen_model": "m", "subset": "chat"}
    assert [a.text for a in record.answers] == ["Tea.", "Coffee."]


def test_a_named_domain_goes_before_the_subset() -> None:
    assert read({"prompt": "Q", "chosen": "a", "rejected": "b", "subset": "s", "domain": "d"}).item.domain == "d"


@pytest.mark.parametrize("asked", [{"question": "Tea or coffee?"}, {"prompt": "Tea or coffee?"}, {"messages": [ASK]}])
def test_best_of_n_has_numbered_samples(asked: Row) -> None:
    record = read({"id": "q", "responses": ["Tea.", "", "Coffee."], **asked})
    assert record.item.question == "Tea or coffee?"
    assert [(a.id, a.text, a.role) for a in record.answers] == [
        ("q#0", "Tea.", "sample"),
        ("q#1", "", "sample"),
        ("q#2", "Coffee.", "sample"),
    ]


def test_personal_rewardbench_reads_model_as_assistant() -> None:
    record = read(PERSONAL)
    assert [m.role for m in record.item.messages] == ["user", "assistant", "user"]
    assert [a.text for a in record.answers] == ["Tea.", "Coffee."]
    assert (record.item.user_id, record.item.category, record.split) == ("ann", "drinks", "train")
    assert dict(record.item.extra) == {"flip": True, "type": "drinks"}


def test_a_column_that_a_table_left_empty_is_not_there() -> None:
    assert dict(read(make_row() | {"mood": None, "category": None}).item.extra) == {}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (make_row(question=5), "question: expected a string, found the number 5"),
        (make_row(question=" "), "question: must not be blank, found a blank string"),
        (make_row(user_id=1.5), "user_id: expected a string or a whole number, found the number 1.5"),
        (make_row(id=True), "id: expected a string or a whole number, found the boolean true"),
        (make_row(profile="I like tea"), 'profile: expected a list, found the string "I like tea"'),
        (make_row(profile=["tea"]), 'profile[0]: expected an object, found the string "tea"'),
        (make_row(profile=[{"text": "a"}, {"id": "p"}]), "profile[1].text: the required field is missing. Found: id."),
        (
            make_row(profile=[{"content": "a"}]),
            "profile[0].text: the required field is missing. Did you mean 'content'? Found: content.",
        ),
        (
            make_row(rubric_aspects=[{"aspect": ""}]),
            "rubric_aspects[0].aspect: must not be blank, found a blank string",
        ),
        (make_row(chosen=[REPLY]), "chosen: expected a string, found a list of 1"),
        (make_row(messages=[ASK]), "exactly one of 'question' and 'messages' is needed"),
        (
            make_row(chosen=None, answer="Tea."),
            "'rejected' is given but 'chosen' is missing. Did you mean 'answer'? Found: answer.",
        ),
        (make_row(rejected=None), "'chosen' is given but 'rejected' is missing. Found: nothing."),
        (
            {"prompt": "Q", "answer": "a", "rejected": "b"},
            "chosen: the required field is missing. Did you mean 'answer'? Found: prompt, answer, rejected.",
        ),
        (
            {"prompt": "Q", "chosne": "a", "rejected": "b"},
            "chosen: the required field is missing. Did you mean 'chosne'? Found: prompt, chosne, rejected.",
        ),
        (
            {"prompt": ASK, "chosen": "a", "rejected": "b"},
            "prompt: expected a string or a list, found an object with role, content",
        ),
        (
            {"prompt": [{"role": "user"}], "chosen": "a", "rejected": "b"},
            "prompt[0].content: the required field is missing. Found: role.",
        ),
        (
            {"prompt": [turn("usr", "Q")], "chosen": "a", "rejected": "b"},
            "prompt: unknown role 'usr'; known: user, assistant, system",
        ),
        ({"prompt": [], "chosen": "a", "rejected": "b"}, "prompt must not be empty"),
        ({"prompt": [ASK, REPLY], "chosen": "a", "rejected": "b"}, "prompt must end with the user's turn"),
        (
            {"prompt": "Q", "chosen": [turn("bot", "a")], "rejected": "b"},
            "chosen: unknown role 'bot'; known: user, assistant, system",
        ),
        ({"prompt": "Q", "chosen": [ASK], "rejected": "b"}, "chosen must end with the assistant's turn"),
        ({"prompt": "Q", "chosen": [], "rejected": "b"}, "chosen must end with the assistant's turn"),
        (
            {"prompt": "Q", "chosen": [ASK, REPLY], "rejected": "b"},
            "chosen: the turns before the answer differ from the prompt's",
        ),
        ({"question": "Q", "responses": []}, "responses: must hold at least one answer, found a list of 0"),
        ({"question": "Q", "responses": ["a", 2]}, "responses[1]: expected a string, found the number 2"),
        (
            {"question": "Q", "prompt": "Q", "responses": ["a"]},
            "exactly one of 'question', 'prompt' and 'messages' is needed",
        ),
        (PERSONAL | {"context": []}, "context must not be empty"),
        (PERSONAL | {"chosen": turn("user", "Tea.")}, "chosen must end with the assistant's turn"),
        (PERSONAL | {"chosen": "Tea."}, 'chosen: expected an object, found the string "Tea."'),
    ],
)
def test_faults_name_field_expected_and_found(row: Row, fault: str) -> None:
    assert faults_of(row) == [fault]


def test_all_faults_of_a_row_are_told() -> None:
    assert faults_of(make_row(question=5, domain=3, persona=["x"])) == [
        "domain: expected a string, found the number 3",
        "persona: expected a string, found a list of 1",
        "question: expected a string, found the number 5",
    ]


@pytest.mark.parametrize(
    ("chosen", "rejected", "fault"),
    [
        ("Soup.", "Soup.", "chosen and rejected are the same text, so the pair cannot be decided"),
        ("Soup.", "Soup. \n", "chosen and rejected are the same text, so the pair cannot be decided"),
        ("Soup.", "", "rejected is blank, so the pair cannot be decided"),
        (" \t", "Soup.", "chosen is blank, so the pair cannot be decided"),
    ],
)
def test_pairs_that_nobody_can_decide_are_refused(chosen: str, rejected: str, fault: str) -> None:
    own = make_row() | {"chosen": chosen, "rejected": rejected}
    assert faults_of(own) == [fault]
    assert faults_of({"prompt": "Q", "chosen": chosen, "rejected": rejected}) == [fault]


@pytest.mark.parametrize(
    ("date", "fine"),
    [
        ("2024-05-01", True),
        ("2024", True),
        ("2024-05-01T10:00:00Z", True),
        ("yesterday", False),
        ("2024-13-45", False),
        ("01/02/1999", False),
    ],
)
def test_dates_of_posts_are_iso(write: Any, date: str, fine: bool) -> None:
    path = str(write(make_row(1, profile=[{"text": "Tea.", "date": date}])))
    if fine:
        assert open_data(path).get("q1").posts[0].date == date
    else:
        with pytest.raises(DataError, match="expected an ISO date"):
            open_data(path)
