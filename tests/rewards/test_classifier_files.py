"""Model folders from strangers: no code of theirs runs, and damaged files are told in one message."""

import json
import pickle
from pathlib import Path

import pytest

from models import TinyModels, Trap, altered, pickled
from palate.errors import ModelError
from palate.evaluation import evaluate

pytestmark = pytest.mark.hf

CODE = """
from pathlib import Path

from transformers import AutoModel, LlamaConfig, LlamaForSequenceClassification, LlamaModel

Path({marker!r}).touch()


class OwnConfig(LlamaConfig):
    model_type = {kind!r}


class OwnBase(LlamaModel):
    config_class = OwnConfig


class OwnModel(LlamaForSequenceClassification):
    config_class = OwnConfig


AutoModel.register(OwnConfig, OwnBase, exist_ok=True)
"""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "code-ran"


def with_code(folder: Path, into: Path, marker: Path, kind: str) -> Path:
    """Return a copy whose configuration points to a Python file in it."""
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModelForSequenceClassification": "own.OwnModel"}
    altered(folder, into, config={"model_type": kind, "auto_map": auto_map})
    (into / "own.py").write_text(CODE.format(marker=str(marker), kind=kind))
    return into


def test_the_trap_works(marker: Path) -> None:
    pickle.loads(pickle.dumps(Trap(marker)))
    assert marker.exists()


class TestCode:
    def test_code_of_an_unknown_architecture_is_refused(self, tiny: TinyModels, marker: Path, tmp_path: Path) -> None:
        folder = with_code(tiny(), tmp_path / "m", marker, "own-kind")
        with pytest.raises(ModelError, match="remote_code=allow"):
            evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs", limit=2)
        assert not marker.exists()
        assert not (tmp_path / "runs").exists()

    def test_code_beside_a_known_architecture_is_not_run(self, tiny: TinyModels, marker: Path, tmp_path: Path) -> None:
        folder = with_code(tiny(), tmp_path / "m", marker, "llama")
        (run,) = evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs", limit=2)
        assert run.metrics["coverage"] == 1
        assert run.record["config"]["model"]["options"] == {}
        assert not marker.exists()

    def test_code_that_is_allowed_runs_and_is_recorded(
        self, tiny: TinyModels, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
        monkeypatch.syspath_prepend(tmp_path / "modules")
        folder = with_code(tiny(), tmp_path / "m", marker, "own-kind")
        (run,) = evaluate("sample", f"hf/{folder}?remote_code=allow", "question", tmp_path / "runs", limit=2)
        (plain,) = evaluate("sample", f"hf/{tiny()}", "question", tmp_path / "runs", limit=2)
        assert marker.exists()
        assert run.record["config"]["model"]["options"] == {"remote_code": "allow"}
        assert run.rows == plain.rows


class TestPickles:
    @pytest.mark.parametrize("honest", [True, False])
    def test_pickled_weights_are_off(self, tiny: TinyModels, marker: Path, tmp_path: Path, honest: bool) -> None:
        from safetensors.torch import load_file

        weights = load_file(tiny() / "model.safetensors") if honest else {"trap": Trap(marker)}
        folder = pickled(tiny(), tmp_path / "m", weights)
        with pytest.raises(ModelError, match="pickle=allow"):
            evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs", limit=2)
        assert not marker.exists()

    def test_pickled_code_is_refused_even_if_pickles_are_allowed(
        self, tiny: TinyModels, marker: Path, tmp_path: Path
    ) -> None:
        folder = pickled(tiny(), tmp_path / "m", {"trap": Trap(marker)})
        with pytest.raises(ModelError, match="cannot be loaded"):
            evaluate("sample", f"hf/{folder}?pickle=allow", "question", tmp_path / "runs", limit=2)
        assert not marker.exists()

    def test_pickled_weights_that_are_allowed_give_the_same_numbers(self, tiny: TinyModels, tmp_path: Path) -> None:
        from safetensors.torch import load_file

        folder = pickled(tiny(), tmp_path / "m", load_file(tiny() / "model.safetensors"))
        models = [f"hf/{folder}?pickle=allow", f"hf/{tiny()}"]
        one, other = evaluate("sample", models, "question", tmp_path / "runs", limit=2)
        assert one.rows == other.rows

    def test_a_run_writes_no_pickles(self, tiny: TinyModels, tmp_path: Path) -> None:
        evaluate("sample", f"hf/{tiny()}", "history", tmp_path, limit=2)
        assert {p.suffix for p in tmp_path.rglob("*") if p.is_file()} <= {".json", ".jsonl", ".lock", ""}


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n"


class TestDamage:
    @pytest.mark.parametrize("weights", [POINTER, b"", b"\x05"], ids=["a git-lfs pointer", "empty", "torn"])
    def test_weights_that_are_none(self, tiny: TinyModels, tmp_path: Path, weights: bytes) -> None:
        folder = altered(tiny(), tmp_path / "m")
        (folder / "model.safetensors").write_bytes(weights)
        with pytest.raises(ModelError, match=r"model\.safetensors"):
            evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs", limit=2)

    def test_weights_cut_short(self, tiny: TinyModels, tmp_path: Path) -> None:
        folder = altered(tiny(), tmp_path / "m")
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[:-100])
        with pytest.raises(ModelError, match="cannot be loaded"):
            evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs", limit=2)

    def test_a_head_of_another_size(self, tiny: TinyModels, tmp_path: Path) -> None:
        folder = altered(tiny(), tmp_path / "m", config={"id2label": {"0": "a", "1": "b"}})
        with pytest.raises(ModelError, match="cannot be loaded"):
            evaluate("sample", f"hf/{folder}?label=a", "question", tmp_path / "runs", limit=2)

    def test_a_tokenizer_that_is_not_there(self, tiny: TinyModels, tmp_path: Path) -> None:
        folder = altered(tiny(), tmp_path / "m")
        for path in folder.glob("tokenizer*"):
            path.unlink()
        with pytest.raises(ModelError, match="cannot be loaded"):
            evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs", limit=2)

    def test_no_model_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="no weights"):
            evaluate("sample", f"hf/{tmp_path}", "question", tmp_path / "runs")

    def test_a_configuration_that_is_not_there(self, tiny: TinyModels, tmp_path: Path) -> None:
        folder = altered(tiny(), tmp_path / "m")
        (folder / "config.json").unlink()
        with pytest.raises(ModelError, match=r"no config\.json"):
            evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs")

    def test_a_folder_has_no_revisions(self, tiny: TinyModels, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="a folder has no revisions"):
            evaluate("sample", f"hf/{tiny()}@main", "question", tmp_path / "runs")

    def test_the_window_has_to_be_known(self, tiny: TinyModels, tmp_path: Path) -> None:
        changes = {"config": {"max_position_embeddings": None}, "tokenizer_config": {"model_max_length": None}}
        folder = altered(tiny(), tmp_path / "m", **changes)
        with pytest.raises(ModelError, match=r"\?window=4096"):
            evaluate("sample", f"hf/{folder}", "question", tmp_path / "runs")


def test_files_that_are_no_part_of_the_model_do_not_change_its_identity(tiny: TinyModels, tmp_path: Path) -> None:
    from palate.weights import find_weights

    folder = altered(tiny(), tmp_path / "m")
    before = find_weights(str(folder), None)
    (folder / "README.md").write_text("About this model.")
    assert find_weights(str(folder), None) == before
    (folder / "config.json").write_text(json.dumps({}))
    assert find_weights(str(folder), None).settings != before.settings
