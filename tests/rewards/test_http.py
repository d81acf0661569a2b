"""Reward models behind servers: what each kind of server is asked, and what of its answers counts."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llm.stub import Asked, Reply
from palate.errors import ModelError, SpecError, Stopped
from palate.llm.client import Spending
from palate.records import Answer, Group, Message, Query, Score
from palate.rewards import Scorer, Setting, open_model
from palate.rewards.http import HttpScorer
from palate.rewards.http.questions import Questions
from rewards.servers import LONGER, Site, answer_of, length, ok, palate, results, sent, sglang, vllm

NAN = float("nan")


def group(item: str, *texts: str) -> Group:
    turns = (Message("user", f"Which way, {item}?"),)
    answers = tuple(Answer(f"{item}:{k}", item, text, "sample") for k, text in enumerate(texts))
    return Group(Query(item, "question", turns, turns, None), answers)


def groups(count: int, each: int = 2) -> list[Group]:
    return [group(f"q{k}", *("x" * (10 * k + n + 1) for n in range(each))) for k in range(count)]


def scorer(site: Site, options: str = "", **setting: Any) -> HttpScorer:
    found = open_model(f"http/{site.address}{options}", setting=Setting(**setting))
    assert isinstance(found, HttpScorer)
    return found


def scores(model: Scorer, asked: list[Group]) -> dict[str, Score]:
    found = list(model.score(asked))
    assert len({s.answer_id for s in found}) == len(found)
    return {s.answer_id: s for s in found}


def lengths(asked: list[Group]) -> dict[str, float]:
    return {a.id: length(a.text) for g in asked for a in g.answers}


def values(found: dict[str, Score]) -> dict[str, float | None]:
    return {name: s.value for name, s in found.items()}


SERVERS: dict[str, Callable[[], dict[str, Any]]] = {
    "palate": palate,
    "classify": vllm,
    "pooling": lambda: vllm(path="/pooling"),
    "classify, no schema": lambda: vllm(schema=False),
    "pooling, no schema": lambda: vllm(path="/pooling", schema=False),
}


@pytest.mark.parametrize("kind", SERVERS)
def test_each_server_gives_each_answer_its_own_score(kind: str) -> None:
    asked = groups(20)
    with Site(SERVERS[kind]()) as site:
        assert values(scores(scorer(site), asked)) == lengths(asked)


def test_vllm_is_sent_the_conversation_with_the_activation_off_and_nothing_that_cuts() -> None:
    with Site(vllm()) as site:
        model = scorer(site)
        scores(model, [group("q", "Left.")])
        body = site.at("/classify")[-1].body
        assert body == {
            "model": "rm",
            "messages": [{"role": "user", "content": "Which way, q?"}, {"role": "assistant", "content": "Left."}],
            "add_generation_prompt": False,
            "use_activation": False,
        }
        environment = model.environment
    assert (environment["server"], environment["server_version"]) == ("vllm", "0.32.0")
    assert (environment["endpoint"], environment["activation"]) == ("/classify", "off (use_activation=false)")
    assert environment["notes"] == []


@pytest.mark.parametrize("switch", ["use_activation", "activation", "softmax"])
def test_the_switch_of_the_activation_is_found_by_its_name(switch: str) -> None:
    with Site(vllm(switch=switch)) as site:
        scores(scorer(site), [group("q", "Left.")])
        assert site.at("/classify")[-1].body[switch] is False


def test_probabilities_are_taken_and_noted_and_equal_ones_are_equal() -> None:
    with Site(vllm(lambda asked: [1.0], switch=None)) as site:
        model = scorer(site)
        assert set(values(scores(model, groups(3))).values()) == {1.0}
        assert model.environment["activation"] == "on (no switch)"
        assert "probabilities" in model.environment["notes"][0]


def test_pooling_names_its_task() -> None:
    with Site(vllm(path="/pooling")) as site:
        scores(scorer(site), [group("q", "Left.")])
        assert site.at("/pooling")[-1].body["task"] == "classify"


def test_a_server_without_rewards_is_told_how_to_give_them() -> None:
    chat = {"/version": sent({"version": "0.32.0"}), "/v1/models": sent({"data": [{"id": "m"}]})}
    with Site(chat) as site, pytest.raises(ModelError) as told:
        _ = scorer(site).identity
    for part in ("neither /classify nor /pooling", "--runner pooling --convert classify", "/version: 200", "0.32"):
        assert part in str(told.value)


def test_what_is_no_server_of_rewards_at_all_is_told_with_what_was_found() -> None:
    with Site({}) as site, pytest.raises(ModelError) as told:
        _ = scorer(site).budget
    assert "no reward server of a known kind (palate, sglang, vllm)" in str(told.value)
    assert "/health: 404" in str(told.value)


def test_only_the_kind_that_is_asked_for_is_looked_for() -> None:
    with Site(vllm()) as site:
        with pytest.raises(ModelError, match="known kind \\(palate\\)"):
            _ = scorer(site, "?api=palate").identity
        assert scorer(site, "?api=vllm").identity["server"] == "vllm"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([0.1] * 8, ["shape 8", "--runner pooling --convert classify", "?label="]),
        ([[0.1] * 8] * 3, ["shape 3 × 8", "hidden states or an embedding"]),
        ([0.1] * 4096, ["shape 4096", "hidden states or an embedding"]),
    ],
)
@pytest.mark.parametrize("path", ["/classify", "/pooling"])
def test_a_vector_is_no_reward(path: str, value: Any, said: list[str]) -> None:
    with Site(vllm(lambda asked: value, path=path)) as site, pytest.raises(ModelError) as told:
        _ = scorer(site).budget
    assert all(part in str(told.value) for part in said)
    assert len(str(told.value)) < 800


def test_one_of_several_outputs_has_to_be_chosen() -> None:
    with Site(vllm(lambda asked: [0.5, -1.5, length(answer_of(asked))])) as site:
        with pytest.raises(ModelError, match=r"gives 3 numbers.*\n.*\?label=2") as told:
            scores(scorer(site), groups(1))
        assert "0 (0.5), 1 (-1.5), 2 (" in str(told.value)
        asked = groups(2)
        assert values(scores(scorer(site, "?label=2"), asked)) == lengths(asked)
        assert set(values(scores(scorer(site, "?label=1"), asked)).values()) == {-1.5}
        assert scorer(site, "?label=1").identity["label"] == 1
        with pytest.raises(ModelError, match="no output 3"):
            _ = scorer(site, "?label=3").budget


def test_a_server_that_changes_what_it_gives_ends_the_run() -> None:
    rule = lambda asked: [1.0] if "mill" in answer_of(asked) else [1.0, 2.0]  # noqa: E731
    with Site(vllm(rule)) as site, pytest.raises(ModelError, match="gives 2 numbers"):
        scores(scorer(site), groups(1))


@pytest.mark.parametrize("bad", [NAN, float("inf"), None, "high", True])
def test_what_is_no_number_is_an_error_of_its_answer_alone(bad: Any) -> None:
    asked = groups(1, each=8)
    third = asked[0].answers[2]
    with Site(vllm(lambda a: [bad if answer_of(a) == third.text else length(answer_of(a))])) as site:
        found = scores(scorer(site), asked)
    assert found[third.id].status == "error"
    assert "not a reward" in str(found[third.id].note)
    assert {k: v for k, v in values(found).items() if k != third.id} == {
        k: v for k, v in lengths(asked).items() if k != third.id
    }


def test_nan_in_one_result_of_a_palate_server_leaves_seven() -> None:
    asked = groups(1, each=8)
    third = asked[0].answers[2].id
    rule = lambda i: ok(i, NAN if i["id"] == third else length(i["response"]))  # noqa: E731
    with Site(palate(results(rule))) as site:
        found = scores(scorer(site), asked)
    assert [name for name, s in found.items() if s.status != "ok"] == [third]
    assert len(site.at("/score")) == 1


def test_results_land_by_id_whatever_their_order() -> None:
    asked, chance = groups(8), random.Random(3)

    def shuffled(a: Asked) -> Reply:
        rows = [ok(i, length(i["response"])) for i in a.body["items"]]
        chance.shuffle(rows)
        return sent({"results": rows}, delay=chance.random() / 20)

    with Site(palate(shuffled)) as site:
        assert values(scores(scorer(site), asked)) == lengths(asked)


def test_rows_land_by_index() -> None:
    from palate.rewards.http.dialect import Piece, in_order

    pieces = [Piece("q", str(k), (), "") for k in range(3)]
    rows = [{"index": k, "v": k} for k in (2, 0, 1)]
    assert [r["v"] for r in in_order(rows, pieces)] == [0, 1, 2]
    for bad in (rows[:2], [*rows, rows[0]], [rows[0]] * 3, [3, 4, 5], None, [{"index": "0"}, {}, {}]):
        with pytest.raises(ValueError, match="one row for each"):
            in_order(bad, pieces)


def test_results_of_other_answers_are_errors() -> None:
    with Site(palate(results(lambda i: ok(i | {"id": "other"}, 1.0)))) as site:
        found = scores(scorer(site), groups(1))
    assert {s.status for s in found.values()} == {"error"}
    assert all("asked for the ids" in str(s.note) for s in found.values())


def test_an_answer_that_hangs_times_out_alone() -> None:
    asked = groups(1, each=8)
    slow = asked[0].answers[4]

    def some_hang(a: Asked) -> Reply:
        if any(i["id"] == slow.id for i in a.body["items"]):
            return Reply(hung=True)
        return results(lambda i: ok(i, length(i["response"])))(a)

    with Site(palate(some_hang)) as site:
        found = scores(scorer(site, "?timeout=1"), asked)
    assert [n for n, s in found.items() if s.status != "ok"] == [slow.id]
    assert found[slow.id].note == "timed out: no whole reply within 1 s"


def test_a_slow_drip_is_no_way_around_the_limit() -> None:
    with Site(palate(lambda a: Reply(raw=b"x" * 200, drops=0.05))) as site:
        found = scores(scorer(site, "?timeout=1"), [group("q", "Left.")])
    assert "timed out" in str(found["q:0"].note)


def test_busy_servers_are_waited_for_as_long_as_they_say() -> None:
    told: list[tuple[str, str]] = []
    left = [Reply(status=429, error="slow", headers={"Retry-After": "0.3"}), Reply(status=503, error="full")]

    def busy(a: Asked) -> Reply:
        return left.pop(0) if left else results(lambda i: ok(i, 1.0))(a)

    with Site(palate(busy)) as site:
        found = scores(scorer(site, told=lambda item, text: told.append((item, text))), [group("q", "Left.")])
    assert found["q:0"].value == 1.0
    assert [item for item, _ in told] == ["q", "q"]
    assert told[0][1] == "tried again after HTTP 429 (Retry-After 0.3)"


@pytest.mark.parametrize("words", [LONGER, "The input (5000 tokens) is longer than the model's context length (4096)."])
def test_too_long_for_the_server_is_overlong_and_the_rest_goes_on(words: str) -> None:
    asked = groups(10, each=1)
    fourth = asked[3].answers[0]
    rule = lambda a: Reply(status=400, error=words) if answer_of(a) == fourth.text else [1.0]  # noqa: E731
    with Site(vllm(rule)) as site:
        found = scores(scorer(site), asked)
    assert {n: s.status for n, s in found.items() if s.status != "ok"} == {fourth.id: "overlong"}
    assert words[:40] in str(found[fourth.id].note)


def test_another_refusal_is_an_error_in_the_servers_words() -> None:
    rule = lambda a: Reply(status=422, error="no emojis") if answer_of(a) == "x" else [1.0]  # noqa: E731
    with Site(vllm(rule)) as site:
        found = scores(scorer(site), [group("q", "x", "yy")])
    assert (found["q:0"].status, found["q:1"].status) == ("error", "ok")
    assert "no emojis" in str(found["q:0"].note)


def test_a_palate_servers_own_words_are_kept() -> None:
    rule = lambda i: {"id": i["id"], "status": "overlong", "score": None, "error": "9 tokens, room for 3"}  # noqa: E731
    with Site(palate(results(rule))) as site:
        found = scores(scorer(site), groups(1))
    assert {(s.status, s.note) for s in found.values()} == {("overlong", "9 tokens, room for 3")}


def test_a_refused_batch_is_asked_for_one_by_one() -> None:
    def fussy(a: Asked) -> Reply:
        if any(i["response"] == "x" for i in a.body["items"]):
            return Reply(status=422, error="bad item")
        return results(lambda i: ok(i, length(i["response"])))(a)

    with Site(palate(fussy)) as site:
        found = scores(scorer(site), [group("q", "x", "yy", "zzz")])
    assert values(found) == {"q:0": None, "q:1": 2.0, "q:2": 3.0}


def test_answers_of_a_query_share_a_request() -> None:
    with Site(palate()) as site:
        scores(scorer(site), [group(f"q{k}", "a", "b", "c") for k in range(5)])
        sizes = [[i["id"].split(":")[0] for i in a.body["items"]] for a in site.at("/score")]
    assert sorted(map(len, sizes)) == [3, 6, 6]
    assert not any(set(a) & set(b) for k, a in enumerate(sizes) for b in sizes[:k])


def test_a_query_with_very_many_answers_is_split() -> None:
    asked = groups(1, each=50)
    with Site(palate()) as site:
        assert values(scores(scorer(site), asked)) == lengths(asked)
        assert max(len(a.body["items"]) for a in site.at("/score")) == 8


@pytest.mark.parametrize("parallel", [1, 3])
def test_no_more_requests_at_once_than_asked_for_and_groups_are_taken_as_needed(parallel: int) -> None:
    taken = 0

    def stream() -> Iterator[Group]:
        nonlocal taken
        for one in groups(30):
            taken += 1
            yield one

    with Site(vllm(lambda a: Reply(raw=b'{"data": [{"index": 0, "probs": [1.0]}]}', delay=0.02))) as site:
        model = scorer(site, f"?parallel={parallel}")
        found = model.score(stream())
        next(found)
        assert taken <= parallel + 2
        assert len(list(found)) == 59
        assert site.busiest <= parallel


def test_a_limit_of_calls_stops_cleanly() -> None:
    with Site(vllm()) as site:
        spending = Spending(max_calls=3)
        found: list[Score] = []
        with pytest.raises(Stopped, match="limit of calls"):
            found.extend(scorer(site, spending=spending).score(groups(10)))
        assert spending.calls == 3
        assert spending.prompt_tokens == 21


def test_nothing_there_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palate.rewards.http.questions.START_RETRIES", 0)
    with pytest.raises(ModelError, match=r"nothing answers at http://127\.0\.0\.1:9"):
        _ = open_model("http/127.0.0.1:9").identity


def test_a_wrong_key_is_one_error_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-TEST-abc123")
    refused = Reply(status=401, error="wrong key sk-TEST-abc123")
    with Site({"/health": refused}) as site:
        with pytest.raises(ModelError, match=r"wrong key \*\*\*(.|\n)*\$MY_KEY") as told:
            _ = scorer(site, "?key_env=MY_KEY").identity
        assert site.asked[0].headers["authorization"] == "Bearer sk-TEST-abc123"
    assert "abc123" not in str(told.value)


def test_a_palate_server_tells_window_room_and_tokens() -> None:
    with Site(palate(window=100, room=30)) as site:
        model = scorer(site)
        budget = model.budget
        assert budget is not None
        assert (budget.prompt, budget.answer) == (70, 30)
        assert budget.count([Message("user", "12345"), Message("assistant", "678")]) == 8
        assert model.identity["weights"] == {"family": "builtin", "id": "length"}
        assert site.at("/count")[0].body == {
            "prompts": [[{"role": "user", "content": "12345"}, {"role": "assistant", "content": "678"}]]
        }
    with Site(palate()) as site:
        assert scorer(site).budget is None


@pytest.mark.parametrize("option", ["label=0", "model=m", "room=5", "window=50", "tokenizer=t"])
def test_what_a_palate_server_has_fixed_is_not_asked_for(option: str) -> None:
    with Site(palate()) as site, pytest.raises(ModelError, match=f"leave out \\?{option.partition('=')[0]}="):
        _ = scorer(site, f"?{option}").identity


@pytest.mark.parametrize(
    ("health", "said"), [({"window": 5}, "'window' and 'room' go together"), ({"more": 1}, "more: unknown field")]
)
def test_a_palate_server_of_another_form_is_refused(health: dict[str, Any], said: str) -> None:
    whole = {"status": "ok", "server": "palate", "version": "9", "model": {}, "window": None, "room": None}
    with Site({"/health": sent(whole | health)}) as site, pytest.raises(ModelError, match=said):
        _ = scorer(site).identity


def test_vllm_tells_its_window_and_counts_tokens() -> None:
    with Site(vllm(window=400)) as site:
        budget = scorer(site).budget
        assert budget is not None
        assert (budget.prompt, budget.answer) == (200, 200)
        assert budget.count([Message("user", "12345")]) == 6
        assert site.at("/tokenize")[-1].body["add_generation_prompt"] is False
        found = scores(scorer(site, "?room=12"), [group("q", "x" * 12, "x" * 13)])
        assert (found["q:0"].status, found["q:1"].status) == ("ok", "overlong")
        assert found["q:1"].note == "answer of 13 tokens, room for 12"
        with pytest.raises(ModelError, match="window=500 is more than the server's 400"):
            _ = scorer(site, "?window=500").identity
        with pytest.raises(ModelError, match="room=400 leaves no space"):
            _ = scorer(site, "?room=400").identity


def test_without_a_way_to_count_there_is_no_budget_and_a_note() -> None:
    routes = vllm()
    del routes["/tokenize"]
    with Site(routes) as site:
        model = scorer(site)
        assert model.budget is None
        assert "the window is not known" in model.environment["notes"][0]
        with pytest.raises(ModelError, match="something to count tokens with"):
            _ = scorer(site, "?window=100").budget


def test_one_of_several_models_has_to_be_chosen() -> None:
    two = sent({"data": [{"id": "first", "max_model_len": 64}, {"id": "second", "max_model_len": 128}]})
    with Site(vllm() | {"/v1/models": two}) as site:
        with pytest.raises(ModelError, match="serves first, second; choose one"):
            _ = scorer(site).identity
        with pytest.raises(ModelError, match="Did you mean 'second'"):
            _ = scorer(site, "?model=secnd").identity
        model = scorer(site, "?model=second")
        assert (model.identity["model"], model.identity["window"]) == ("second", 128)
        scores(model, groups(1))
        assert site.at("/classify")[-1].body["model"] == "second"


def test_the_identity_holds_no_path_and_no_secret() -> None:
    with Site(vllm()) as site:
        model = open_model(f"http/me:pw-hush@{site.address}/%3Fteam=t-999")
        identity, environment = model.identity, model.environment
    assert identity["id"] == site.address
    assert identity["weights"] == {"root": "rm"}
    assert model.name == f"http/{site.address}"
    told = repr((identity, environment))
    assert not any(secret in told for secret in ("pw-hush", "t-999", "/srv"))
    assert site.asked[0].path.endswith("?team=t-999")
    assert site.asked[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("http/localhost:8000", "http/localhost:8000"),
        ("http/localhost:8000/", "http/localhost:8000"),
        ("http/http://localhost:8000/a/b", "http/localhost:8000/a/b"),
        ("http/https://host/rm", "http/https://host/rm"),
        ("http/me:pw@host:1", "http/host:1"),
        ("http/https://me:pw@host/rm%3Fkey=abc", "http/https://host/rm"),
        ("http/[::1]:8000", "http/[::1]:8000"),
    ],
)
def test_addresses_are_read_and_named(text: str, name: str) -> None:
    assert open_model(text).name == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http/host?lable=1", "Did you mean 'label'"),
        ("http/host?label=good", "label must be a whole number"),
        ("http/host?api=tgi", "api=tgi is not possible"),
        ("http/host?timeout=0", "timeout must be a whole number from 1"),
        ("http/:8000", "an address is needed"),
        ("http/me:pw-hush@host?lable=1", "unknown option"),
    ],
)
def test_strings_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as told:
        open_model(text)
    assert "pw-hush" not in str(told.value)


def test_bare_text_needs_a_tokenizer() -> None:
    with Site(vllm(messages=False)) as site, pytest.raises(ModelError, match=r"takes no chat turns; \?tokenizer="):
        _ = scorer(site).identity
    with Site(sglang(lambda ids: [1.0])) as site, pytest.raises(ModelError, match=r"\?tokenizer=<folder or hub id>"):
        _ = scorer(site).identity


def test_sglang_with_a_language_model_is_no_reward_server() -> None:
    site = Site(sglang(lambda ids: [1.0], is_generation=True))
    with site, pytest.raises(ModelError, match="serves a language model"):
        _ = scorer(site, "?tokenizer=x").identity


def test_questions_remember_what_they_found() -> None:
    routes = {"/a": sent({}), "/b": Reply(raw=b"no", kind="application/json"), "/c": Reply(raw=b"plain", kind="text/x")}
    with Site(routes) as site:
        from palate.rewards.http.options import Options
        from palate.spec import Spec

        questions = Questions(Options.from_spec(Spec.parse(f"http/{site.address}")))
        assert [questions.get(path) for path in ("/a", "/b", "/c", "/d")] == [{}, None, None, None]
        assert questions.told == "/a: 200, /b: no JSON, /c: 200, /d: 404"
        assert [questions.offers(path) for path in ("/a", "/d")] == [True, False]
