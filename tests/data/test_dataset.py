"""Random access by id, users' train pairs as history, and who lends a context to `user=other`."""

import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palate.data import Dataset, open_data
from palate.errors import DataError, SpecError
from palate.records import Answer, Item, Key
from rows import make_row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
POSTS = st.lists(
    st.fixed_dictionaries({"text": TEXT}, optional={"category": TEXT, "date": st.dates().map(str)}), max_size=3
)
ASPECTS = st.lists(st.fixed_dictionaries({"aspect": TEXT, "evidence": TEXT, "reason": TEXT}), max_size=2)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": TEXT, "question": TEXT},
        optional={
            "user_id": TEXT,
            "domain": TEXT,
            "category": TEXT,
            "profile": POSTS,
            "persona": TEXT,
            "rubric_aspects": ASPECTS,
            "narrative": TEXT,
            "mood": TEXT,
            "stars": st.integers(0, 5),
        },
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row["id"],
).map(lambda rows: [row | {"chosen": f"Yes, {k}.", "rejected": f"No, {k}."} for k, row in enumerate(rows)])


def whole(data: Dataset) -> list[tuple[Item, tuple[Answer, ...], Key | None]]:
    """Return all that a dataset holds."""
    return [(data.get(name), data.answers(name), data.key(name)) for name in data.ids]


def judged(user: str, split: str, number: int, **changes: Any) -> dict[str, Any]:
    """Return a PersonalRewardBench row."""
    row = {
        "user_id": user,
        "split": split,
        "context": [{"role": "user", "content": f"Question {number}?"}],
        "chosen": {"role": "model", "content": f"Good {number}."},
        "rejected": {"role": "model", "content": f"Bad {number}."},
    }
    return row | changes


@settings(deadline=None)
@given(ROWS, st.data())
def test_what_was_written_is_read_in_any_order(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.jsonl"
        path.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
        opened = open_data(str(path))
        assert opened.ids == [row["id"] for row in rows]
        items = list(opened)
        for k in data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12)):
            row, item = rows[k], opened.get(rows[k]["id"])
            assert item == items[k]
            assert item.question == row["question"]
            assert (item.user_id, item.domain) == (row.get("user_id"), row.get("domain", "all"))
            assert [p.text for p in item.posts] == [p["text"] for p in row.get("profile", [])]
            assert dict(item.extra) == {name: row[name] for name in ("mood", "stars") if name in row}
            assert [a.text for a in opened.answers(item.id)] == [row["chosen"], row["rejected"]]
            assert (opened.key(item.id) is None) == ("narrative" not in row and "rubric_aspects" not in row)


@settings(deadline=None)
@given(ROWS, st.sampled_from([None, 2]))
def test_an_array_and_lines_of_the_same_rows_are_the_same_data(rows: list[dict[str, Any]], indent: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines, array = Path(folder) / "a.jsonl", Path(folder) / "a.json"
        lines.write_bytes("".join(json.dumps(row) + "\n" for row in rows).encode())
        array.write_bytes(json.dumps(rows, ensure_ascii=False, indent=indent).encode())
        assert whole(open_data(str(array))) == whole(open_data(str(lines)))


@pytest.mark.parametrize("name", ["sample", "sample:train"])
def test_the_sample_is_whole(name: str) -> None:
    data = open_data(name)
    assert data.has_users
    assert data.has_pairs
    assert data.skipped == 0
    assert data.notes == ()
    assert data.name == name.replace(":", "-")
    assert len(list(data)) == len(data) == len(data.entries)


def test_what_a_dataset_says_of_itself(write: Any) -> None:
    data = open_data(str(write(make_row(1, mood="calm", tags=["a"]))))
    assert repr(data) == "<Dataset data: 1 items, lamp-qa>"
    assert data.columns == ["domain", "category", "user_id", "mood", "tags"]
    columns = ("domain", "user_id", "mood", "tags", "category", "none")
    assert [data.column("q1", name) for name in columns] == ["food", "u1", "calm", '["a"]', None, None]


def test_entries_count_the_history(write: Any) -> None:
    row = make_row(1, profile=[{"text": "abc"}, {"text": "de"}])
    entry = open_data(str(write(row))).entry("q1")
    assert (entry.posts, entry.chars, entry.aspects, entry.answers) == (2, 5, 1, 2)


def test_records_without_users_are_noted(write: Any) -> None:
    data = open_data(str(write(make_row(1, user_id=None), make_row(2, user_id=None))))
    assert not data.has_users
    assert data.notes == ("no user ids: each item counts as its own user; there are no per-user figures",)
    some = open_data(str(write(make_row(1), make_row(2, user_id=None))))
    assert some.has_users
    assert some.notes == ("1 items name no user: each counts as a user of its own",)


def test_samples_are_no_pairs(write: Any) -> None:
    assert not open_data(str(write({"question": "Q", "responses": ["a", "b"]}))).has_pairs
    assert not open_data(str(write({"question": "Q"}))).has_pairs


def test_an_unknown_id_gets_the_nearest_one(write: Any) -> None:
    data = open_data(str(write(make_row(1, id="lentils"))))
    with pytest.raises(DataError, match=r"data: no item 'lentil'\. Did you mean 'lentils'\?"):
        data.get("lentil")


def test_a_file_that_changes_while_it_is_read_is_noticed(write: Any) -> None:
    path = write(make_row(1), make_row(2))
    data = open_data(str(path))
    write(make_row(3), make_row(4))
    with pytest.raises(DataError, match="the file changed while it was being read"):
        data.get("q2")


def test_a_file_that_is_gone_is_noticed(write: Any) -> None:
    path = write(make_row(1))
    data = open_data(str(path))
    path.unlink()
    with pytest.raises(DataError, match="the file changed while it was being read"):
        data.get("q1")


def test_a_folder_gives_its_subfolders_as_domains(write: Any, tmp_path: Path) -> None:
    for name in ("art", "food", ".hidden"):
        (tmp_path / name).mkdir()
    write(make_row(1, domain=None), name="art/a.jsonl")
    write(make_row(2, domain=None), name="food/b.jsonl")
    write(make_row(3, domain="sport"), name="c.jsonl")
    write("not data", name=".hidden/d.jsonl")
    data = open_data(str(tmp_path))
    assert {item.id: item.domain for item in data} == {"q1": "art", "q2": "food", "q3": "sport"}
    assert data.name == tmp_path.name


def test_records_without_ids_are_told_apart_across_files(write: Any, tmp_path: Path) -> None:
    (tmp_path / "art").mkdir()
    for name in ("a.jsonl", "b.jsonl", "art/a.jsonl"):
        write(make_row(1, id=None, domain=None), name=name)
    assert open_data(str(tmp_path)).ids == ["a.jsonl:1", "art:1", "b.jsonl:1"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("smple", r"no file or folder 'smple'\. Did you mean 'sample'\?"),
        ("{folder}/dta.jsonl", r"Did you mean '.*/data\.jsonl'\?"),
        ("{folder}/notes.txt", r"the ending '\.txt' is not known\. Known: \.jsonl, \.json, \.parquet\."),
        ("{folder}/nothing", r"no file ending in \.jsonl, \.json, \.parquet in this folder"),
    ],
)
def test_what_is_not_there_is_told(write: Any, tmp_path: Path, text: str, why: str) -> None:
    write(make_row(1))
    write("text", name="notes.txt")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match=why):
        open_data(text.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("?splt=test", "unknown option 'splt'. Did you mean 'split'?"),
        ("?invalid=skp", "invalid=skp is not possible. Did you mean 'skip'?"),
    ],
)
def test_options_that_are_unknown_are_refused(write: Any, options: str, why: str) -> None:
    with pytest.raises(SpecError) as caught:
        open_data(f"{write(make_row(1))}{options}")
    assert why in str(caught.value)


def test_a_local_name_may_hold_an_at_sign(write: Any) -> None:
    assert open_data(str(write(make_row(1), name="a@b.jsonl"))).name == "a@b"


def test_the_train_pairs_of_a_user_are_the_history_of_the_test_pairs(write: Any) -> None:
    rows = [
        judged("ann", "test", 1, id="t1"),
        judged("ann", "train", 2, id="h2", type="values"),
        judged("bob", "train", 3),
        judged("ann", "train", 4),
        judged("cat", "test", 5, id="t5"),
        judged("ann", "val", 6),
    ]
    data = open_data(str(write(*rows)))
    assert data.ids == ["t1", "t5"]
    posts = data.get("t1").posts
    assert [(p.text, p.rejected, p.prompt) for p in posts] == [
        ("Good 2.", "Bad 2.", "Question 2?"),
        ("Good 4.", "Bad 4.", "Question 4?"),
    ]
    assert (posts[0].id, posts[0].category) == ("h2", "values")
    assert data.get("t5").posts == ()
    assert (data.entry("t1").posts, data.entry("t5").posts) == (2, 0)
    assert data.notes == ("1 records of split 'val' are not used",)


def test_another_split_can_be_asked_for(write: Any) -> None:
    path = write(judged("ann", "test", 1), judged("ann", "train", 2), judged("ann", "val", 3))
    data = open_data(f"{path}?split=val")
    assert [item.question for item in data] == ["Question 3?"]
    assert len(data.get("3").posts) == 1
    assert data.notes == ("1 records of split 'test' are not used",)
    train = open_data(f"{path}?split=train")
    assert [len(item.posts) for item in train] == [0]
    assert train.digest != data.digest


def test_a_split_that_is_not_there_lists_those_that_are(write: Any) -> None:
    path = write(judged("ann", "train", 1), judged("ann", "train", 2), judged("ann", "val", 3))
    with pytest.raises(DataError, match=r"no record of split 'test'\. Splits found: train \(2\), val \(1\)"):
        open_data(str(path))


def crowd(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return users of two domains whose histories differ in number and length."""
    rng = random.Random(seed)
    return [
        make_row(
            k,
            domain=rng.choice(["food", "art"]),
            profile=[{"text": "word " * rng.randint(1, 9)} for _ in range(rng.choice([0, 1, 2, 2, 5, 9]))],
        )
        for k in range(count)
    ]


def test_a_donor_is_another_user_of_the_domain_among_the_ten_nearest_in_size(write: Any) -> None:
    data = open_data(str(write(*crowd(60))))
    for name, entry in data.entries.items():
        distance = {
            other.id: abs(math.log1p(other.posts) - math.log1p(entry.posts))
            + abs(math.log1p(other.chars) - math.log1p(entry.chars))
            for other in data.entries.values()
            if other.posts and other.domain == entry.domain and other.user_id != entry.user_id
        }
        furthest = sorted(distance.values())[9]
        drawn = [data.donor(name, draw=k) for k in range(10)]
        ids = [item.id for item in drawn if item is not None]
        assert len(set(ids)) == 10
        assert all(distance[i] <= furthest + 1e-9 for i in ids)
        assert data.donor(name, draw=10) is None


def test_a_donor_does_not_hang_on_the_order_or_name_of_files(write: Any, tmp_path: Path) -> None:
    rows = [make_row(k, profile=[{"text": "same size"}]) for k in range(30)]
    shuffled = random.Random(2).sample(rows, 30)
    renamed = [row | {"profile": [{"id": f"other{k}", "text": "same size"}]} for k, row in enumerate(shuffled)]
    one = open_data(str(write(*rows)))
    two = open_data(str(write(*renamed, name="renamed.jsonl")))
    for name in one.ids:
        drawn = [[data.donor(name, draw=k) for k in range(10)] for data in (one, two)]
        assert [i and i.id for i in drawn[0]] == [i and i.id for i in drawn[1]]


def test_donors_change_with_the_seed_and_from_item_to_item(write: Any) -> None:
    data = open_data(str(write(*(make_row(k) for k in range(30)))))

    def chosen(seed: int) -> list[str]:
        lenders = [data.donor(name, seed) for name in data.ids]
        return [item.id for item in lenders if item]

    assert chosen(0) == chosen(0)
    assert chosen(0) != chosen(1)
    assert len(set(chosen(0))) > 10


def test_a_user_lends_one_history_though_they_have_many_items(write: Any) -> None:
    rows = [make_row(k, user_id=f"u{k % 3}") for k in range(30)]
    data = open_data(str(write(*rows)))
    drawn = [data.donor("q0", draw=k) for k in range(3)]
    assert {item.user_id for item in drawn if item} == {"u1", "u2"}
    assert drawn[2] is None


def test_the_twins_user_never_lends(write: Any) -> None:
    pair = {"question": "Soup or salad?", "chosen": "Soup.", "rejected": "Salad."}
    rows = [
        make_row(1, **pair, twin="q2"),
        make_row(2, **pair | {"chosen": "Salad.", "rejected": "Soup."}, twin="q1", user_id="b", profile=[]),
        make_row(3, user_id="b"),
        make_row(4, user_id="c"),
    ]
    for domain in ("food", "art"):  # the twin's domain may be another
        rows[1]["domain"] = domain
        data = open_data(str(write(*rows)))
        assert [item and item.user_id for item in (data.donor("q1", draw=k) for k in range(2))] == ["c", None]


def test_items_without_users_lend_to_each_other_but_not_to_themselves(write: Any) -> None:
    data = open_data(str(write(*(make_row(k, user_id=None) for k in range(3)))))
    drawn = [data.donor("q1", draw=k) for k in range(3)]
    assert {item.id for item in drawn if item} == {"q0", "q2"}
    assert drawn[2] is None


def test_no_donor_where_nobody_else_has_posts(write: Any) -> None:
    rows = [make_row(1), make_row(2, profile=[]), make_row(3, domain="art"), make_row(4, user_id="u1")]
    data = open_data(str(write(*rows)))
    assert data.donor("q1") is None
    assert data.donor("q3") is None
    lender = data.donor("q2")
    assert lender is not None
    assert lender.user_id == "u1"


def test_a_donor_of_a_rubric_has_one(write: Any) -> None:
    bare = [make_row(k, rubric_aspects=None, narrative=None) for k in range(2, 9)]
    data = open_data(str(write(make_row(1), *bare, make_row(9, profile=[]))))
    lender = data.donor("q1", with_key=True)
    assert lender is not None
    assert lender.id == "q9"
    assert data.donor("q1", draw=1, with_key=True) is None
