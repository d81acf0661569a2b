"""Real public data: it opens with all its records, or is refused with a message that says what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from palate.data import open_data
from palate.data.convert import convert_data
from palate.errors import DataError

pytestmark = pytest.mark.shared

SYNTHESIZEME = "synthesizeme_prism/personalrewardbench_records.jsonl"
PREFEVAL = "prefeval/prefeval_8topics.jsonl"


@pytest.mark.parametrize(
    ("name", "items", "users", "cold"),
    [
        ("se_beer_pairs/se_beer_lampqa_like.jsonl", 397, 219, 190),
        ("se_coffee_pairs/se_coffee_lampqa_like.jsonl", 78, 48, 38),
        ("prism_pairs/prism_lampqa_like.jsonl", 420, 64, 0),
    ],
)
def test_pairs_in_the_own_form_open_whole(shared: Path, name: str, items: int, users: int, cold: int) -> None:
    data = open_data(str(shared / name))
    assert (len(data), len({e.user_id for e in data.entries.values()})) == (items, users)
    assert sum(e.posts == 0 for e in data.entries.values()) == cold
    assert data.has_pairs
    assert (data.skipped, data.notes) == (0, ())
    assert sum(1 for item in data if item.question) == items


def test_every_user_of_the_pairs_with_company_has_a_donor(shared: Path) -> None:
    data = open_data(str(shared / "prism_pairs/prism_lampqa_like.jsonl"))
    for name, entry in data.entries.items():
        donor = data.donor(name)
        assert donor is not None
        assert donor.user_id != entry.user_id


def test_records_wrapped_in_another_are_refused_by_field(shared: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_data(str(shared / SYNTHESIZEME))
    assert len(caught.value.problems) == 18
    assert caught.value.problems[0].endswith(
        "line 1: prompt: the required field is missing. Found: notebook, blob, record."
    )


def test_personal_rewardbench_records_open_but_for_those_without_a_user(shared: Path, write: Any) -> None:
    rows = [json.loads(line)["record"] for line in (shared / SYNTHESIZEME).open(encoding="utf-8")]
    path = write(*rows)
    with pytest.raises(DataError) as caught:
        open_data(str(path))
    assert len(caught.value.problems) == 2
    assert all("user_id: the required field is missing" in text for text in caught.value.problems)
    with pytest.raises(DataError, match=r"no record of split 'test'\. Splits found: train \(4\)"):
        open_data(f"{path}?invalid=skip")
    data = open_data(f"{path}?invalid=skip&split=train")
    assert (len(data), data.skipped, data.format) == (4, 2, "personal-rewardbench")


def test_wrapped_records_convert_by_a_map(shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.jsonl"
    maps = ["messages=record.context", "chosen=record.chosen.content", "rejected=record.rejected.content"]
    assert convert_data(str(shared / SYNTHESIZEME), out, maps) == 6
    assert open_data(str(out)).has_pairs
    with pytest.raises(DataError, match=r"line 2: no 'user_id' of 'record\.user_id'"):
        convert_data(str(shared / SYNTHESIZEME), tmp_path / "other.jsonl", [*maps, "user_id=record.user_id"])


def test_multiple_choice_converts_by_a_map(shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.jsonl"
    assert not open_data(str(shared / PREFEVAL)).has_pairs
    assert convert_data(str(shared / PREFEVAL), out, ["chosen=options.0", "rejected=options.1"]) == 388
    data = open_data(str(out))
    assert (len(data), data.has_pairs, data.has_users) == (388, True, False)
    item = next(iter(data))
    options = item.extra["options"]
    assert [a.text for a in data.answers(item.id)] == options[:2]
    assert item.persona
