"""verl's rows: the view's own prompt, what it showed of the user, and nothing of the key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models import CHAT, make_tokenizer
from palate.data import open_data
from palate.errors import DataError, PalateError
from palate.ppo.prepare import prepare, read_about
from palate.retrieval import make_retriever
from palate.rewards.wire import ScoreItem, read
from palate.views import Looker, View
from rows import make_row

parquet = pytest.importorskip("pyarrow.parquet")


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return found


def test_a_row_is_the_query_of_the_view(tmp_path: Path) -> None:
    out = tmp_path / "new" / "train.parquet"
    done = prepare("sample", "history?k=3", out, limit=5)
    assert (done.rows, done.dropped, done.left_out) == (5, 0, {})
    data = open_data("sample")
    looker = Looker(data, make_retriever("bm25"))
    for index, row in enumerate(rows(out)):
        item = data.get(data.ids[index])
        query = looker.query(item.id, View.parse("history?k=3"))
        assert row["prompt"] == [{"role": m.role, "content": m.content} for m in query.messages]  # type: ignore[union-attr]
        assert (row["data_source"], row["ability"]) == ("palate/sample", item.domain)
        assert row["reward_model"] == {"style": "model", "ground_truth": item.id}
        info = row["extra_info"]
        assert (info["index"], info["item_id"], info["user_id"]) == (index, item.id, item.user_id)
        assert (info["question"], len(info["history"]), info["plan"], info["messages"]) == (
            item.question,
            3,
            None,
            None,
        )
    about = read_about(out)
    assert (about["view"], about["k"], about["retriever"]["id"]) == ("history?k=3", 3, "bm25")
    assert list(out.parent.iterdir()) == [out], "no half-written file stays"


@pytest.mark.parametrize("view", ["question", "history", "history?user=none", "swapped", "plan"])
def test_extra_info_makes_an_item_of_the_wire_whose_view_is_the_prompt(view: str, tmp_path: Path) -> None:
    prepare("sample", view, tmp_path / "x.parquet", limit=3)
    for row in rows(tmp_path / "x.parquet"):
        info = {k: v for k, v in row["extra_info"].items() if v is not None}
        fields = {k: info[k] for k in ("question", "history", "plan", "messages") if k in info}
        item = read(ScoreItem, {"id": "1", "response": "x", **fields})
        shown = item.history or item.plan or []
        assert all(text in row["prompt"][0]["content"] for text in [*shown, item.question or ""])


def test_nothing_of_a_key_is_in_the_file(write: Callable[..., Path], tmp_path: Path) -> None:
    canaries = {"aspect": "ZEBRA-ASPECT", "evidence": "ZEBRA-EVIDENCE", "reason": "ZEBRA-REASON"}
    hidden = {"rubric_aspects": [canaries], "narrative": "ZEBRA-NARRATIVE", "chosen": "ZEBRA-A", "rejected": "ZEBRA-B"}
    data = write(*(make_row(k, **hidden, note="ZEBRA-EXTRA") for k in range(1, 5)))
    for view in ("question", "history", "history?user=none", "swapped", "plan"):
        out = tmp_path / "x.parquet"
        prepare(str(data), view, out)
        assert len(rows(out)) == 4
        assert "ZEBRA" not in json.dumps(rows(out))
        assert b"ZEBRA" not in out.read_bytes()
        assert "ZEBRA" not in json.dumps(read_about(out))


def test_a_longer_conversation_goes_whole(write: Callable[..., Path], tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": "I have beans."},
        {"role": "assistant", "content": "How many?"},
        {"role": "user", "content": "Nine. What now?"},
    ]
    data = write({**make_row(1, question=None), "messages": turns})
    prepare(str(data), "history", tmp_path / "x.parquet")
    (row,) = rows(tmp_path / "x.parquet")
    info = row["extra_info"]
    assert info["messages"] == row["prompt"]
    assert [m["role"] for m in info["messages"]] == ["user", "assistant", "user"]
    assert (info["question"], info["history"]) == (None, None)


@pytest.mark.hf
def test_prompts_are_fitted_from_the_bottom_of_the_ranking(write: Callable[..., Path], tmp_path: Path) -> None:
    posts = [{"id": f"p{k}", "text": f"Day {k}: I cook beans and onions. " * 20} for k in range(8)]
    data = write(make_row(1, profile=posts), make_row(2, question="What should I cook? " * 200))
    tokenizer = make_tokenizer(CHAT)
    tokenizer.save_pretrained(tmp_path / "tok")
    full = prepare(str(data), "history", tmp_path / "full.parquet")
    done = prepare(str(data), "history", tmp_path / "x.parquet", tokenizer=str(tmp_path / "tok"), max_prompt_tokens=900)
    assert (full.rows, full.dropped, done.rows, done.left_out) == (2, 0, 1, {"overlong": 1})
    (row,), (whole, _) = rows(tmp_path / "x.parquet"), rows(tmp_path / "full.parquet")
    kept = row["extra_info"]["posts"]
    assert 0 < len(kept) < 8
    assert done.dropped == row["extra_info"]["dropped"] == 8 - len(kept)
    assert kept == whole["extra_info"]["posts"][: len(kept)]
    assert row["extra_info"]["history"] == whole["extra_info"]["history"][: len(kept)]
    count = len(tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=False))
    assert count <= 900
    assert read_about(tmp_path / "x.parquet")["max_prompt_tokens"] == 900


@pytest.mark.parametrize(
    ("view", "out", "options", "told"),
    [
        ("oracle", "x.parquet", {}, "never goes into a prompt"),
        ("oracle?user=other", "x.parquet", {}, "never goes into a prompt"),
        ("swapped?draws=2", "x.parquet", {}, "leave draws out"),
        ("history", "x.jsonl", {}, r"end in \.parquet"),
        ("history", "x.parquet", {"max_prompt_tokens": 100}, "needs --tokenizer"),
    ],
)
def test_what_is_refused(view: str, out: str, options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(PalateError, match=told):
        prepare("sample", view, tmp_path / out, **options)
    assert not list(tmp_path.iterdir())


def test_a_file_that_would_be_empty_leaves_the_old_one(write: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "out" / "x.parquet"
    prepare("sample", "question", out, limit=1)
    with pytest.raises(DataError, match="no_context 1"):
        prepare(str(write(make_row(1))), "swapped", out)
    assert len(rows(out)) == 1
    assert list(out.parent.iterdir()) == [out]


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    import pyarrow

    parquet.write_table(pyarrow.table({"prompt": ["x"]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="not written by palate ppo prepare"):
        read_about(tmp_path / "x.parquet")
    (tmp_path / "y.parquet").write_text("no")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        read_about(tmp_path / "y.parquet")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        read_about(tmp_path / "none.parquet")
