"""A prompt encoded once gives the numbers of whole texts: over families, random groups, hostile inputs and faults."""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alone import alone, group, likelihoods
from models import CHAT, CHAT_OPEN_END, CHAT_WITH_BOS, FAMILIES, TinyModels, altered, prose
from palate.evaluation import evaluate
from palate.records import Group
from palate.rewards import open_model
from palate.rewards.prefix import Text, bundle, chunks, packs
from rows import make_row

pytestmark = pytest.mark.hf

DECODERS = sorted(FAMILIES.keys() - {"bert"})
EOS = 1


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny"))


opened = cache(open_model)


def numbers(model: str, groups: Sequence[Group]) -> dict[str, float]:
    found = {score.answer_id: score.value for score in opened(model).score(groups)}
    assert len(found) == sum(len(g.answers) for g in groups)
    return {name: value for name, value in found.items() if value is not None}


LONG = [
    group("long", prose(400), "Take the ferry.", "No.", prose(60, 4), prose(90, 7)),
    group("short", prose(40, 3), "Bring a coat.", "Bring two coats and a tractor."),
    group("other", prose(45, 9), prose(12), prose(13, 8), prose(14, 2)),
]
ANSWERS = st.lists(
    st.one_of(st.builds(prose, st.integers(0, 40), st.integers(0, 30)), st.text(max_size=12)), min_size=1, max_size=5
)
GROUPS = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 40), ANSWERS), min_size=1, max_size=4)


@pytest.mark.parametrize("kind", DECODERS)
class TestFamilies:
    @settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(drawn=GROUPS, batch=st.sampled_from([64, 300, 8192]))
    def test_shared_numbers_are_those_of_the_texts_alone(
        self, tiny: TinyModels, kind: str, drawn: list[tuple[int, int, list[str]]], batch: int
    ) -> None:
        groups = [group(f"g{k}", prose(n, start), *answers) for k, (n, start, answers) in enumerate(drawn)]
        folder = tiny(kind)
        assert numbers(f"hf/{folder}?batch_tokens={batch}", groups) == pytest.approx(alone(folder, groups), abs=1e-5)

    def test_long_and_short_groups_are_shared(self, tiny: TinyModels, kind: str) -> None:
        folder = tiny(kind)
        model = open_model(f"hf/{folder}")
        found = {s.answer_id: s.value for s in model.score(LONG)}
        assert found == pytest.approx(alone(folder, LONG), abs=1e-5)
        told = model.environment["shared_prefix"]
        assert told.startswith("on; against whole texts: one prompt")
        assert "several prompts" in told
        assert ("beyond the sliding window" in told) == (kind in ("mistral", "gemma2", "gemma3"))

    def test_any_attention_kernel(self, tiny: TinyModels, kind: str) -> None:
        folder = tiny(kind)
        model = open_model(f"hf/{folder}?attn=eager")
        found = {s.answer_id: s.value for s in model.score(LONG)}
        assert found == pytest.approx(alone(folder, LONG), abs=1e-5)
        assert model.environment["shared_prefix"].startswith("on; against")

    def test_the_passes_are_fewer_tokens(self, tiny: TinyModels, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        seen: list[int] = []
        embed = torch.nn.Embedding.forward

        def counted(self: Any, ids: Any) -> Any:
            seen.append(ids.numel())
            return embed(self, ids)

        model = open_model(f"hf/{tiny(kind)}")
        list(model.score(LONG[:1]))
        monkeypatch.setattr(torch.nn.Embedding, "forward", counted)
        list(model.score(LONG[:1]))
        shared = sum(seen)
        seen.clear()
        list(open_model(f"hf/{tiny(kind)}?share=off").score(LONG[:1]))
        assert shared < 0.55 * sum(seen)

    def test_likelihood_is_the_difference_of_two_sums(self, tiny: TinyModels, kind: str) -> None:
        folder = tiny(kind, causal=True)
        groups = [group("a", prose(9), "Yes.", prose(20, 3), "Yes.", shown=prose(80, 5)), group("b", "Tea?", "No.")]
        shown, bare = likelihoods(folder, groups), likelihoods(folder, groups, "turns")
        expected = {name: shown[name] - bare[name] for name in shown}
        assert numbers(f"likelihood/{folder}", groups) == pytest.approx(expected, abs=2e-5)
        assert numbers(f"likelihood/{folder}?share=off&batch_tokens=1", groups) == pytest.approx(expected, abs=2e-5)


class TestHostileInputs:
    @pytest.mark.parametrize(
        "chat",
        [
            "{% for m in messages %}{{ m.content }}{% endfor %}",
            CHAT_OPEN_END,
            "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %} That is what was said, and no more.</s>",
        ],
        ids=["the prompt's last word goes on in the answer", "no end token", "tokens after the answer"],
    )
    def test_templates(self, tiny: TinyModels, chat: str) -> None:
        groups = [
            group("m", prose(60) + " The har", "bour", "bours are", "vest is in", " of it", ""),
            group("n", prose(300, 3) + " onio", "n", "ns", "n s"),
        ]
        folder = tiny("qwen2", chat=chat)
        model = open_model(f"hf/{folder}")
        found = {s.answer_id: s.value for s in model.score(groups)}
        assert found == pytest.approx(alone(folder, groups), abs=1e-5)
        assert model.environment["shared_prefix"].startswith("on; against")

    def test_equal_answers_tie_exactly(self, tiny: TinyModels) -> None:
        texts = ["Yes.", prose(50), "Yes.", "No.", prose(50), "Yes."]
        found = numbers(f"hf/{tiny()}", [group("e", prose(200), *texts)])
        values = [found[f"e/{k}"] for k in range(len(texts))]
        assert values[0] == values[2] == values[5]
        assert values[1] == values[4]
        assert len(set(values)) == 3

    def test_all_answers_equal_is_one_text(self, tiny: TinyModels) -> None:
        found = numbers(f"hf/{tiny()}", [group("e", prose(200), *["Yes."] * 6)])
        assert len(set(found.values())) == 1
        assert list(found.values()) == pytest.approx(
            list(alone(tiny(), [group("e", prose(200), *["Yes."] * 6)]).values())
        )

    def test_a_group_of_one_and_an_empty_answer(self, tiny: TinyModels) -> None:
        groups = [group("one", prose(100), "Yes."), group("two", prose(100), "", prose(500))]
        assert numbers(f"hf/{tiny()}", groups) == pytest.approx(alone(tiny(), groups), abs=1e-5)

    def test_a_group_without_answers_is_nothing(self, tiny: TinyModels) -> None:
        assert numbers(f"hf/{tiny()}", [group("none", prose(100))]) == {}

    def test_what_does_not_fit_has_a_status_and_the_rest_a_number(self, tiny: TinyModels) -> None:
        groups = [group("q", prose(150), "Yes.", prose(200), "No."), group("w", prose(600), "Yes.", "No.")]
        found = {s.answer_id: s for s in open_model(f"hf/{tiny()}?window=512&room=100").score(groups)}
        assert {name: s.status for name, s in found.items()} == {
            **{"q/0": "ok", "q/1": "overlong", "q/2": "ok"},
            **{"w/0": "overlong", "w/1": "overlong"},
        }

    def test_sixty_four_answers_in_small_passes(self, tiny: TinyModels) -> None:
        many = [group("n", prose(80), *(prose(3 + k % 17, k) for k in range(64)))]
        assert numbers(f"hf/{tiny()}?batch_tokens=40", many) == pytest.approx(alone(tiny(), many), abs=1e-5)


class TestScalarCases:
    """The cases of single texts again, now behind a shared prompt."""

    def test_neither_batch_nor_order_moves_a_score(self, tiny: TinyModels) -> None:
        groups = [group(f"c{n}", prose(80 + n, n), prose(n, 2), prose(n + 1, 4)) for n in (5, 20, 60, 150, 300, 600)]
        expected = alone(tiny(), groups)
        for batch in (1, 700, 100_000):
            for order in (groups, groups[::-1]):
                assert numbers(f"hf/{tiny()}?batch_tokens={batch}", order) == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize(
        "changes",
        [
            {"config": {"pad_token_id": EOS}, "tokenizer_config": {"pad_token": "</s>"}},
            {"config": {"pad_token_id": None}, "tokenizer_config": {"pad_token": None}},
        ],
        ids=["the pad is the end token", "no pad"],
    )
    def test_pads(self, tiny: TinyModels, tmp_path: Path, changes: dict[str, Any]) -> None:
        folder = altered(tiny(), tmp_path / "m", **changes)
        assert numbers(f"hf/{folder}", LONG) == pytest.approx(alone(tiny(), LONG), abs=1e-5)

    @pytest.mark.parametrize(("chat", "form"), [(CHAT, "<s> $A"), (CHAT_WITH_BOS, "<s> $A"), (CHAT_WITH_BOS, "")])
    def test_one_begin_token(self, tiny: TinyModels, chat: str, form: str) -> None:
        assert numbers(f"hf/{tiny(chat=chat, form=form)}", LONG) == pytest.approx(
            alone(tiny(chat=CHAT_WITH_BOS), LONG), abs=1e-5
        )

    def test_a_long_history_gives_way_and_the_answers_stay(self, tiny: TinyModels, write: Any, tmp_path: Path) -> None:
        row = make_row(
            profile=[{"id": f"h{k}", "text": prose(80, k)} for k in range(30)],
            chosen="Yes, go by train.",
            rejected="No, stay home.",
        )
        found = {}
        for share in ("auto", "off"):
            model = f"hf/{tiny()}?window=512&room=32&share={share}"
            (run,) = evaluate(str(write(row)), model, "history?k=30", tmp_path / share)
            assert run.rows["q1"]["shown"]["dropped"] > 0
            assert run.rows["q1"]["chosen_score"] != run.rows["q1"]["rejected_score"]
            found[share] = [run.rows["q1"][name] for name in ("chosen_score", "rejected_score")]
        assert found["auto"] == pytest.approx(found["off"], abs=1e-5)

    def test_half_precision_tells_its_spread(self, tiny: TinyModels) -> None:
        model = open_model(f"hf/{tiny()}?dtype=bfloat16")
        found = {s.answer_id: s.value for s in model.score(LONG)}
        assert found == pytest.approx(alone(tiny(), LONG), abs=0.05)
        assert "one prompt within 1e-0" in model.environment["shared_prefix"]

    def test_an_output_that_is_no_number_fails_its_answer_only(self, tiny: TinyModels, tmp_path: Path) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification

        folder = altered(tiny(), tmp_path / "nan")
        model = AutoModelForSequenceClassification.from_pretrained(folder)
        with torch.no_grad():
            model.model.embed_tokens.weight[0] = torch.nan
        model.save_pretrained(folder)
        groups = [group("g", prose(100), "Yes.", "No <s> beans.", "Perhaps."), LONG[0]]
        scorer = open_model(f"hf/{folder}")
        found = {s.answer_id: s for s in scorer.score(groups)}
        assert found["g/1"].status == "error"
        assert "nan" in (found["g/1"].note or "")
        expected = {k: v for k, v in alone(tiny(), groups).items() if k != "g/1"}
        assert {k: s.value for k, s in found.items() if k != "g/1"} == pytest.approx(expected, abs=1e-5)
        assert scorer.environment["shared_prefix"].startswith("on; against")


class TestFaults:
    def test_a_model_whose_cache_moves_scores_is_not_shared(
        self, tiny: TinyModels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from transformers import LlamaModel

        expected, forward = alone(tiny(), LONG), LlamaModel.forward

        def forgetful(self: Any, input_ids: Any = None, **rest: Any) -> Any:
            return forward(self, input_ids, **{k: v for k, v in rest.items() if k not in ("cache", "past_key_values")})

        def half(self: Any, input_ids: Any = None, **rest: Any) -> Any:
            output = forward(self, input_ids, **rest)
            held = rest.get("cache", rest.get("past_key_values"))
            if held is not None and input_ids.shape[1] < 300:
                output.last_hidden_state = output.last_hidden_state * 1.5
            return output

        for patch, why in ((forgetful, "it keeps no keys and values"), (half, "moved a score by")):
            monkeypatch.setattr(LlamaModel, "forward", patch)
            model = open_model(f"hf/{tiny()}")
            assert {s.answer_id: s.value for s in model.score(LONG)} == pytest.approx(expected, abs=1e-4)
            assert model.environment["shared_prefix"].startswith("off: ")
            assert why in model.environment["shared_prefix"]

    def test_a_pass_that_fails_takes_the_ordinary_path(self, tiny: TinyModels, monkeypatch: pytest.MonkeyPatch) -> None:
        from palate.rewards.prefix.encoded import Prompts

        def broken(self: Any, *_: Any, **__: Any) -> Any:
            raise RuntimeError("kernel not there\nlong trace")

        monkeypatch.setattr(Prompts, "continued", broken)
        model = open_model(f"hf/{tiny()}")
        assert {s.answer_id: s.value for s in model.score(LONG)} == pytest.approx(alone(tiny(), LONG), abs=1e-4)
        assert model.environment["shared_prefix"] == "off: RuntimeError: kernel not there"

    def test_too_little_memory_halves_a_pass_and_then_takes_whole_texts(
        self, tiny: TinyModels, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import torch

        from palate.rewards.prefix.encoded import Prompts

        continued, sizes = Prompts.continued, []

        def narrow(self: Any, rows: Any, **options: Any) -> Any:
            sizes.append(len(rows))
            if len(rows) > 1 or len(rows[0].ids) > 100:
                raise torch.cuda.OutOfMemoryError("full")
            return continued(self, rows, **options)

        monkeypatch.setattr(Prompts, "continued", narrow)
        model = open_model(f"hf/{tiny()}")
        found = {s.answer_id: s.value for s in model.score(LONG)}
        assert found == pytest.approx(alone(tiny(), LONG), abs=1e-5)
        assert max(sizes) > 1
        assert 1 in sizes
        assert model.environment["shared_prefix"].startswith("on;")

    def test_an_encoder_is_scored_whole(self, tiny: TinyModels) -> None:
        model = open_model(f"hf/{tiny('bert')}")
        expected = numbers(f"hf/{tiny('bert')}?share=off", LONG)
        assert {s.answer_id: s.value for s in model.score(LONG)} == pytest.approx(expected, abs=1e-5)
        assert model.environment["shared_prefix"].startswith("off: NotShareable")

    def test_sharing_can_be_off(self, tiny: TinyModels) -> None:
        model = open_model(f"hf/{tiny()}?share=off")
        list(model.score(LONG))
        assert model.environment["shared_prefix"] == "off: not wanted"

    def test_a_head_with_several_outputs(self, tiny: TinyModels) -> None:
        folder = tiny("qwen3", id2label={0: "help", 1: "truth", 2: "taste"})
        shared, whole = (numbers(f"hf/{folder}?label=taste&share={share}", LONG) for share in ("auto", "off"))
        assert shared == pytest.approx(whole, abs=1e-5)


class TestTwoParts:
    @pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
    @pytest.mark.parametrize("two_parts", [True, False])
    def test_both_ways_give_the_numbers_of_whole_texts(
        self, tiny: TinyModels, kind: str, two_parts: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from palate.rewards.prefix import two_parts as module

        passes, attention = [], module._attention

        def counted(*args: Any, **rest: Any) -> Any:
            passes.append(1)
            return attention(*args, **rest)

        monkeypatch.setattr(module, "NAME", f"counted-{kind}-{two_parts}")
        monkeypatch.setattr(module, "_attention", counted)
        model: Any = open_model(f"hf/{tiny(kind)}")
        model.prepare()
        model.engine.two_parts = two_parts
        assert {s.answer_id: s.value for s in model.score(LONG)} == pytest.approx(alone(tiny(kind), LONG), abs=1e-5)
        assert bool(passes) == two_parts

    def test_a_model_that_cannot_is_still_shared(self, tiny: TinyModels, monkeypatch: pytest.MonkeyPatch) -> None:
        from palate.rewards.prefix import two_parts

        def wrong(module: Any, query: Any, *_: Any, **__: Any) -> Any:
            return query.transpose(1, 2).contiguous(), None

        def refuses(*_: Any, **__: Any) -> Any:
            raise NotImplementedError("no such option")

        for k, attention in enumerate((wrong, refuses)):
            monkeypatch.setattr(two_parts, "NAME", f"cannot-{k}")
            monkeypatch.setattr(two_parts, "_attention", attention)
            model: Any = open_model(f"hf/{tiny()}")
            assert {s.answer_id: s.value for s in model.score(LONG)} == pytest.approx(alone(tiny(), LONG), abs=1e-5)
            assert model.environment["shared_prefix"].startswith("on; against whole texts: one prompt")
            assert not model.engine.two_parts


IDS = st.lists(st.integers(0, 3), min_size=1, max_size=12).map(lambda ids: Text(tuple(ids)))


class TestPlan:
    @given(texts=st.lists(IDS, min_size=1, max_size=8))
    def test_a_bundle_holds_every_text_once(self, texts: list[Text]) -> None:
        made = bundle(texts)
        assert sorted(chain.from_iterable(made.owners)) == list(range(len(texts)))
        for text, owners, row in zip(made.texts, made.owners, made.rows(0), strict=True):
            assert made.prefix + tuple(row.ids) == text.ids
            assert row.ids
            assert all(texts[k] == text for k in owners)
        shortest = min(map(len, texts)) - 1
        common = next((k for k in range(shortest) if len({t.ids[k] for t in texts}) > 1), shortest)
        assert made.size == common

    @given(texts=st.lists(IDS, min_size=1, max_size=6), data=st.data())
    def test_the_token_before_the_answer_stays_outside(self, texts: list[Text], data: st.DataObject) -> None:
        placed = [Text(t.ids, None, data.draw(st.integers(1, len(t)))) for t in texts]
        made = bundle(placed)
        assert all(row.answer >= 1 for row in made.rows(0))

    @given(
        lengths=st.lists(st.integers(1, 200), min_size=1, max_size=80).map(sorted),
        prompt=st.integers(0, 5000),
        tokens=st.integers(1, 4000),
        cells=st.integers(1, 2_000_000),
    )
    def test_passes_are_bounded_and_complete(self, lengths: list[int], prompt: int, tokens: int, cells: int) -> None:
        spans = list(chunks(lengths, prompt, tokens, cells))
        assert list(chain.from_iterable(spans)) == list(range(len(lengths)))
        for span in spans:
            width = lengths[span[-1]]
            if len(span) > 1:
                assert len(span) * width <= tokens
                assert len(span) * max(width, 64) * (prompt + width) <= cells

    @given(groups=st.lists(st.lists(IDS, min_size=1, max_size=5), min_size=1, max_size=9), tokens=st.integers(1, 80))
    def test_packs_are_bounded_and_complete(self, groups: list[list[Text]], tokens: int) -> None:
        bundles = [bundle(texts) for texts in groups]
        found = list(packs(bundles, tokens))
        assert sorted(chain.from_iterable(found)) == list(range(len(bundles)))
        for pack in found:
            held = [bundles[k] for k in pack]
            rows = sum(len(b.texts) for b in held)
            padded = len(held) * max(b.size for b in held) + rows * max(b.longest for b in held)
            assert len(held) == 1 or padded <= tokens
