"""Servers that take token ids: they get what the classifier at home would read."""

from pathlib import Path
from typing import Any

import pytest

import palate
from llm.stub import Asked, Reply
from models import TinyModels
from palate.errors import ModelError
from rewards.servers import Site, sent, sglang, vllm
from rewards.test_http import group, scorer, scores

pytestmark = pytest.mark.hf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TinyModels(tmp_path_factory.mktemp("models"))("qwen2")


@pytest.fixture(scope="module")
def head(folder: Path) -> Any:
    """The model itself, as a function of token ids."""
    import torch
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def reward(ids: list[int]) -> float:
        with torch.inference_mode():
            return float(model(input_ids=torch.tensor([ids])).logits[0, 0])

    return reward


@pytest.mark.parametrize("kind", ["sglang", "vllm"])
def test_a_model_behind_a_server_scores_as_it_does_at_home(kind: str, folder: Path, head: Any, tmp_path: Path) -> None:
    def classify(asked: Asked) -> Any:
        if not asked.body:
            return Reply(status=400, error="Field required")
        rows = [{"index": k, "probs": [head(ids)]} for k, ids in enumerate(asked.body["input"])]
        return sent({"data": rows[::-1]})

    routes = sglang(lambda ids: [head(ids)]) if kind == "sglang" else {**vllm(schema=False), "/classify": classify}
    with Site(routes) as site:
        models = [f"http/{site.address}?tokenizer={folder}&window=2048", f"hf/{folder}?window=2048"]
        served, home = palate.evaluate("sample", models, "history", tmp_path, limit=4).runs
    assert served.metrics["coverage"] == 1.0
    for item, row in home.rows.items():
        for seat in ("chosen_score", "rejected_score"):
            assert served.rows[item][seat] == pytest.approx(row[seat], abs=1e-4)
        assert served.rows[item]["shown"] == row["shown"]
    tokenizer = served.record["config"]["model"]["tokenizer"]
    assert (tokenizer["id"], tokenizer["template"]) == (folder.name, "chat")
    assert str(folder.parent) not in str(served.record["config"])
    if kind == "sglang":
        assert served.record["environment"]["server_version"] == "0.5.4"
        assert served.record["config"]["model"]["weights"] == {"model_path": "rm", "weight_version": "3"}
        assert "sk-SERVER-secret" not in str(served.record)


def test_too_long_is_told_before_it_is_sent(folder: Path) -> None:
    with Site(sglang(lambda ids: [float(len(ids))])) as site:
        model = scorer(site, f"?tokenizer={folder}&window=60&room=10")
        found = scores(model, [group("q", "Left.", "word " * 12), group("r" * 70, "Left.")])
        sizes = [len(ids) for a in site.at("/classify") for ids in a.body["input_ids"]]
    assert [found[n].status for n in ("q:0", "q:1", "r" * 70 + ":0")] == ["ok", "overlong", "overlong"]
    assert "room for 10" in str(found["q:1"].note)
    assert "window of 60" in str(found["r" * 70 + ":0"].note)
    assert max(sizes) <= 60


@pytest.mark.parametrize("rows", [[], [{"embedding": [1.0]}] * 3, {"error": "x"}, [3], [{"score": 1.0}]])
def test_rows_that_are_not_those_of_the_answers_are_refused_at_once(rows: Any, folder: Path) -> None:
    site = Site(sglang(lambda ids: [1.0]) | {"/classify": sent(rows)})
    with site, pytest.raises(ModelError, match="/classify: "):
        _ = scorer(site, f"?tokenizer={folder}").budget


def test_rows_that_go_missing_later_are_errors(folder: Path) -> None:
    with Site(sglang(lambda ids: [1.0]) | {"/classify": sent([{"embedding": [1.0]}])}) as site:
        found = scores(scorer(site, f"?tokenizer={folder}"), [group("q", "a", "b"), group("r", "a")])
    assert {name: s.value for name, s in found.items()} == {"q:0": 1.0, "q:1": 1.0, "r:0": 1.0}
    assert len(site.at("/classify")) == 5


def test_a_hidden_state_behind_sglang_is_no_reward(folder: Path) -> None:
    with Site(sglang(lambda ids: [0.1] * 32)) as site, pytest.raises(ModelError, match="--is-embedding"):
        _ = scorer(site, f"?tokenizer={folder}").budget


def test_a_tokenizer_that_is_not_there(tmp_path: Path) -> None:
    with Site(sglang(lambda ids: [1.0])) as site:
        with pytest.raises(ModelError, match="no such folder"):
            _ = scorer(site, f"?tokenizer={tmp_path / 'none'}").identity
        with pytest.raises(ModelError, match="cannot be loaded"):
            _ = scorer(site, f"?tokenizer={tmp_path}").identity
