"""A study is made once and then only goes on: configuration, assignment, attention items, links."""

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from palate.annotate import Study, Wanted, export_rows, open_study, read_status
from palate.annotate.study import BOOK
from palate.data import open_data
from palate.errors import DataError, PalateError, RunError, SpecError
from palate.retrieval import make_retriever, rank
from rows import make_row


def tasks(study: Study, name: str) -> list[tuple[str, str]]:
    who = study.book.annotators()[name]
    found = [study.book.task(who, n) for n in range(1, study.book.progress(who).total + 1)]
    return [(t.item, t.first) for t in found if t]


def test_a_study_goes_on_with_the_same_links_items_and_seats(tmp_path: Path) -> None:
    with open_study(tmp_path / "s", Wanted("sample", limit=9, overlap=2), ["ana", "ben", "cy"]) as study:
        first = {n: (study.links.token(n), tasks(study, n)) for n in ("ana", "ben", "cy")}
        assert study.added == ("ana", "ben", "cy")
        assert sum(len(t) for _, t in first.values()) == 18
    with open_study(tmp_path / "s", None, ["dee", "ana"]) as study:
        assert study.added == ("dee",)
        assert {n: (study.links.token(n), tasks(study, n)) for n in first} == first
        assert len(tasks(study, "dee")) == 9 * 2 // 4
    with open_study(tmp_path / "s") as study:
        assert list(study.book.annotators()) == ["ana", "ben", "cy", "dee"]


def test_another_configuration_is_refused_by_name(tmp_path: Path, write: Any) -> None:
    with open_study(tmp_path / "s", Wanted("sample", limit=4), ["ana"]):
        pass
    other = write(make_row(1), make_row(2))
    with pytest.raises(RunError) as bad, open_study(tmp_path / "s", Wanted(str(other), overlap=5, k=10, seed=1)):
        pass
    assert "overlap: the study has 3, wanted is 5" in str(bad.value)
    assert "seed: the study has 0, wanted is 1" in str(bad.value)
    assert "data_digest" in str(bad.value)
    assert "k:" not in str(bad.value)
    copy = shutil.copy(Path(open_data("sample")._source.parts[0].path), tmp_path / "moved.jsonl")
    with open_study(tmp_path / "s", Wanted(str(copy), limit=4)) as study:
        assert len(study.book.items()) == 4


def test_two_servers_of_one_study(tmp_path: Path) -> None:
    with (
        open_study(tmp_path / "s", Wanted("sample", limit=2), ["ana"]),
        pytest.raises(RunError, match="another process"),
        open_study(tmp_path / "s"),
    ):
        pass


@pytest.mark.parametrize(
    ("wanted", "names", "kind", "message"),
    [
        (Wanted(), ["ana"], SpecError, "needs --data"),
        (Wanted("sample"), [], SpecError, "needs --annotators"),
        (Wanted("sample"), ["ana", "ana"], SpecError, "named twice"),
        (Wanted("sample"), ["a\nb"], SpecError, "printable"),
        (Wanted("sample"), ["a" * 61], SpecError, "60 printable"),
        (Wanted("nothing.jsonl"), ["ana"], DataError, "no file"),
        (Wanted("sample", attention="auto:x"), ["ana"], SpecError, "auto:3"),
        (Wanted("sample", attention="auto:60"), ["ana"], DataError, "only 60 items"),
        (Wanted("sample", attention="sample"), ["ana"], DataError, "has an item of that id"),
        (Wanted("sample", retriever="bm"), ["ana"], SpecError, "unknown"),
    ],
)
def test_what_makes_no_study_leaves_nothing_behind(
    wanted: Wanted, names: list[str], kind: type[PalateError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message), open_study(tmp_path / "s", wanted, names):
        pass
    assert not (tmp_path / "s").exists()


def test_data_without_pairs_and_lost_records(tmp_path: Path, write: Any) -> None:
    bare = write(make_row(1, chosen=None, rejected=None), name="bare.jsonl")
    with pytest.raises(DataError, match="chosen and a rejected"), open_study(tmp_path / "s", Wanted(str(bare)), ["a"]):
        pass
    with open_study(tmp_path / "s", Wanted("sample", limit=1), ["a"]):
        pass
    (tmp_path / "s" / "study.json").unlink()
    with pytest.raises(RunError, match=r"study.json: missing"), open_study(tmp_path / "s", Wanted("sample"), ["a"]):
        pass
    for read in (export_rows, read_status):
        with pytest.raises(RunError, match="no study"):
            read(tmp_path)


def test_a_study_that_was_killed_while_it_was_made_is_made_by_the_same_command(tmp_path: Path) -> None:
    wanted = Wanted("sample", limit=5)

    def dies(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_study(tmp_path / "s", wanted, ["ana"], seen=dies):
        pass
    with open_study(tmp_path / "s", wanted, ["ana"]) as study:
        assert len(study.book.items()) == 5
        assert len(tasks(study, "ana")) == 5


def test_people_see_the_posts_as_the_views_rank_them(tmp_path: Path) -> None:
    with open_study(tmp_path / "s", Wanted("sample", k=4), ["ana"]) as study:
        data = open_data("sample")
        for name in data.ids[:10]:
            item, sheet = data.get(name), study.book.sheet(name)
            ranked = rank(item.question, item.posts, make_retriever("bm25"), 4, item_id=name).posts
            assert sheet.posts == tuple(p.text for p in ranked)
            assert {sheet.chosen, sheet.rejected} == {a.text for a in data.answers(name)}
            key = data.key(name)
            assert key
            assert sheet.aspects == key.aspects


def test_attention_items_of_ones_own(tmp_path: Path, write: Any) -> None:
    checks = write(
        make_row(1, id="check-1", expected="rejected"), make_row(2, id="check-2", expected="none"), name="c.jsonl"
    )
    with open_study(tmp_path / "s", Wanted("sample", limit=3, attention=str(checks)), ["ana", "ben"]) as study:
        assert set(study.book.items(attention=True)) == {"check-1", "check-2"}
        assert study.book.sheet("check-1").expected == "rejected"
        assert {i for i, _ in tasks(study, "ben")} == {*open_data("sample").ids[:3], "check-1", "check-2"}
    bad = write(make_row(1, id="check-1", expected="Chosen"), name="bad.jsonl")
    told = "'check-1': 'expected' must be one of chosen, rejected, none, found 'Chosen'"
    wanted = Wanted("sample", attention=str(bad))
    with pytest.raises(DataError, match=told), open_study(tmp_path / "t", wanted, ["ana"]):
        pass
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(("limit", "left"), [(None, 57), (58, 57), (10, 10)])
def test_made_attention_items_are_off_topic_and_not_asked_twice(tmp_path: Path, limit: int | None, left: int) -> None:
    data = open_data("sample")
    with open_study(tmp_path / "s", Wanted("sample", limit=limit, attention="auto:3"), ["ana"]) as study:
        items, checks = study.book.items(), study.book.items(attention=True)
        assert (len(items), len(checks)) == (left, 3)
        for name in checks:
            sheet, base = study.book.sheet(name), name.removeprefix("attention:")
            assert base not in items
            assert sheet.expected == "chosen"
            assert sheet.chosen == next(a.text for a in data.answers(base) if a.role == "chosen")
            owners = {i for i in data.ids if sheet.rejected in [a.text for a in data.answers(i)]}
            assert owners
            assert all(data.get(i).question != data.get(base).question for i in owners)
            assert all(data.get(i).domain != data.get(base).domain for i in owners)


def test_nothing_to_borrow_for_an_attention_item(tmp_path: Path, write: Any) -> None:
    data = write(*(make_row(k, question="Tea or coffee?") for k in range(4)))
    with (
        pytest.raises(DataError, match="off-topic"),
        open_study(tmp_path / "s", Wanted(str(data), attention="auto:1"), ["a"]),
    ):
        pass
    nobody = write(*(make_row(k, user_id=None) for k in range(4)), name="nobody.jsonl")
    with open_study(tmp_path / "s", Wanted(str(nobody), attention="auto:1"), ["a"]) as study:
        assert len(study.book.items(attention=True)) == 1


def test_links_cannot_be_guessed_and_are_written_nowhere(tmp_path: Path) -> None:
    tokens = []
    for name in ("s", "t"):
        with open_study(tmp_path / name, Wanted("sample", limit=2), ["ana", "ben"]) as study:
            tokens += [study.links.token(n) for n in ("ana", "ben")]
            assert study.links.who(tokens[-1]) == "ben"
            assert study.links.who(tokens[0]) == ("ana" if name == "s" else None)
            assert not study.links.is_form_of("ana", study.links.form_token("ben"))
        mode = stat.S_IMODE((tmp_path / name / "secret").stat().st_mode)
        assert mode == 0o600
    assert len(set(tokens)) == 4
    assert all(len(t) == 32 for t in tokens)
    export_rows(tmp_path / "s")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert not any(t.encode() in path.read_bytes() for t in tokens), path
    (tmp_path / "s" / "secret").unlink()
    with open_study(tmp_path / "s") as study:
        assert study.links.who(tokens[0]) is None
        assert study.links.who(study.links.token("ana")) == "ana"
    (tmp_path / "s" / "secret").write_bytes(b"short")
    with pytest.raises(RunError, match="Delete it"), open_study(tmp_path / "s"):
        pass


def test_the_record_tells_what_the_study_is(tmp_path: Path) -> None:
    with open_study(tmp_path / "s", Wanted("sample", limit=2, attention="auto:1"), ["ana"]):
        pass
    record = json.loads((tmp_path / "s" / "study.json").read_text())
    assert record["config"]["data_digest"] == open_data("sample").digest
    assert record["config"]["retriever_identity"]
    assert (record["config"]["overlap"], record["config"]["k"], record["config"]["limit"]) == (3, 10, 2)
    assert (tmp_path / "s" / BOOK).exists()
