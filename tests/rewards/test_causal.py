"""`likelihood/…` and `dpo/…`: sums of log-probabilities against a plain loop; what is refused; a small real model."""

from pathlib import Path
from typing import Any

import pytest

from alone import group, likelihoods
from models import TinyModels, altered, prose, smollm2
from palate.errors import ModelError, SpecError
from palate.evaluation import evaluate
from palate.rewards import open_model
from rows import make_row

pytestmark = pytest.mark.hf

GROUPS = [
    group("a", prose(9), "Yes.", prose(20, 3), shown=prose(80, 5)),
    group("b", "Tea?", "No.", "Perhaps, if it is green.", shown=prose(30)),
]
TOLERANCE = 2e-5


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny"))


def reference_of(policy: Path, into: Path) -> Path:
    """Copy a causal model and move its weights a little."""
    import torch
    from transformers import AutoModelForCausalLM

    altered(policy, into)
    model = AutoModelForCausalLM.from_pretrained(policy)
    with torch.no_grad():
        model.model.layers[0].mlp.down_proj.weight.mul_(0.5)
    model.save_pretrained(into)
    return into


def values(model: str) -> dict[str, float | None]:
    return {s.answer_id: s.value for s in open_model(model).score(GROUPS)}


class TestLikelihood:
    def test_mean_divides_by_the_answers_tokens(self, tiny: TinyModels) -> None:
        folder = tiny(causal=True)
        tokens = {
            a.id: len(open_model(f"likelihood/{folder}").encoder.tokens(g.query.turns, a.text))
            for g in GROUPS
            for a in g.answers
        }  # type: ignore[union-attr]
        opened = {
            g.query.item_id: len(open_model(f"likelihood/{folder}").encoder.prompt(g.query.turns)) for g in GROUPS
        }  # type: ignore[union-attr]
        sums, means = values(f"likelihood/{folder}"), values(f"likelihood/{folder}?length=mean")
        for name, total in sums.items():
            assert total is not None
            answer = tokens[name] - opened[name.split("/")[0]]
            assert means[name] == pytest.approx(total / answer, abs=TOLERANCE)

    def test_nothing_is_scored_under_question(self, tiny: TinyModels, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match="under 'question' there is nothing to score"):
            evaluate("sample", f"likelihood/{tiny(causal=True)}", ["history", "question"], tmp_path / "runs", limit=2)
        assert not (tmp_path / "runs").exists()

    def test_a_classifier_is_refused(self, tiny: TinyModels) -> None:
        with pytest.raises(ModelError, match="lm_head"):
            values(f"likelihood/{tiny()}")

    def test_the_form_of_a_pair_is_refused(self, tiny: TinyModels) -> None:
        with pytest.raises(SpecError, match="template=pair is not possible"):
            open_model(f"likelihood/{tiny(causal=True)}?template=pair")

    def test_a_plain_form(self, tiny: TinyModels) -> None:
        chat = (
            "{% for m in messages %}{{ m.role.capitalize() }}: {{ m.content }}{{ '\n\n' if not loop.last }}{% endfor %}"
        )
        chat += "{{ '\n\nAssistant:' if add_generation_prompt }}"
        shown = likelihoods(tiny(causal=True, chat=chat), GROUPS)
        bare = likelihoods(tiny(causal=True, chat=chat), GROUPS, "turns")
        expected = {name: shown[name] - bare[name] for name in shown}
        assert values(f"likelihood/{tiny(causal=True, chat=None)}?template=plain") == pytest.approx(
            expected, abs=TOLERANCE
        )

    def test_an_answer_that_does_not_fit_fails_alone(self, tiny: TinyModels) -> None:
        model = open_model(f"likelihood/{tiny(causal=True)}?window=300&room=60")
        found = {s.answer_id: s.status for s in model.score([group("a", "How?", "Yes.", prose(200), shown=prose(30))])}
        assert found == {"a/0": "ok", "a/1": "overlong"}


class TestDpo:
    def test_the_reward_is_the_difference_of_two_models(self, tiny: TinyModels, tmp_path: Path) -> None:
        policy = tiny("qwen2", causal=True)
        reference = reference_of(policy, tmp_path / "ref")
        ours, theirs = likelihoods(policy, GROUPS), likelihoods(reference, GROUPS)
        expected = {name: ours[name] - theirs[name] for name in ours}
        assert max(map(abs, expected.values())) > 1e-3
        assert values(f"dpo/{policy}?ref={reference}") == pytest.approx(expected, abs=TOLERANCE)

    def test_a_policy_against_itself_ties(self, tiny: TinyModels, write: Any, tmp_path: Path) -> None:
        folder = tiny(causal=True)
        (run,) = evaluate(str(write(make_row(1))), f"dpo/{folder}?ref={folder}", "question", tmp_path)
        assert run.rows["q1"]["outcome"] == "tie"
        recorded = run.record["config"]["model"]
        assert recorded["reference"]["weights"] == recorded["weights"]
        assert str(folder.parent) not in str(recorded)

    def test_another_reference_is_another_run(self, tiny: TinyModels, tmp_path: Path) -> None:
        policy = tiny("qwen2", causal=True)
        one = open_model(f"dpo/{policy}?ref={policy}").identity
        other = open_model(f"dpo/{policy}?ref={reference_of(policy, tmp_path / policy.name)}").identity
        assert one["options"] == other["options"]
        assert one != other

    def test_without_a_reference_it_is_refused(self, tiny: TinyModels) -> None:
        with pytest.raises(SpecError, match=r"name it: \?ref="):
            open_model(f"dpo/{tiny(causal=True)}")

    def test_other_tokens_are_refused(self, tiny: TinyModels, tmp_path: Path) -> None:
        from transformers import AutoTokenizer

        policy = tiny(causal=True)
        other = altered(policy, tmp_path / "other")
        tokenizer = AutoTokenizer.from_pretrained(policy)
        tokenizer.add_tokens(["unheard"])
        tokenizer.save_pretrained(other)
        with pytest.raises(ModelError, match="different vocabularies"):
            values(f"dpo/{policy}?ref={other}")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return smollm2(tmp_path_factory.mktemp("small") / "SmolLM2-135M-Instruct")


def test_a_small_real_model_reads_the_sample(small: Path, tmp_path: Path) -> None:
    views = ["history", "history?user=none", "swapped"]
    result = evaluate("sample", f"likelihood/{small}", views, tmp_path, limit=6)
    for run in result:
        assert (run.metrics["n"], run.metrics["coverage"]) == (6, 1.0)
        assert run.record["environment"]["shared_prefix"].startswith("on; against whole texts: one prompt within 1e-0")
    own, neutral = result.run(f"likelihood/{small}", "history"), result.run(f"likelihood/{small}", "history?user=none")
    assert all(own.rows[name]["chosen_score"] != row["chosen_score"] for name, row in neutral.rows.items())
