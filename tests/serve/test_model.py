"""A real classifier behind the server: the same figures as in process, the context cut as in evaluation."""

from pathlib import Path
from typing import Any

import pytest

import palate
from models import SENTENCES, TinyModels
from palate.evaluation import Run
from palate.records import Answer, Group, Item, Message, Post
from palate.rewards import Scorer, open_model
from palate.views import View, fit, look
from serve.site import Client, item, running

pytestmark = pytest.mark.hf


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TinyModels(tmp_path_factory.mktemp("models"))("qwen2", max_position_embeddings=512)


def pairs(run: Run) -> dict[str, Any]:
    return {i: (r["chosen_score"], r["rejected_score"]) for i, r in run.rows.items()}


def test_a_run_against_the_server_is_the_run_in_process(tiny: Path, tmp_path: Path) -> None:
    with running(f"hf/{tiny}?room=200") as client:
        models = [f"http/{client.address}", f"hf/{tiny}?room=200"]
        served, home = palate.evaluate("sample", models, "history", tmp_path, limit=6).runs
    assert served.record["environment"]["server"] == "palate"
    assert home.metrics["dropped_posts"]["posts"] > 0
    same = set(home.metrics) - {"created", "finished", "seconds"}
    assert {k: served.metrics[k] for k in same} == {k: home.metrics[k] for k in same}
    for name, scores in pairs(home).items():
        assert pairs(served)[name] == pytest.approx(scores, abs=1e-6)
        assert served.rows[name]["shown"] == home.rows[name]["shown"]


def in_process(scorer: Scorer, history: list[str], answers: list[str]) -> tuple[list[float | None], int]:
    """The numbers and the dropped posts of the same question at home."""
    posts = [Post(str(k), text) for k, text in enumerate(history)]
    query = look(Item("q", None, "all", None, (Message("user", "Which way?"),), ()), View("history"), posts=posts)
    budget = scorer.budget
    assert budget is not None
    fitted = fit(query, budget.prompt, budget.count)
    assert fitted is not None
    made = tuple(Answer(str(k), "q", text, "sample") for k, text in enumerate(answers))
    found = {s.answer_id: s.value for s in scorer.score([Group(fitted, made)])}
    return [found[a.id] for a in made], fitted.dropped


def test_a_long_history_gives_way_from_the_bottom_and_the_answers_still_differ(tiny: Path) -> None:
    history = [" ".join(SENTENCES) + f" Post {k}." for k in range(30)]
    answers = ["Yes, go by train.", "No, stay home."]
    home, dropped = in_process(open_model(f"hf/{tiny}?room=64"), history, answers)  # type: ignore[arg-type]
    with running(f"hf/{tiny}?room=64") as client:
        reply = client.score(*(item(str(k), t, history=history) for k, t in enumerate(answers)))
        found = reply.results
        assert 0 < dropped < 30
        assert [found[str(k)]["dropped"] for k in range(2)] == [dropped, dropped]
        assert [found[str(k)]["score"] for k in range(2)] == pytest.approx(home, abs=1e-6)
        assert found["0"]["score"] != found["1"]["score"]
        assert client.meter("palate_dropped_posts_total") == 2 * dropped
        assert client.meter("palate_items_with_dropped_posts_total") == 2


def test_too_long_is_overlong_and_never_cut(tiny: Path) -> None:
    with running(f"hf/{tiny}?room=64") as client:
        found = client.score(
            item("answer", "word " * 400),
            item("question", "x", question="why " * 2000, history=["A post."]),
            item("messages", "x", messages=[{"role": "user", "content": "why " * 2000}]),
            item("fine", "Yes."),
        ).results
    assert {k: r["status"] for k, r in found.items()} == {
        "answer": "overlong",
        "question": "overlong",
        "messages": "overlong",
        "fine": "ok",
    }
    assert all(r["score"] is None and r["error"] for k, r in found.items() if k != "fine")


def test_an_end_token_of_another_model_changes_no_score(tiny: Path) -> None:
    with running(f"hf/{tiny}") as client:
        texts = {"bare": "Take the bus.", "chatml": "Take the bus.<|im_end|>", "llama": "Take the bus.<|eot_id|>\n"}
        found = client.score(*(item(k, t) for k, t in texts.items())).results
    assert found["chatml"]["score"] == found["llama"]["score"] == found["bare"]["score"]


def test_tokens_are_counted_as_at_home_while_others_are_scored(tiny: Path) -> None:
    scorer = open_model(f"hf/{tiny}")
    prompts = [[{"role": "user", "content": " ".join(SENTENCES[:k])}] for k in range(1, 5)]
    wanted = [scorer.budget.count([Message("user", p[0]["content"])]) for p in prompts]  # type: ignore[union-attr]
    from concurrent.futures import ThreadPoolExecutor

    def work(client: Client, k: int) -> Any:
        if k % 2:
            return client.post("/count", {"prompts": prompts}).body["tokens"]
        return client.score(*(item(str(n), f"{SENTENCES[n]} {k}") for n in range(4))).status

    with running(f"hf/{tiny}") as client, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: work(client, k), range(60)))
    assert all(f == (wanted if k % 2 else 200) for k, f in enumerate(found))


def test_a_model_of_what_a_context_adds_needs_one(tmp_path: Path) -> None:
    causal = TinyModels(tmp_path)("llama", causal=True)
    with pytest.raises(palate.PalateError, match="what a context adds"), running(f"likelihood/{causal}", "question"):
        pass
    with running(f"likelihood/{causal}") as client:
        found = client.score(item("bare", "Yes."), item("posts", "Yes.", history=["My neighbour keeps geese."])).results
    assert found["bare"]["status"] == "no_context"
    assert found["posts"]["status"] == "ok"
