"""`hf/…`: the numbers of a classifier are those of the model alone, whatever the batch, the pad or the history."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from models import CHAT, CHAT_OPEN_END, CHAT_WITH_BOS, TinyModels, altered, prose
from palate.errors import ModelError, SpecError
from palate.evaluation import evaluate
from palate.records import Answer, Group, Message, Query, Score
from palate.rewards import open_model
from rows import make_row

pytestmark = pytest.mark.hf

BOS, EOS = 0, 1


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    return TinyModels(tmp_path_factory.mktemp("tiny"))


def group(name: str, question: str, *answers: str) -> Group:
    turns = (Message("user", question),)
    named = tuple(Answer(f"{name}/{k}", name, text, "sample") for k, text in enumerate(answers))
    return Group(Query(name, "question", turns, turns, None), named)


def scored(model: str, groups: Sequence[Group]) -> dict[str, Score]:
    found = {score.answer_id: score for score in open_model(model).score(groups)}
    assert len(found) == sum(len(g.answers) for g in groups)
    return found


def values(model: str, groups: Sequence[Group]) -> dict[str, float | None]:
    return {name: score.value for name, score in scored(model, groups).items()}


def by_hand(folder: Path, groups: Sequence[Group], template: str = "chat", label: int = 0) -> dict[str, float]:
    """Score one unpadded text after the other with transformers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    found = {}
    for one in groups:
        for answer in one.answers:
            question = one.query.messages[0].content
            chat = [{"role": "user", "content": question}, {"role": "assistant", "content": answer.text}]
            if template == "chat":
                text = tokenizer.apply_chat_template(chat, tokenize=False)
                inputs = tokenizer(text, add_special_tokens=False, return_tensors="pt")
            else:
                inputs = tokenizer(question, answer.text, return_tensors="pt")
            with torch.inference_mode():
                found[answer.id] = model(**inputs).logits[0, label].item()
    return found


SIZES = (5, 20, 60, 150, 300, 600)
CONVERSATIONS = [group(f"c{n}", prose(n // 2, n), prose(n - n // 2, 2 * n)) for n in SIZES]
PAIR = [group("p", "Which way to the harbour?", "Take the ferry at noon.", "Take the ferry at night.")]


@pytest.mark.parametrize(("kind", "template"), [("llama", "chat"), ("qwen2", "chat"), ("bert", "pair")])
class TestBatches:
    @pytest.mark.parametrize("batch_tokens", [1, 700, 100_000])
    def test_a_score_is_that_of_the_text_alone(
        self, tiny: TinyModels, kind: str, template: str, batch_tokens: int
    ) -> None:
        folder = tiny(kind)
        model = f"hf/{folder}?template={template}&batch_tokens={batch_tokens}"
        assert values(model, CONVERSATIONS) == pytest.approx(by_hand(folder, CONVERSATIONS, template), abs=1e-4)

    def test_order_does_not_matter(self, tiny: TinyModels, kind: str, template: str) -> None:
        model = f"hf/{tiny(kind)}?template={template}"
        expected = values(model, CONVERSATIONS)
        assert values(model, CONVERSATIONS[::-1]) == pytest.approx(expected, abs=1e-4)
        assert len(set(expected.values())) == len(SIZES)

    def test_batches_are_used(self, tiny: TinyModels, kind: str, template: str) -> None:
        model = open_model(f"hf/{tiny(kind)}?template={template}&batch_tokens=700")
        list(model.score(PAIR))
        assert model.environment["batching"] == "up to 700 tokens"


def test_a_model_that_batches_move_is_run_one_text_at_a_time(tiny: TinyModels, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import LlamaForSequenceClassification

    forward = LlamaForSequenceClassification.forward

    def moved(self: Any, input_ids: Any, **rest: Any) -> Any:
        output = forward(self, input_ids=input_ids, **rest)
        output.logits = output.logits + (len(input_ids) - 1)
        return output

    expected = by_hand(tiny(), CONVERSATIONS)
    monkeypatch.setattr(LlamaForSequenceClassification, "forward", moved)
    model = open_model(f"hf/{tiny()}")
    found = {s.answer_id: s.value for s in model.score(CONVERSATIONS)}
    assert found == pytest.approx(expected, abs=1e-4)
    assert model.environment["batching"].startswith("one text at a time: a batch moved a score by 1")


class TestPad:
    def test_a_pad_that_is_the_end_token_changes_nothing(self, tiny: TinyModels, tmp_path: Path) -> None:
        folder = tiny()
        same = altered(folder, tmp_path / "m", config={"pad_token_id": EOS}, tokenizer_config={"pad_token": "</s>"})
        groups = CONVERSATIONS + PAIR
        expected = by_hand(folder, groups)
        assert values(f"hf/{same}", groups) == pytest.approx(expected, abs=1e-4)
        assert expected["p/0"] != pytest.approx(expected["p/1"], abs=1e-3)

    def test_such_a_pad_is_told(self, tiny: TinyModels, tmp_path: Path) -> None:
        changes = {"config": {"pad_token_id": EOS}, "tokenizer_config": {"pad_token": "</s>"}}
        model = open_model(f"hf/{altered(tiny(), tmp_path / 'm', **changes)}")
        list(model.score(PAIR))
        assert any("pad token is the end token" in note for note in model.environment["notes"])

    @pytest.mark.parametrize(
        "changes",
        [
            {"config": {"pad_token_id": None}},
            {"tokenizer_config": {"pad_token": None}},
            {"config": {"pad_token_id": None}, "tokenizer_config": {"pad_token": None}},
        ],
        ids=["not in the configuration", "not in the tokenizer", "nowhere"],
    )
    def test_a_missing_pad_is_no_obstacle_to_batches(
        self, tiny: TinyModels, tmp_path: Path, changes: dict[str, Any]
    ) -> None:
        folder = altered(tiny(), tmp_path / "m", **changes)
        model = open_model(f"hf/{folder}?batch_tokens=100000")
        found = {s.answer_id: s.value for s in model.score(CONVERSATIONS)}
        assert found == pytest.approx(by_hand(tiny(), CONVERSATIONS), abs=1e-4)
        assert model.environment["batching"] == "up to 100000 tokens"


class TestHead:
    def test_a_language_model_is_refused_and_leaves_no_folder(self, tiny: TinyModels, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match=r"score\.weight"):
            evaluate("sample", f"hf/{tiny(causal=True)}", "question", tmp_path / "runs", limit=2)
        assert not (tmp_path / "runs").exists()

    def test_an_untrained_head_is_said_in_the_record(self, tiny: TinyModels, tmp_path: Path) -> None:
        model = f"hf/{tiny(causal=True)}?head=untrained"
        (run,) = evaluate("sample", model, "question", tmp_path, limit=2)
        assert run.metrics["coverage"] == 1
        assert run.record["config"]["model"]["options"] == {"head": "untrained"}
        assert "UNTRAINED: score.weight" in run.record["environment"]["notes"][0]

    def test_an_untrained_head_is_the_same_each_time(self, tiny: TinyModels) -> None:
        import torch

        model, found = f"hf/{tiny(causal=True)}?head=untrained", []
        for seed in (1, 2):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                found.append(values(model, PAIR))
        assert found[0] == found[1]

    @pytest.mark.parametrize("label", ["truth", "1"])
    def test_an_output_is_chosen_by_name_or_number(self, tiny: TinyModels, label: str) -> None:
        folder = tiny(id2label={0: "help", 1: "truth", 2: "taste"})
        expected = by_hand(folder, PAIR, label=1)
        assert values(f"hf/{folder}?label={label}", PAIR) == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize("option", ["", "?label=style", "?label=3", "?label=²"])
    def test_without_a_choice_the_outputs_are_listed(self, tiny: TinyModels, option: str) -> None:
        folder = tiny(id2label={0: "help", 1: "truth", 2: "taste"})
        with pytest.raises(ModelError, match="help, truth, taste"):
            scored(f"hf/{folder}{option}", PAIR)

    @pytest.mark.parametrize("shape", [(8,), (12, 8), None], ids=str)
    def test_another_shape_than_one_number_a_text_is_refused(
        self, tiny: TinyModels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: tuple[int, ...] | None
    ) -> None:
        import torch
        from transformers import LlamaForSequenceClassification
        from transformers.modeling_outputs import SequenceClassifierOutput

        def forward(self: Any, input_ids: Any, **rest: Any) -> Any:
            return SequenceClassifierOutput(logits=torch.zeros(len(input_ids), *shape) if shape else None)

        monkeypatch.setattr(LlamaForSequenceClassification, "forward", forward)
        with pytest.raises(ModelError, match="expected one row of 1 outputs a text"):
            evaluate("sample", f"hf/{tiny()}", "question", tmp_path / "runs", limit=2)
        assert not (tmp_path / "runs").exists()


class TestTemplate:
    @pytest.mark.parametrize(
        ("chat", "form"),
        [
            (CHAT, "<s> $A"),
            (CHAT_WITH_BOS, ""),
            (CHAT_WITH_BOS, "<s> $A"),
            ("{{ bos_token }}" + CHAT_WITH_BOS, "<s> $A"),
        ],
        ids=["the tokenizer", "the template", "both", "the template twice"],
    )
    def test_one_begin_token_whoever_adds_it(self, tiny: TinyModels, chat: str, form: str) -> None:
        model = open_model(f"hf/{tiny(chat=chat, form=form)}")
        found = {s.answer_id: s.value for s in model.score(PAIR)}
        first = model.environment["token_ends"]["first"]
        assert (first[0], first.count(BOS)) == (BOS, 1)
        assert found == pytest.approx(by_hand(tiny(chat=CHAT_WITH_BOS), PAIR), abs=1e-4)

    @pytest.mark.parametrize("chat", [CHAT, CHAT_OPEN_END])
    def test_one_end_token_whoever_adds_it(self, tiny: TinyModels, chat: str) -> None:
        model = open_model(f"hf/{tiny(chat=chat, form='$A </s>')}")
        list(model.score(PAIR))
        last = model.environment["token_ends"]["last"]
        assert (last[-1], last.count(EOS)) == (EOS, 1)

    def test_without_a_template_the_choices_are_named(self, tiny: TinyModels) -> None:
        with pytest.raises(ModelError, match=r"template=plain .*template=pair"):
            scored(f"hf/{tiny(chat=None)}", PAIR)

    def test_the_plain_form_is_recorded(self, tiny: TinyModels, tmp_path: Path) -> None:
        (run,) = evaluate("sample", f"hf/{tiny(chat=None)}?template=plain", "question", tmp_path, limit=2)
        assert run.metrics["coverage"] == 1
        assert run.record["config"]["model"]["template"] == "plain"

    def test_the_plain_form_is_paragraphs_with_roles(self, tiny: TinyModels) -> None:
        paragraphs = (
            "{% for m in messages %}{{ m.role.capitalize() }}: {{ m.content }}{{ '\n\n' if not loop.last }}{% endfor %}"
        )
        expected = by_hand(tiny(chat=paragraphs), PAIR)
        assert values(f"hf/{tiny(chat=None)}?template=plain", PAIR) == pytest.approx(expected, abs=1e-4)

    def test_a_conversation_that_the_template_refuses_is_an_error_of_its_item(
        self, tiny: TinyModels, write: Any, tmp_path: Path
    ) -> None:
        refuse = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Tea?"}]
        data = str(write(make_row(1), make_row(2, question=None, messages=turns), make_row(3)))
        (run,) = evaluate(data, f"hf/{tiny(chat=refuse + CHAT)}", "question", tmp_path / "runs")
        assert [run.rows[f"q{k}"]["status"] for k in (1, 2, 3)] == ["ok", "error", "ok"]
        assert "no system" in run.rows["q2"]["notes"][0]
        assert run.record["status"] == "complete"


class TestRoom:
    ROW = make_row(
        profile=[{"id": f"h{k}", "text": prose(80, k)} for k in range(30)],
        chosen="Yes, go by train.",
        rejected="No, stay home.",
    )

    def test_a_long_history_gives_way_and_the_answer_stays(self, tiny: TinyModels, write: Any, tmp_path: Path) -> None:
        from transformers import AutoTokenizer

        data = str(write(self.ROW, {**self.ROW, "id": "q2", "user_id": "u2"}))
        models = ["builtin/length", f"hf/{tiny()}?window=512&room=32"]
        whole, cut = evaluate(data, models, "history?k=30", tmp_path / "runs")
        row, everything = cut.rows["q1"], whole.rows["q1"]["shown"]["posts"]
        kept = row["shown"]["posts"]
        assert row["chosen_score"] != row["rejected_score"]
        assert 0 < len(kept) < 30
        assert row["shown"]["dropped"] == 30 - len(kept)
        assert kept == everything[: len(kept)]
        assert cut.metrics["dropped_posts"] == {"items": 2, "posts": 2 * row["shown"]["dropped"]}
        last = cut.record["environment"]["token_ends"]["last"]
        assert AutoTokenizer.from_pretrained(tiny()).decode(last).endswith("train.</s>")

    def test_all_answers_see_the_same_history(self, tiny: TinyModels, write: Any, tmp_path: Path) -> None:
        longer = {**self.ROW, "chosen": prose(20)}
        model = f"hf/{tiny()}?window=512&room=32"
        shown = [
            evaluate(str(write(row, name=f"{k}.jsonl")), model, "history?k=30", tmp_path).runs[0].rows["q1"]["shown"]
            for k, row in enumerate((self.ROW, longer))
        ]
        assert shown[0] == shown[1]

    def test_an_answer_longer_than_its_room_is_overlong(self, tiny: TinyModels) -> None:
        found = scored(f"hf/{tiny()}?window=512&room=32", [group("q", "How?", "Like this.", prose(200))])
        assert (found["q/0"].status, found["q/1"].status, found["q/1"].value) == ("ok", "overlong", None)

    def test_a_question_longer_than_the_window_is_overlong(self, tiny: TinyModels, write: Any, tmp_path: Path) -> None:
        data = str(write(make_row(question=prose(600)), make_row(2)))
        (run,) = evaluate(data, f"hf/{tiny()}?window=512", "question", tmp_path)
        assert run.metrics["status"] == {"overlong": 1, "ok": 1}

    def test_a_room_that_fills_the_window_is_refused(self, tiny: TinyModels) -> None:
        with pytest.raises(ModelError, match="no space for a prompt"):
            open_model(f"hf/{tiny()}?window=512&room=512")


class TestRecord:
    def test_half_precision_that_cannot_tell_two_answers_apart_is_a_tie(
        self, tiny: TinyModels, write: Any, tmp_path: Path
    ) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification

        folder = altered(tiny("bert"), tmp_path / "close")
        model = AutoModelForSequenceClassification.from_pretrained(folder)
        with torch.no_grad():
            model.classifier.weight.mul_(0.01)
            model.classifier.bias.fill_(12.02)
        model.save_pretrained(folder)
        data = str(write(make_row(1), make_row(2), make_row(3)))
        for dtype, outcomes in (("bfloat16", {"tie"}), ("float32", {"correct", "wrong"})):
            text = f"hf/{folder}?template=pair&dtype={dtype}"
            (run,) = evaluate(data, text, "question", tmp_path / dtype)
            assert {r["outcome"] for r in run.rows.values()} <= outcomes
            assert run.record["environment"]["dtype"] == dtype
            assert run.metrics["ties"] == (3 if dtype == "bfloat16" else 0)

    def test_two_attention_kernels_differ_in_that_entry_only(self, tiny: TinyModels, tmp_path: Path) -> None:
        records = {}
        for kernel in ("eager", "sdpa"):
            (run,) = evaluate("sample", f"hf/{tiny()}?attn={kernel}", "question", tmp_path / kernel, limit=2)
            records[kernel] = dict(run.record)
            assert records[kernel].pop("model").endswith(f"?attn={kernel}")
            assert records[kernel]["config"]["model"].pop("options") == {"attn": kernel}
            assert run.folder.name.endswith(records[kernel].pop("digest")[:8])
            assert records[kernel]["environment"].pop("attention_kernel") == kernel
            assert records[kernel].pop("started") <= records[kernel].pop("finished")
        assert records["eager"] == records["sdpa"]
        assert {"torch", "transformers", "dtype", "device"} <= records["eager"]["environment"].keys()

    @pytest.mark.parametrize("option", ["attn=fastest", "device=nowhere", "device=cuda:99"])
    def test_a_kernel_or_device_that_is_not_there_is_told(self, tiny: TinyModels, option: str) -> None:
        with pytest.raises(ModelError, match=option.partition("=")[2]):
            scored(f"hf/{tiny()}?{option}", PAIR)

    def test_the_identity_names_the_weights(self, tiny: TinyModels, tmp_path: Path) -> None:
        first = open_model(f"hf/{tiny()}").identity
        moved = open_model(f"hf/{altered(tiny(), tmp_path / tiny().name)}").identity
        other = open_model(f"hf/{altered(tiny(), tmp_path / 'm', config={'rms_norm_eps': 0.1})}").identity
        assert first == moved
        assert (first["weights"] == other["weights"], first["settings"] == other["settings"]) == (True, False)

    def test_the_parameters_are_counted(self, tiny: TinyModels) -> None:
        from transformers import AutoModelForSequenceClassification

        model = AutoModelForSequenceClassification.from_pretrained(tiny())
        assert open_model(f"hf/{tiny()}").identity["parameters"] == sum(p.numel() for p in model.parameters())

    def test_an_unknown_option_is_refused(self, tiny: TinyModels) -> None:
        with pytest.raises(SpecError, match="Did you mean 'window'"):
            open_model(f"hf/{tiny()}?windows=5")


def test_an_output_that_is_no_number_fails_its_item_only(tiny: TinyModels, write: Any, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification

    folder = altered(tiny(), tmp_path / "nan")
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        model.model.embed_tokens.weight[BOS] = torch.nan
    model.save_pretrained(folder)
    data = str(write(make_row(1), make_row(2, chosen="Cook <s> beans."), make_row(3)))
    (run,) = evaluate(data, f"hf/{folder}", "question", tmp_path / "runs")
    assert {name: row["status"] for name, row in run.rows.items()} == {"q1": "ok", "q2": "error", "q3": "ok"}
    assert "nan" in run.rows["q2"]["notes"][0]
    assert run.rows["q2"]["chosen_score"] is None
