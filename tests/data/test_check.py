"""`check_data`: what is wrong with data is a problem, what is odd about it a warning."""

from pathlib import Path
from typing import Any

import pytest

from palate.data.check import check_data
from palate.errors import DataError
from rows import make_row


def even(number: int, **changes: Any) -> dict[str, Any]:
    """Return a row whose answers are of one length."""
    return make_row(number, **{"chosen": f"Bean stew {number}.", "rejected": f"Roast hen {number}."} | changes)


def warnings_of(path: Path) -> tuple[str, ...]:
    """Return the warnings about a file without problems."""
    found = check_data(str(path))
    assert found.problems == ()
    assert found.problem_count == 0
    return found.warnings


@pytest.mark.parametrize("name", ["sample", "sample:train"])
def test_the_sample_has_neither_problems_nor_warnings(name: str) -> None:
    found = check_data(name)
    assert (found.problems, found.warnings, found.problem_count) == ((), (), 0)
    assert all(0.3 < value < 0.7 for value in found.length_accuracy.values())


def test_figures_count_what_is_there(write: Any) -> None:
    figures = check_data(
        str(write(make_row(1), make_row(2, user_id="u1", profile=[]), make_row(3, domain="art")))
    ).figures
    assert figures["format"] == "lamp-qa"
    assert (figures["items"], figures["users"]) == (3, 2)
    assert figures["domains"] == "food 2, art 1"
    assert figures["with a rubric"] == 3
    assert figures["empty histories (cold start)"] == 1
    assert figures["posts a history, mean"] == 1.3


def test_problems_are_listed_and_not_raised(write: Any) -> None:
    found = check_data(str(write(make_row(1), "", make_row(1), make_row(2, chosen="Soup.", rejected="Soup. "))))
    assert found.problems == (
        "data.jsonl, line 2: blank line",
        "data.jsonl, line 3: id: 'q1' is already the id of data.jsonl, line 1; ids must be unique",
        "data.jsonl, line 4: chosen and rejected are the same text, so the pair cannot be decided",
    )
    assert found.problem_count == 3
    assert found.figures["items"] == 1
    assert not any("left out" in text for text in found.warnings)


def test_twenty_problems_are_told_and_all_are_counted(write: Any) -> None:
    found = check_data(str(write(*(make_row(k, question=k) for k in range(25)))))
    assert (len(found.problems), found.problem_count) == (20, 25)


def test_an_empty_file_is_one_problem(write: Any) -> None:
    found = check_data(str(write()))
    assert found.problems == ("data.jsonl: the file is empty; it needs at least one record.",)
    assert found.problem_count == 1


def test_a_split_that_is_not_there_is_one_problem(write: Any) -> None:
    row = {"user_id": "ann", "split": "train", "context": [{"role": "user", "content": "Tea?"}]}
    row |= {name: {"role": "model", "content": name} for name in ("chosen", "rejected")}
    assert "Splits found: train (1)" in check_data(str(write(row))).problems[0]


def test_a_file_that_is_not_there_is_raised() -> None:
    with pytest.raises(DataError, match="no file or folder"):
        check_data("nowhere.jsonl")


def test_ten_pairs_solved_by_taking_the_longer_answer(write: Any) -> None:
    rows = [make_row(k, chosen=f"A long answer, number {k}.", rejected=f"Short {k}.") for k in range(10)]
    found = check_data(str(write(*rows)))
    assert found.length_accuracy == {"food": 1.0}
    assert found.warnings == ("domain 'food': taking the longer answer solves 100% of the pairs",)


def test_length_is_told_for_each_domain(write: Any) -> None:
    shorter = [make_row(k, domain="art", chosen=f"Yes {k}.", rejected=f"Surely not {k}.") for k in range(10)]
    even = [make_row(k, chosen=f"Yes {k}.", rejected=f"No. {k}.") for k in range(10, 14)]
    found = check_data(str(write(*shorter, *even)))
    assert found.length_accuracy == {"art": 0.0, "food": 0.5}
    assert found.warnings == ("domain 'art': taking the shorter answer solves 100% of the pairs",)


def test_samples_have_no_length_accuracy(write: Any) -> None:
    assert check_data(str(write({"question": "Q", "responses": ["a", "bb"]}))).length_accuracy == {}


def test_a_pair_with_both_labels_is_a_contradiction(write: Any) -> None:
    same = {"question": "Soup or salad?", "user_id": "u1"}
    path = write(
        make_row(1, **same, chosen="Soup.", rejected="Salad."), make_row(2, **same, chosen="Salad.", rejected="Soup.")
    )
    assert warnings_of(path) == ("the same pair with opposite labels: q1 and q2",)


def test_opposed_pairs_of_two_users_ought_to_be_twins(write: Any) -> None:
    pairs = [{"chosen": "Soup.", "rejected": "Stew."}, {"chosen": "Stew.", "rejected": "Soup."}]
    rows = [make_row(k, question="Soup or stew?", **pair) for k, pair in enumerate(pairs)]
    assert warnings_of(write(*rows)) == (
        "opposed answers of two users; twins must name each other in 'twin': q0 and q1",
    )
    rows = [row | {"twin": f"q{1 - k}"} for k, row in enumerate(rows)]
    assert warnings_of(write(*rows)) == ()


def test_the_same_pair_twice_is_told(write: Any) -> None:
    row = make_row(1, chosen="Soup.", rejected="Stew.")
    assert warnings_of(write(row, row | {"id": "q2"})) == ("the same pair twice: q1 and q2",)


def test_five_of_many_findings_are_named(write: Any) -> None:
    same = {"question": "Soup or stew?", "chosen": "Soup.", "rejected": "Stew.", "user_id": "u"}
    (text,) = warnings_of(write(*(make_row(k, **same) for k in range(9))))
    assert text.startswith("the same pair twice: q0 and q1, ")
    assert text.endswith(" and 3 more")


def test_a_history_that_holds_question_answer_or_future_is_told(write: Any) -> None:
    answer = "Soak the beans for a whole night and then cook them very slowly with a bay leaf."
    asked, quoted, later = (
        {"id": "asked", "text": "WHAT should I cook on day 1?!", "date": "2024-05-01"},
        {"id": "quoted", "text": f"My aunt wrote: {answer} I still do so."},
        {"id": "later", "text": "I have eaten now.", "date": "2024-05-03T10:00"},
    )
    path = write(
        even(1, profile=[asked], date="2024-05-02"),
        even(2, profile=[quoted], chosen=answer, rejected="-" * len(answer)),
        even(3, profile=[later], date="2024-05-02"),
    )
    assert warnings_of(path) == (
        "the question stands in the history: q1 (post asked)",
        "the chosen answer is quoted in the history: q2 (post quoted)",
        "a post is dated after the question: q3 (post later)",
    )


@pytest.mark.parametrize(
    ("post", "question", "later"),
    [
        ("2024-05-03", "2024-05-02", True),
        ("2024-05-02", "2024-05-02", False),
        ("2024-05-02T09:00", "2024-05-02", False),
        ("2024-05-02", "2024-05-02T09:00", False),
        ("2024-05-02T10:00", "2024-05-02T09:00", True),
        ("2023", "2024-05-02", False),
    ],
)
def test_dates_are_compared_as_far_as_both_tell(write: Any, post: str, question: str, later: bool) -> None:
    row = even(1, date=question, profile=[{"id": "p", "text": "I like tea.", "date": post}])
    assert bool(warnings_of(write(row, even(2)))) is later


def test_post_ids_that_repeat_are_told(write: Any) -> None:
    row = even(1, profile=[{"id": "p", "text": "I like tea."}, {"id": "p", "text": "I like rain."}])
    found = check_data(str(write(row, even(2))))
    assert found.problems == (
        "data.jsonl, line 1: profile: two posts have the id 'p', so what was shown could not be told",
    )


def test_a_judged_pair_that_returns_as_an_item_is_told(write: Any) -> None:
    row: dict[str, Any] = {"user_id": "ann", "context": [{"role": "user", "content": "Tea or coffee?"}]}
    row |= {"chosen": {"role": "model", "content": "Tea!"}, "rejected": {"role": "model", "content": "Rum?"}}
    other = row | {"context": [{"role": "user", "content": "Milk or lemon?"}]}
    found = warnings_of(write(row | {"split": "train"}, row | {"id": "a"}, other | {"id": "b"}))
    assert "the pair is in the user's train split too: a" in found


def test_records_without_answers_are_told_with_the_columns_that_are_not_known(write: Any) -> None:
    row = make_row(1, chosen=None, rejected=None, answer="Tea.", response="Coffee.")
    assert "no answers (unknown columns: answer, response): q1" in warnings_of(write(row))


def test_a_column_that_is_nearly_a_field_is_told(write: Any) -> None:
    row = even(1, profil=[], userid="ann", source="web")
    found = warnings_of(write(row))
    assert "column 'profil' is kept but not read. Did you mean 'profile'?" in found
    assert "column 'userid' is kept but not read. Did you mean 'user_id'?" in found
    assert not any("source" in text for text in found)


def test_missing_users_are_told(write: Any) -> None:
    assert warnings_of(write(even(1, user_id=None), even(2, user_id=None))) == (
        "no user ids: each item counts as its own user; there are no per-user figures",
    )


def test_the_result_is_plain_data(write: Any) -> None:
    found = check_data(str(write(make_row(1))))
    assert found.as_dict()["name"] == "data"
    assert found.as_dict()["problems"] == []
    assert set(found.as_dict()) == {"name", "figures", "problems", "problem_count", "warnings", "length_accuracy"}
