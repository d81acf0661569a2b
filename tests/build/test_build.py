"""Building against a stub: what is written, what gates reject, what is made again, what a killed build keeps."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from writers import Author, kind, prose

from llm.stub import Asked, Reply, Rule, Stub
from palate import evaluate, open_data
from palate.build import build, estimate, make_card, push, write_card
from palate.cli.app import run as cli
from palate.data.check import check_data
from palate.errors import DataError, RunError, SpecError, Stopped
from palate.llm.client import Spending
from rows import make_row

pytest.importorskip("openai")
pytest.importorskip("py3langid")
pytest.importorskip("pyarrow")

GERMAN = (
    "Fang mit einem einfachen Rezept an und nimm dir dafür zwei freie Abende. Geh früh auf den Markt, kauf frisches "
    "Gemüse und Brot, und lade gute Freunde ein, die dir beim Kochen helfen. Wenn das Wetter es erlaubt, esst ihr "
    "draußen im Garten, und danach macht ihr einen langen Spaziergang am Fluss."
)
RUBRIC = "I eat beans and I have many of them, number"


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of the hub's library is this test's own."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def rows(*numbers: int, **changes: Any) -> list[dict[str, Any]]:
    return [make_row(n, chosen=None, rejected=None, **changes) for n in numbers]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def made(out: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in lines(out / ".build" / "rows.jsonl")}


def sides(server: Stub) -> Counter[str]:
    return Counter(kind(a.prompt) for a in server.asked)


def test_items_become_pairs_in_the_layout_of_the_hub(write: Any, tmp_path: Path, private: None) -> None:
    data, out = write(*rows(1, 2), *rows(3, domain="Art & craft")), tmp_path / "out"
    with Stub(Author()) as server:
        built = build(data, out, "writer", "reader", base_url=server.url, licence="cc0-1.0")
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*.parquet")) == [
        "data/Art_craft/test.parquet",
        "data/food/test.parquet",
    ]
    assert sides(server) == {"keep": 3, "break": 3, "quality": 6, "aspect": 6}
    for source in (str(out), f"hub:{out}"):
        opened = open_data(source)
        assert (built.items, opened.ids, opened.notes) == (3, opened.ids, ())
        assert sorted(opened.ids) == ["q1", "q2", "q3"]
        assert {opened.get(i).domain for i in opened.ids} == {"food", "Art & craft"}
        assert opened.generators == {"writer"}
    item, answers, key = opened.get("q1"), opened.answers("q1"), opened.key("q1")
    assert (item.user_id, item.category, len(item.posts), item.posts[0].category) == ("u1", None, 2, "food")
    assert {a.role: a.text for a in answers} == made(out)["q1"]["answers"]
    assert key == open_data(str(data)).key("q1")
    assert check_data(str(out)).problem_count == 0


def test_what_stood_in_the_folder_before_is_not_read_again(write: Any, tmp_path: Path, private: None) -> None:
    data, out, read = write(*rows(1)), tmp_path / "out", []
    for seed in ("one", "two"):
        with Stub(Author(lambda p, seed=seed: prose(p + seed))) as server:  # type: ignore[misc]
            build(data, out, "writer", base_url=server.url, fresh=True)
        read.append({a.role: a.text for a in open_data(f"hub:{out}").answers("q1")})
        assert read[-1] == made(out)["q1"]["answers"]
    assert read[0] != read[1]


def test_the_generator_reads_question_top_posts_and_wishes_but_no_evidence(write: Any, tmp_path: Path) -> None:
    data = write(*rows(1, rubric_aspects=[{"aspect": "Beans", "evidence": "EVIDENT", "reason": "Plenty."}]))
    with Stub(Author()) as server:
        build(data, tmp_path / "out", "writer", base_url=server.url, k=1)
    for asked in server.asked:
        assert "day 1?" in asked.prompt
        assert "1. Beans: Plenty." in asked.prompt
        assert ("on my roof" in asked.prompt) != ("in the hills" in asked.prompt)
        assert "EVIDENT" not in asked.prompt
        assert asked.body["temperature"] == 1


def test_without_a_judge_its_gates_are_not_run_and_the_card_says_so(write: Any, tmp_path: Path) -> None:
    with Stub(Author()) as server:
        built = build(write(*rows(1)), tmp_path / "out", "writer", base_url=server.url)
    assert built.record["gates"]["quality"] == {"not run": 1}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "judged gates were not run" in card
    assert "| quality | 0 | 1 |" in card
    assert 'license: "unknown"' in card
    assert "Not audited yet" in card


REPEATED = prose("the same for all")
FAULTS: list[tuple[str, Callable[[str], str | Reply], str]] = [
    ("it repeats itself", lambda _: REPEATED, "alike"),
    ("it repeats a sentence", lambda p: prose(p, 40) + " Play a tune every night." * 5, "grammar"),
    ("it refuses", lambda p: "I'm sorry, but I can't help with that. " + prose(p, 60), "refusal"),
    ("the server's filter refuses", lambda p: Reply("", finish="content_filter"), "reply"),
    ("it writes 400 words", lambda p: prose(p, 400), "words"),
    ("it is cut", lambda p: Reply(prose(p, 90), finish="length"), "reply"),
    ("it only thinks", lambda p: "<think>The user wants", "reply"),
    ("it answers in another language", lambda p: GERMAN, "language"),
    ("it copies the rubric", lambda p: prose(p, 60) + f" As you said: {RUBRIC} one.", "leak"),
    ("it says what it was told", lambda p: prose(p, 60) + " It is safe to follow, and friendly to the person.",
     "instructions"),
    ("it copies a post", lambda p: "I grow beans number 1 on my roof.", "copied"),
    ("it insults", lambda p: prose(p, 60) + " If you fail at this, you are an idiot.", "safety"),
    ("it stops within a sentence", lambda p: prose(p, 70) + " And then", "grammar"),
    ("odd characters", lambda p: prose(p) + " \ufffd", "characters"),
]  # fmt: skip


@pytest.mark.parametrize(("write_answer", "gate"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_bad_generator_is_rejected_by_the_gate_that_names_the_fault(
    write_answer: Callable[[str], str | Reply], gate: str, write: Any, tmp_path: Path
) -> None:
    with Stub(Author(write_answer)) as server:
        built = build(write(*rows(1)), tmp_path / "out", "writer", "reader", base_url=server.url, tries=2)
    assert (built.items, built.record["counts"]["pairs dropped"]) == (0, 1)
    assert sides(server) == {"keep": 2, "break": 2}
    [dropped] = lines(built.dropped)
    assert gate in {c["gate"] for c in dropped["attempts"][-1]["checks"] if c["status"] not in ("pass", "unknown")}
    assert gate in dropped["reason"]
    assert not list((tmp_path / "out").rglob("*.parquet"))
    assert not (tmp_path / "out" / "README.md").exists()


def test_an_llm_that_says_the_same_of_every_item_is_found_out_across_items(write: Any, tmp_path: Path) -> None:
    texts = {"keep": prose("a"), "break": prose("b")}
    with Stub(Author(lambda p: texts[kind(p)])) as server:
        built = build(write(*rows(1, 2, 3)), tmp_path / "out", "writer", base_url=server.url, tries=1)
    assert built.items == 1
    assert {row["reason"] for row in lines(built.dropped)} == {
        "duplicate (chosen): nearly the text of an answer to 'q1'; "
        "duplicate (rejected): nearly the text of an answer to 'q1'"
    }


def test_a_failed_pair_is_made_again_told_why_and_then_kept(write: Any, tmp_path: Path) -> None:
    def first_long(prompt: str) -> str:
        return prose(prompt) if "draft 2" in prompt or kind(prompt) == "keep" else prose(prompt, 300)

    with Stub(Author(first_long)) as server:
        built = build(write(*rows(1)), tmp_path / "out", "writer?temperature=0", base_url=server.url)
    assert sides(server) == {"keep": 2, "break": 2}
    second = [a.prompt for a in server.asked if "draft 2" in a.prompt]
    assert len({a.prompt for a in server.asked}) == 4
    assert any("words; 30 to 100 are wanted" in p for p in second)
    assert built.items == 1
    assert [len(a["calls"]) for a in made(tmp_path / "out")["q1"]["attempts"]] == [2, 2]
    assert built.record["gates"]["words"] == {"pass": 3, "fail": 1}


def test_more_tries_go_on_with_what_was_dropped(write: Any, tmp_path: Path) -> None:
    data, out = write(*rows(1, 2)), tmp_path / "out"
    fails: Callable[[str], str] = lambda p: prose(p) if "draft 3" in p or "day 2?" in p else prose(p, 300)  # noqa: E731
    with Stub(Author(fails)) as server:
        assert build(data, out, "writer", base_url=server.url, tries=2).items == 1
        before = len(server.asked)
        assert build(data, out, "writer", base_url=server.url, tries=2).items == 1
        assert len(server.asked) == before
        assert build(data, out, "writer", base_url=server.url, tries=3).items == 2
        assert len(server.asked) == before + 2


def test_raising_the_limit_extends_the_build(write: Any, tmp_path: Path) -> None:
    data, out = write(*rows(1, 2, 3)), tmp_path / "out"
    with Stub(Author()) as server:
        assert build(data, out, "writer", base_url=server.url, limit=2).items == 2
        assert build(data, out, "writer", base_url=server.url).items == 3
        assert len(server.asked) == 6
    assert open_data(str(out)).ids == ["q1", "q2", "q3"]


def judging(**verdicts: Reply) -> Rule:
    """A judge that is right but for the prompts named."""
    author = Author()
    return lambda asked: verdicts.get(kind(asked.prompt)) or author(asked)


def say(**fields: object) -> Reply:
    return Reply(json.dumps({"reason": "So."} | fields))


@pytest.mark.parametrize(
    ("reply", "gate", "status"),
    [
        (("quality", say(score=2, safe="yes")), "quality", "fail"),
        (("quality", say(score=4, safe="no")), "judged safety", "fail"),
        (("quality", Reply("Rather good.")), "quality", "unparsed"),
        (("quality", Reply("", finish="content_filter")), "quality", "refused"),
        (("quality", Reply('{"score": 4', finish="length")), "quality", "truncated"),
        (("aspect", say(verdict="kept")), "aspects", "fail"),
        (("aspect", say(verdict="neither")), "aspects", "fail"),
        (("aspect", say(verdict="perhaps")), "aspects", "unparsed"),
    ],
)
def test_what_the_judge_does_not_accept_is_dropped_with_its_status(
    reply: tuple[str, Reply], gate: str, status: str, write: Any, tmp_path: Path
) -> None:
    bad = dict([reply])
    author = Author()
    author.judge = lambda asked: bad.get(kind(asked.prompt)) or Author.__call__(plain(author), asked)
    with Stub(author) as server:
        built = build(write(*rows(1)), tmp_path / "out", "writer", "reader", base_url=server.url, tries=1)
    assert built.items == 0
    assert status in built.record["gates"][gate]
    assert gate in lines(built.dropped)[0]["reason"]


def plain(author: Author) -> Author:
    """Return an author with the same memory who judges rightly."""
    other = Author()
    other.wanted = author.wanted
    return other


def test_a_server_that_fails_leaves_an_error_which_the_same_command_mends(write: Any, tmp_path: Path) -> None:
    data, out, author = write(*rows(1, 2)), tmp_path / "out", Author()
    down = True

    def rule(asked: Asked) -> Reply:
        return Reply(status=400, error="boom") if down and asked.day == 2 else author(asked)

    with Stub(rule) as server:
        built = build(data, out, "writer", base_url=server.url)
        assert (built.items, built.record["counts"]["pairs with an error"]) == (1, 1)
        assert "boom" in lines(built.dropped)[0]["reason"]
        asked, down = len(server.asked), False
        assert build(data, out, "writer", base_url=server.url).items == 2
        assert len(server.asked) == asked + 2


def test_items_without_a_usable_rubric_are_counted_with_their_reason(write: Any, tmp_path: Path) -> None:
    data = write(
        *rows(1),
        *rows(2, rubric_aspects=None, narrative=None),
        *rows(3, rubric_aspects=None),
        *rows(4, rubric_aspects=[{"aspect": "Beans"}]),
        *rows(5, rubric_aspects=[{"aspect": "Beans"}, {"aspect": "Quick", "evidence": "ten minutes", "reason": "r"}]),
    )
    with Stub(Author()) as server:
        built = build(data, tmp_path / "out", "writer", base_url=server.url)
    assert (built.items, built.record["counts"]["items skipped"], built.record["counts"]["aspects refused"]) == (
        2,
        3,
        2,
    )
    reasons = {row["id"]: row["reason"] for row in lines(built.dropped)}
    assert "no key" in reasons["q2"]
    assert "--keys-from-narratives" in reasons["q3"]
    assert "no aspect of its rubric has evidence" in reasons["q4"]
    key = open_data(str(tmp_path / "out")).key("q5")
    assert key is not None
    assert [a.aspect for a in key.aspects] == ["Quick"]
    bare = write(*rows(2, rubric_aspects=None, narrative=None), name="bare.jsonl")
    with pytest.raises(DataError, match="nothing to build from: the item has no key"):
        build(bare, tmp_path / "other", "writer", base_url="http://127.0.0.1:9/v1")


def test_aspects_from_a_narrative_need_literal_evidence(write: Any, tmp_path: Path) -> None:
    data = write(*rows(1, 2, rubric_aspects=None, narrative="I eat beans,\nand I have  many of them."))
    good = {"aspect": "Beans", "evidence": "beans, and I have many", "reason": "They have plenty."}
    false = {"aspect": "Meat", "evidence": "I love meat", "reason": "They like it."}
    author = Author()

    def rule(asked: Asked) -> Reply:
        if kind(asked.prompt) != "key":
            return author(asked)
        return Reply(json.dumps({"aspects": [good, false] if asked.day == 1 else [false]}))

    with Stub(rule) as server:
        built = build(data, tmp_path / "out", "writer", base_url=server.url, keys_from_narratives=True)
    key = open_data(str(tmp_path / "out")).key("q1")
    assert key is not None
    assert [(a.aspect, a.evidence) for a in key.aspects] == [("Beans", "beans, and I have many")]
    [first, second] = lines(built.dropped)
    assert first["aspects_refused"] == [
        {"aspect": "Meat", "reason": "its evidence is no literal quote of the narrative"}
    ]
    assert second["reason"] == "no aspects from the narrative: no aspect had literal evidence"
    assert built.record["counts"]["aspects refused"] == 2


@pytest.mark.parametrize(
    "reply", ["Beans.", '{"aspects": []}', '{"aspects": ["Beans"]}', '{"aspects": [{"aspect": "B"}]}']
)
def test_a_reply_without_aspects_drops_the_item(reply: str, write: Any, tmp_path: Path) -> None:
    data = write(*rows(1), *rows(2, rubric_aspects=None))
    author = Author()
    with Stub(lambda a: Reply(reply) if kind(a.prompt) == "key" else author(a)) as server:
        built = build(data, tmp_path / "out", "writer", base_url=server.url, keys_from_narratives=True)
    assert built.items == 1
    assert "no aspects from the narrative" in lines(built.dropped)[0]["reason"]


def test_an_estimate_is_what_a_build_takes_if_all_pass_and_sends_nothing(write: Any, tmp_path: Path) -> None:
    data, out = write(*rows(1, 2, 3)), tmp_path / "out"
    told = estimate(data, out, "writer", "reader", tries=2)
    assert not out.exists()
    with Stub(Author()) as server:
        build(data, out, "writer", "reader", base_url=server.url, tries=2)
        assert len(server.asked) == told["calls_least"]
    assert told["calls_most"] == 2 * told["calls_least"]
    assert estimate(data, out, "writer", "reader", tries=2)["calls_most"] == 0


def test_an_estimate_of_twins_counts_the_matching_too(tmp_path: Path) -> None:
    told = estimate("sample", tmp_path / "out", "writer", "reader", twins=True)
    with Stub(Author()) as server:
        build("sample", tmp_path / "out", "writer", "reader", twins=True, base_url=server.url, tries=1)
    assert told["stages"]["matching"]["calls_least"] == sides(server)["opposed"] == 30
    assert told["pairs"] == 30
    assert told["stages"]["answers"]["calls_least"] == sides(server)["twin"] == 60


def test_twins_swap_their_answers_and_every_probe_has_exactly_a_half(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Stub(Author()) as server:
        built = build("sample", out, "writer", "reader", twins=True, base_url=server.url, tries=6)
    assert built.items == 60
    source, opened = open_data("sample"), open_data(str(out))
    for item_id in opened.ids:
        item, before = opened.get(item_id), source.get(item_id)
        twin = opened.get(item.twin or "")
        assert (item.user_id, item.posts, item.question) == (before.user_id, before.posts, before.question)
        assert opened.key(item_id) == source.key(item_id)
        assert item.twin == before.twin
        assert item.user_id != twin.user_id
        mine, theirs = ({a.role: a.text for a in opened.answers(i)} for i in (item_id, twin.id))
        assert (mine["chosen"], mine["rejected"]) == (theirs["rejected"], theirs["chosen"])
    models = ["builtin/length", "builtin/style", "builtin/lexical"]
    for one in evaluate(str(out), models, "question", tmp_path / "runs"):
        assert (one.metrics["accuracy"], one.metrics["both_right"]) == (0.5, 0.0)


def test_users_with_different_questions_become_twins_on_the_first_ones(write: Any, tmp_path: Path) -> None:
    wishes = [[{"aspect": f"Wish {n}", "evidence": "I eat", "reason": "So it is."}] for n in (1, 2, 3, 4)]
    data = write(*(row for n, w in enumerate(wishes, 1) for row in rows(n, rubric_aspects=w)))
    with Stub(Author()) as server:
        built = build(data, tmp_path / "out", "writer", "reader", twins=True, base_url=server.url)
    opened = open_data(str(tmp_path / "out"))
    assert built.items == len(opened) == 4
    assert opened.ids[:2] == ["q1", "q1~q2"]
    first, second = opened.get("q1"), opened.get("q1~q2")
    assert first.question == second.question
    assert (second.user_id, second.twin, first.twin) == ("u2", "q1", "q1~q2")
    assert second.posts == open_data(str(data)).get("q2").posts


@pytest.mark.parametrize("reply", [say(verdict="not"), say(verdict="cannot tell"), Reply("They differ.")])
def test_users_who_are_not_opposed_for_certain_are_no_twins(reply: Reply, write: Any, tmp_path: Path) -> None:
    with Stub(lambda _: reply) as server:
        built = build(write(*rows(1, 2)), tmp_path / "out", "writer", twins=True, base_url=server.url)
    assert built.items == 0
    assert sides(server) == {"opposed": 2}
    assert all("no user with opposed wishes" in row["reason"] for row in lines(built.dropped))


def test_one_users_items_are_never_twins(write: Any, tmp_path: Path) -> None:
    with Stub(Author()) as server:
        built = build(write(*rows(1, 2, user_id="u1")), tmp_path / "out", "writer", twins=True, base_url=server.url)
    assert (built.items, server.asked) == (0, [])
    assert "no other user" in lines(built.dropped)[0]["reason"]


def test_a_judge_is_another_model_and_one_of_the_same_family_is_told_of(write: Any, tmp_path: Path) -> None:
    data = write(*rows(1))
    with pytest.raises(SpecError, match="judge its own answers"):
        build(data, tmp_path / "out", "google/Gemini-3-flash", "gemini-3-flash?temperature=1")
    with Stub(Author()) as server:
        built = build(data, tmp_path / "out", "gemini-3-flash", "gemini-3-pro", base_url=server.url)
    [warning] = built.record["warnings"]
    assert "gemini-3-pro judges answers that its own family wrote (gemini-3-flash)" in warning
    assert warning in (tmp_path / "out" / "README.md").read_text()


def test_a_folder_holds_one_build(write: Any, tmp_path: Path) -> None:
    data, out = write(*rows(1)), tmp_path / "out"
    with Stub(Author()) as server:
        build(data, out, "writer", base_url=server.url)
        with pytest.raises(RunError, match="another generator"):
            build(data, out, "other", base_url=server.url)
        assert build(data, out, "other", base_url=server.url, fresh=True).items == 1
    assert (out / ".build" / "old-1" / "calls.jsonl").exists()
    assert open_data(str(out)).generators == {"other"}
    with pytest.raises(RunError, match="holds other files"):
        build(data, tmp_path, "writer", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(RunError, match="a file of that name"):
        build(data, data, "writer", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(RunError, match="a file of that name"):
        estimate(data, data, "writer")


def test_a_limit_of_calls_stops_and_the_same_command_goes_on(write: Any, tmp_path: Path) -> None:
    data, out = write(*rows(1, 2, 3)), tmp_path / "out"
    with Stub(Author()) as server:
        with pytest.raises(Stopped):
            build(data, out, "writer", "reader", base_url=server.url, spending=Spending(max_calls=5))
        with pytest.raises(RunError, match="no finished build"):
            write_card(out)
        assert build(data, out, "writer", "reader", base_url=server.url).items == 3
        assert len(server.asked) == len({a.prompt for a in server.asked}) == 18


def test_no_secret_is_written(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-TEST-abc123456")
    data, out = write(*rows(1)), tmp_path / "out"
    with Stub(Author()) as server:
        url = server.url.replace("http://", "http://me:pass-in-url@") + "?token=t-999888"
        build(data, out, f"writer?base_url={url.replace('?', '%3F').replace('=', '%3D')}", base_url=server.url)
        assert "sk-TEST-abc123456" in str(server.asked[0].headers) or "Basic" in str(server.asked[0].headers)
    for path in (p for p in out.rglob("*") if p.is_file()):
        for secret in (b"sk-TEST", b"pass-in-url", b"t-999888"):
            assert secret not in path.read_bytes(), path


def test_names_from_elsewhere_cannot_break_the_card(write: Any, tmp_path: Path) -> None:
    import yaml

    evil = 'x"\n---\n| `<img src=x onerror=alert(1)>`'
    data, out = write(*rows(1, domain=evil)), tmp_path / "out"
    with Stub(Author()) as server:
        built = build(data, out, "wri<b>ter", base_url=server.url, licence=evil)
    card = (out / "README.md").read_text()
    assert "<img" not in card.split("---\n", 2)[2]
    assert "<b>" not in card
    front = yaml.safe_load(card.split("---\n", 2)[1])
    assert front["license"] == evil
    assert [c["config_name"] for c in front["configs"]] == [built.record["configs"][0]["name"]]
    assert open_data(str(out)).get("q1").domain == evil


def test_pairs_that_length_solves_are_warned_of(write: Any, tmp_path: Path) -> None:
    lengths = {"keep": 95, "break": 75}
    with Stub(Author(lambda p: prose(p, lengths[kind(p)]))) as server:
        built = build(write(*rows(*range(1, 13))), tmp_path / "out", "writer", base_url=server.url)
    assert built.items == 12
    assert built.record["statistics"]["longer_is_chosen"]["food"] >= 0.9
    assert any("taking the longer answer solves" in w for w in built.record["warnings"])


def test_the_card_has_a_place_for_the_audits_verdict(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Stub(Author()) as server:
        built = build(write(*rows(1)), out, "writer", base_url=server.url)
    write_card(out, "Length: nothing found.")
    card = (out / "README.md").read_text()
    assert "## Audit\n\nLength: nothing found.\n" in card
    assert "Not audited" not in card
    assert make_card(built.record, [], None).count("Not audited yet") == 1


def test_a_conversation_stays_one(write: Any, tmp_path: Path) -> None:
    turns = [
        {"role": r, "content": c} for r, c in (("user", "Hello."), ("assistant", "Hi!"), ("user", "What to cook?"))
    ]
    data, out = write(*rows(1, question=None, messages=turns), *rows(2)), tmp_path / "out"
    with Stub(Author()) as server:
        build(data, out, "writer", base_url=server.url)
    opened = open_data(str(out))
    assert [m.content for m in opened.get("q1").messages] == ["Hello.", "Hi!", "What to cook?"]
    assert opened.get("q2").question == "What should I cook on day 2?"


def test_only_card_and_data_are_pushed_and_only_with_a_licence(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    sent: list[dict[str, Any]] = []

    class Api:
        def create_repo(self, repo: str, **options: Any) -> str:
            sent.append({"repo": repo, **options})
            return f"https://hub/{repo}"

        def upload_folder(self, **options: Any) -> None:
            sent.append(options)

    monkeypatch.setattr(hub, "HfApi", Api)
    data, out = write(*rows(1)), tmp_path / "out"
    with Stub(Author()) as server:
        args = ["build", "--data", str(data), "--llm", "writer", "--out", str(out), "--base-url", server.url]
        assert cli([*args, "--push", "me/mine"]) == 2
        assert cli([*args, "--push", "mine", "--licence", "mit"]) == 2
        assert sent == []
        assert cli([*args, "--push", "me/mine", "--licence", "mit"]) == 0
    made, upload = sent
    assert (made["repo"], made["repo_type"], made["private"]) == ("me/mine", "dataset", True)
    assert upload["allow_patterns"] == ["README.md", "data/*/test.parquet"]
    assert upload["folder_path"] == out
    assert "checks by `palate data audit`" in (out / "README.md").read_text()
    with pytest.raises(DataError, match="no data"):
        push(tmp_path, "me/mine")


def test_the_command_tells_and_leaves_with_a_code(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = str(write(*rows(1))), str(tmp_path / "out")
    args = ["build", "--data", data, "--llm", "writer", "--out", out]
    assert cli([*args, "--dry-run"]) == 0
    assert "2 to 6 calls" in capsys.readouterr().out
    with Stub(Author()) as server:
        assert cli([*args, "--base-url", server.url]) == 0
        told = capsys.readouterr().out
        assert "licence: unknown" in told
        assert "1 items." in told
        assert cli([*args, "--base-url", server.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["pairs passed"] == 1
    with Stub(Author(lambda p: "No.")) as server:
        assert cli([*args[:-1], out + "2", "--base-url", server.url]) == 1
    assert "no pair passed" in capsys.readouterr().out


def test_a_server_that_fails_on_everything_is_named_as_the_cause(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(write(*rows(1, 2)))
    with Stub(lambda asked: Reply(status=400, error="no such deployment")) as server:
        args = ["build", "--data", data, "--llm", "writer", "--out", str(tmp_path / "out"), "--base-url", server.url]
        code = cli(args)
    told = capsys.readouterr()
    assert code in (1, 2)
    assert "no such deployment" in told.out + told.err
    assert "passed the gates" not in told.out
    assert "Gates" not in told.out


def test_ctrl_c_stops_a_build_with_code_3_and_the_same_command_goes_on(write: Any, tmp_path: Path) -> None:
    data, out, author = str(write(*rows(*range(1, 25)))), tmp_path / "out", Author()

    def slow(asked: Asked) -> Reply:
        return Reply(author(asked).text, delay=0.05)

    with Stub(slow) as server:
        args = ["--data", data, "--llm", "writer?connections=2", "--out", str(out), "--base-url", server.url]
        command = [sys.executable, "-m", "palate", "build", *args]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        calls, until = out / ".build" / "calls.jsonl", time.monotonic() + 60
        while not (calls.exists() and calls.read_bytes().count(b"\n") >= 5):
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
        assert running.returncode == 3
        assert "The same command goes on from here" in told
        assert "Traceback" not in told
        kept = {json.loads(line)["prompt"][0]["content"] for line in calls.read_text().splitlines()}
        before = len(server.asked)
        assert build(data, out, "writer?connections=2", base_url=server.url).items == 24
        assert not kept & {a.prompt for a in server.asked[before:]}


def test_a_killed_build_repeats_no_finished_call(write: Any, tmp_path: Path) -> None:
    data, out = str(write(*rows(*range(1, 25)))), tmp_path / "out"
    author = Author()

    def slow(asked: Asked) -> Reply:
        found = author(asked)
        return Reply(found.text, delay=0.05)

    with Stub(slow) as server:
        args = ["--data", data, "--llm", "writer?connections=2", "--judge", "reader?connections=2", "--out", str(out)]
        command = [sys.executable, "-m", "palate", "build", *args, "--base-url", server.url]
        calls = out / ".build" / "calls.jsonl"
        for wanted in (10, 60):
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
            until = time.monotonic() + 60
            while not (calls.exists() and calls.read_bytes().count(b"\n") >= wanted):
                assert running.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
            running.send_signal(signal.SIGKILL)
            running.wait()
            time.sleep(0.2)
            kept = [json.loads(line) for line in calls.read_bytes().split(b"\n")[:-1]]
            done = {row["prompt"][0]["content"] for row in kept}
            before = len(server.asked)
        built = build(data, out, "writer?connections=2", "reader?connections=2", base_url=server.url)
        assert not done & {a.prompt for a in server.asked[before:]}
        assert len(server.asked) > before
    assert built.items + built.record["counts"]["pairs dropped"] == 24
    with Stub(Author()) as server:
        whole = build(data, tmp_path / "whole", "writer?connections=2", "reader?connections=2", base_url=server.url)
    assert {i: r["answers"] for i, r in made(out).items()} == {i: r["answers"] for i, r in made(whole.folder).items()}
