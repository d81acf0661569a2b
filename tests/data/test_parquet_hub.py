"""Parquet and the hub give what the same rows give as lines; a hub's commit is recorded and nothing is guessed."""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palate.data import Dataset, open_data
from palate.data.check import check_data
from palate.errors import DataError, MissingExtra, SpecError
from rows import make_row

Row = dict[str, Any]
CONFIGS = ("Art_and_Entertainment", "Society_and_Culture")
CARD = "---\nconfigs:\n" + "".join(
    f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}/test-*\n" for name in CONFIGS
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)


def published(config: str, number: int, posts: int) -> Row:
    """Return a row with the fields of the published data; there is no user id."""
    return {
        "id": f"{config[0]}_{number}",
        "question": f"How do I begin with pottery, part {number}?",
        "profile": [
            {"id": f"{config[0]}_{number}_{k}", "category": "craft", "text": f"I shaped bowl {k} by hand."}
            for k in range(posts)
        ],
        "rubric_aspects": [
            {"aspect": "No wheel", "evidence": "by hand", "reason": "They have none."},
            {"aspect": "Cheap clay", "evidence": "I dig my own", "reason": "They save."},
        ],
        "narrative": f"I want to make pots without a wheel, number {number}.",
        "category": "craft",
        "chosen": f"Pinch pots from clay that you dig, {number}.",
        "rejected": f"Buy a good wheel and fine porcelain, {number}.",
    }


def seen(data: Dataset) -> list[Any]:
    """Return all that a dataset holds."""
    return [(data.get(name), data.answers(name), data.key(name)) for name in data.ids]


@pytest.fixture
def to_parquet() -> Callable[[list[Row], Path], Path]:
    """Write rows to a Parquet file."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def to(rows: list[Row], path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(arrow.Table.from_pylist(rows), path)
        return path

    return to


@pytest.fixture
def hub(tmp_path: Path, to_parquet: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder laid out as the published data on the hub; the network is off and the cache is private."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    root = tmp_path / "pottery"
    for config in CONFIGS:
        rows = [published(config, k, k % 3) for k in range(5)]
        to_parquet(rows, root / config / "test-00000-of-00001.parquet")
    (root / "README.md").write_text(CARD + "---\n", encoding="utf-8")
    return root


@settings(deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"question": TEXT},
            optional={
                "user_id": TEXT,
                "category": TEXT,
                "profile": st.lists(
                    st.fixed_dictionaries({"text": TEXT}, optional={"date": st.dates().map(str)}), max_size=3
                ),
                "rubric_aspects": st.lists(
                    st.fixed_dictionaries({"aspect": TEXT}, optional={"reason": TEXT}), max_size=2
                ),
                "narrative": TEXT,
                "stars": st.integers(0, 5),
                "mood": TEXT,
            },
        ),
        min_size=1,
        max_size=5,
    )
)
def test_lines_array_and_parquet_of_the_same_rows_are_the_same_data(rows: list[Row]) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [row | {"id": f"q{k}", "chosen": f"Yes, {k}.", "rejected": f"No, {k}."} for k, row in enumerate(rows)]
    with tempfile.TemporaryDirectory() as folder:
        lines, array, table = (Path(folder) / f"a{ending}" for ending in (".jsonl", ".json", ".parquet"))
        lines.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
        array.write_bytes(json.dumps(rows).encode())
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        parquet.write_table(arrow.table(columns), table)
        found = [seen(open_data(str(path))) for path in (lines, array, table)]
    assert found[0] == found[1]
    assert found[0] == found[2]


@pytest.mark.parametrize(
    "rows",
    [
        [{"prompt": "Tea?", "chosen": "Yes.", "rejected": "No.", "subset": "chat", "id": 3}],
        [
            {
                "user_id": "ann",
                "split": split,
                "context": [{"role": "user", "content": f"Tea, {split}?"}],
                "chosen": {"role": "model", "content": "Yes."},
                "rejected": {"role": "model", "content": "No."},
            }
            for split in ("train", "test")
        ],
        [{"id": "q", "question": "Tea?", "responses": ["Yes.", "No."]}],
        [{"messages": [{"role": "user", "content": "Tea?"}], "chosen": "Yes.", "rejected": "No."}],
        [make_row(1, profile=[]), make_row(2)],
    ],
)
def test_every_form_may_stand_in_a_table(write: Any, tmp_path: Path, to_parquet: Any, rows: list[Row]) -> None:
    table = to_parquet(rows, tmp_path / "data.parquet")
    one, two = open_data(str(write(*rows))), open_data(str(table))
    assert seen(one) == seen(two)
    assert one.format == two.format
    assert one.notes == two.notes


def test_problems_in_a_table_are_told_by_record(tmp_path: Path, to_parquet: Any) -> None:
    rows = [make_row(1, score=1.0), make_row(2, score=float("nan")), make_row(3, chosen=" ", score=2.0)]
    path = to_parquet(rows, tmp_path / "data.parquet")
    with pytest.raises(DataError) as caught:
        open_data(str(path))
    assert caught.value.problems == (
        "data.parquet, record 2: NaN is not JSON; use null or leave the field out",
        "data.parquet, record 3: chosen is blank, so the pair cannot be decided",
    )
    assert open_data(f"{path}?invalid=skip").ids == ["q1"]


def test_a_broken_table_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1 and then something else")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        open_data(str(path))


def test_an_empty_table_gets_the_plain_message(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    parquet.write_table(arrow.table({"question": arrow.array([], arrow.string())}), path)
    with pytest.raises(DataError, match="the file is empty"):
        open_data(str(path))


def check_published(data: Dataset, configs: tuple[str, ...] = CONFIGS) -> None:
    """Check that the published rows came through, each in the domain of its configuration."""
    rows = {row["id"]: (config, row) for config in configs for row in (published(config, k, k % 3) for k in range(5))}
    assert set(data.ids) == set(rows)
    assert not data.has_users
    assert data.has_pairs
    for item in data:
        config, row = rows[item.id]
        assert (item.domain, item.category, item.question) == (config, "craft", row["question"])
        assert [(p.id, p.category, p.text) for p in item.posts] == [tuple(p.values()) for p in row["profile"]]
        assert [a.text for a in data.answers(item.id)] == [row["chosen"], row["rejected"]]
        key = data.key(item.id)
        assert key is not None
        assert [{"aspect": a.aspect, "evidence": a.evidence, "reason": a.reason} for a in key.aspects] == row[
            "rubric_aspects"
        ]
        assert key.narrative == row["narrative"]
        assert dict(item.extra) == {}


def test_the_published_layout_read_as_a_folder(hub: Path) -> None:
    data = open_data(str(hub))
    check_published(data)
    assert data.revision is None
    assert check_data(str(hub)).problems == ()


def test_the_published_layout_read_through_the_hub_library(hub: Path) -> None:
    data = open_data(f"hub:{hub}")
    check_published(data)
    assert (data.name, data.revision) == ("pottery", None)


@pytest.mark.parametrize("config", CONFIGS)
def test_one_configuration_of_the_hub(hub: Path, config: str) -> None:
    check_published(open_data(f"hub:{hub}?config={config}&split=test"), (config,))


def test_a_hub_and_a_folder_of_the_same_tables_are_the_same_data(hub: Path) -> None:
    assert seen(open_data(str(hub))) == seen(open_data(f"hub:{hub}"))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("?config=Sport", "the hub did not give it: .*Sport"),
        (f"?config={CONFIGS[0]}&split=tset", r"no split 'tset'\. Did you mean 'test'\?"),
    ],
)
def test_what_the_hub_does_not_have_is_told(hub: Path, options: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        open_data(f"hub:{hub}{options}")


class Table(list[Row]):
    """A table as the hub library gives it, as far as it is used."""

    @property
    def column_names(self) -> list[str]:
        return list(self[0])


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Put a stub in place of the hub that writes down what it was asked."""
    datasets, hub = pytest.importorskip("datasets"), pytest.importorskip("huggingface_hub")
    asked: list[tuple[Any, ...]] = []

    def info(self: Any, name: str, revision: str | None = None) -> SimpleNamespace:
        asked.append(("info", name, revision))
        return SimpleNamespace(sha="c0ffee")

    def configs(name: str, revision: str | None = None) -> list[str]:
        asked.append(("configs", name, revision))
        return [*CONFIGS]

    def load(name: str, config: str, revision: str | None = None) -> dict[str, Table]:
        asked.append(("load", name, config, revision))
        return {"test": Table(published(config, k, k % 3) for k in range(5)), "train": Table([published(config, 9, 1)])}

    monkeypatch.setattr(hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(datasets, "get_dataset_config_names", configs)
    monkeypatch.setattr(datasets, "load_dataset", load)
    return asked


def test_the_commit_is_found_once_passed_on_and_recorded(remote: list[tuple[Any, ...]]) -> None:
    data = open_data("hub:someone/pottery@main")
    check_published(data)
    assert (data.name, data.revision) == ("someone/pottery", "c0ffee")
    assert remote == [
        ("info", "someone/pottery", "main"),
        ("configs", "someone/pottery", "c0ffee"),
        *(("load", "someone/pottery", config, "c0ffee") for config in CONFIGS),
    ]


def test_without_a_revision_the_newest_commit_is_recorded(remote: list[tuple[Any, ...]]) -> None:
    assert open_data(f"hub:someone/pottery?config={CONFIGS[0]}").revision == "c0ffee"
    assert remote[0] == ("info", "someone/pottery", None)
    assert len(remote) == 2


def test_a_split_of_the_hub_is_chosen(remote: list[tuple[Any, ...]]) -> None:
    assert open_data("hub:someone/pottery?split=train").ids == ["A_9", "S_9"]


def test_records_that_name_their_split_are_joined_over_the_splits_of_the_hub(
    remote: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def row(split: str) -> Row:
        return {
            "user_id": "ann",
            "split": split,
            "context": [{"role": "user", "content": f"Tea, {split}?"}],
            "chosen": {"role": "model", "content": f"Yes, {split}."},
            "rejected": {"role": "model", "content": "No."},
        }

    tables = {"train": Table([row("train")]), "validation": Table([row("val")]), "test": Table([row("test")])}
    monkeypatch.setattr("datasets.load_dataset", lambda *args, **options: tables)
    data = open_data("hub:someone/talks?config=default")
    assert [(item.question, item.domain) for item in data] == [("Tea, test?", "all")]
    assert [p.text for p in next(iter(data)).posts] == ["Yes, train."]
    assert data.notes == ("1 records of split 'val' are not used",)
    assert [item.question for item in open_data("hub:someone/talks?config=default&split=val")] == ["Tea, val?"]


def test_a_hub_that_cannot_be_reached_is_told_without_a_traceback(
    remote: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = pytest.importorskip("huggingface_hub.errors")
    transport = errors.HfHubHTTPError.__bases__[0]  # the error of whichever HTTP library the hub uses

    def fail(*args: Any, **options: Any) -> None:
        raise transport("connection refused")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", fail)
    with pytest.raises(DataError, match=r"data 'hub:a/b': the hub did not give it: connection refused"):
        open_data("hub:a/b")


def test_an_id_is_needed() -> None:
    pytest.importorskip("datasets")
    with pytest.raises(SpecError, match="an id is needed"):
        open_data("hub:")


@pytest.mark.parametrize("module", ["datasets", "huggingface_hub"])
def test_the_hub_without_its_extra_names_the_install_line(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"hub data needs the extra 'hub'(.|\n)*pip install 'palate\[hub\]'"):
        open_data("hub:someone/pottery")


def test_parquet_without_its_extra_names_the_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"reading a\.parquet needs the extra 'hub'(.|\n)*'palate\[hub\]'"):
        open_data(str(tmp_path / "a.parquet"))


def test_file_names_that_begin_with_a_split_are_read_by_split(write: Any, tmp_path: Path) -> None:
    folder = tmp_path / "set" / "food"
    folder.mkdir(parents=True)
    for name, number in (("test-00000-of-00001", 1), ("train-00000-of-00001", 2), ("more", 3)):
        write(make_row(number), name="one.jsonl").rename(folder / f"{name}.jsonl")
    found = open_data(str(tmp_path / "set"))
    assert found.ids == ["q3", "q1"]
    assert found.notes == ("files of other splits are not used: food/train-00000-of-00001.jsonl",)
    assert open_data(f"{tmp_path / 'set'}?split=train").ids == ["q2"]
    with pytest.raises(DataError, match=r"no file of split 'dev'\. Splits: test, train"):
        open_data(f"{tmp_path / 'set'}?split=dev")
