"""What is asked and what comes back: ids, order, fields, end tokens, hostile bodies, tokens, limits."""

import json
import socket
from typing import Any

import pytest

from palate.errors import PalateError
from palate.serve import RewardServer, Settings
from palate.serve.ends import strip_ends, turns_of
from serve.site import CALLS, Client, Reply, item, known, running


@pytest.fixture(scope="module")
def client() -> Any:
    with running() as found:
        yield found


def test_order_and_ids_are_kept(client: Client) -> None:
    names = [f"n{(7 * k) % 16}" for k in range(16)]
    found = client.score(*(item(n, "x" * (k + 1), question=f"Q{k % 3}?") for k, n in enumerate(names)))
    assert found.status == 200
    assert [(r["id"], r["status"], r["score"]) for r in found.body["results"]] == [
        (n, "ok", k + 1.0) for k, n in enumerate(names)
    ]


def test_a_failed_score_is_an_error_object_and_the_others_are_unaffected(client: Client) -> None:
    texts = ["one", "two", "nan", "four", "boom", "six", "lost", "eight"]
    found = client.score(*(item(str(k), t) for k, t in enumerate(texts))).results
    bad = {k: r for k, r in found.items() if r["status"] != "ok"}
    assert {k: r["status"] for k, r in bad.items()} == {"2": "error", "4": "error", "6": "error"}
    assert all(r["score"] is None for r in bad.values())
    assert "nan" in bad["2"]["error"]
    assert "fell over" in bad["4"]["error"]
    assert "no score" in bad["6"]["error"]
    assert all(found[str(k)]["score"] == len(t) for k, t in enumerate(texts) if str(k) not in bad)


def test_answers_to_one_query_become_one_group(client: Client) -> None:
    CALLS.clear()
    client.score(*(item(str(k), f"text {k}", question=f"Q{k % 2}?") for k in range(8)))
    assert [[len(g.answers) for g in call] for call in CALLS] == [[4, 4]]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"response": None}, "items.0.response"),
        ({"id": 7}, "items.0.id"),
        ({"id": ""}, "items.0.id"),
        ({"question": None}, "items.0"),
        ({"messages": [{"role": "user", "content": "x"}]}, "items.0"),
        ({"messages": [{"role": "robot", "content": "x"}], "question": None}, "items.0.messages.0.role"),
        ({"messages": [], "question": None}, "items.0.messages"),
        ({"history": "post"}, "items.0.history"),
        ({"history": [1]}, "items.0.history.0"),
        ({"history": ["x"], "plan": ["y"]}, "items.0"),
        ({"rubric_aspects": []}, "items.0.rubric_aspects"),
        ({"narrative": "n"}, "items.0.narrative"),
        ({"response": ["x"]}, "items.0.response"),
        ({"response": "\ud800"}, "items.0.response"),
    ],
)
def test_a_bad_field_is_named(client: Client, change: dict[str, Any], field: str) -> None:
    sent = {k: v for k, v in {**item("a", "text"), **change}.items() if v is not None}
    found = client.score(sent)
    assert found.status == 422
    assert field in found.fields
    assert found.body["error"]["message"]


def test_all_bad_fields_are_named_at_once(client: Client) -> None:
    found = client.score(*({"id": str(k), "question": "Q?"} for k in range(9)))
    assert set(found.fields) == {f"items.{k}.response" for k in range(9)}


def test_an_id_that_is_there_twice_is_refused(client: Client) -> None:
    found = client.score(item("a", "x"), item("a", "y"))
    assert found.status == 422
    assert "'a' is there twice" in found.body["error"]["message"]


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"{items:",
    "NaN": b'{"items": [{"id": "a", "question": "Q?", "response": NaN}]}',
    "Infinity": b'{"items": -Infinity}',
    "deep": b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "less deep": b'{"items": [{"id": ' + b"[" * 500 + b"]" * 500 + b"}]}",
    "no object": b'["items"]',
    "null": b"null",
    "a number of 10,000 digits": b'{"items": ' + b"9" * 10_000 + b"}",
    "a key twice": b'{"items": [{"id": "a", "id": "b", "question": "Q?", "response": "x"}]}',
    "no UTF-8": b'{"items": "\xff\xfe"}',
    "too many": json.dumps({"items": [item(str(k), "x") for k in range(257)]}).encode(),
    "none": b'{"items": []}',
    "a text of more than a million": json.dumps({"items": [item("a", "x" * 1_000_001)]}).encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("path", ["/score", "/count", "/get_reward"])
def test_a_hostile_body_is_422_and_the_server_lives(client: Client, name: str, path: str) -> None:
    found = client.post(path, HOSTILE[name])
    assert found.status == 422, found
    assert found.body["error"]["message"]
    assert client.score(item("a", "abc")).results["a"]["score"] == 3


def test_other_requests_are_refused_plainly(client: Client) -> None:
    assert client.post("/score", b"{}", **{"Content-Type": "text/plain"}).status == 415
    assert client.get("/score").status == 405
    assert client.get("/docs").status == client.get("/openapi.json").status == client.get("/x").status == 404
    assert "error" in client.get("/x").body


def test_a_large_body_is_413_whether_it_tells_its_length_or_not() -> None:
    with running(body=10_000) as client:
        assert client.post("/score", b'"' + b"x" * 20_000 + b'"').status == 413
        host, port = client.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as link:
            head = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            link.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + (b"2000\r\n" + b" " * 0x2000 + b"\r\n") * 2)
            assert b" 413 " in link.recv(4096).partition(b"\r\n")[0]
        assert client.score(item("a", "abc")).status == 200


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    with running(seconds=0.3) as client:
        host, port = client.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as link:
            link.sendall(
                b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
            )
            assert b" 408 " in link.recv(4096).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("text", "bare", "count"),
    [
        ("Take the bus.<|im_end|>", "Take the bus.", 1),
        ("Take the bus.<|im_end|>\n", "Take the bus.", 1),
        ("Take the bus.</s></s>", "Take the bus.", 2),
        ("Take the bus. <|eot_id|>", "Take the bus. ", 1),
        ("Take the bus.\n<end_of_turn>\n<eos>", "Take the bus.\n", 2),
        ("Take the bus.\n", "Take the bus.\n", 0),
        ("<|im_end|> Take the bus.", "<|im_end|> Take the bus.", 0),
        ("</s>", "", 1),
        ("", "", 0),
    ],
)
def test_end_tokens_at_the_end_are_taken_off(text: str, bare: str, count: int) -> None:
    assert strip_ends(text) == (bare, count)


def test_end_tokens_are_stripped_told_and_counted(client: Client) -> None:
    before = [client.meter(f"palate_{n}_total") for n in ("stripped_ends", "leftover_tokens")]
    found = client.score(item("a", "Take the bus.<|im_end|></s>"), item("b", "Take the bus."), item("c", "A </s> b"))
    assert found.results["a"] == {"id": "a", "status": "ok", "score": 13.0, "stripped": 2}
    assert found.results["b"] == {"id": "b", "status": "ok", "score": 13.0}
    after = [client.meter(f"palate_{n}_total") for n in ("stripped_ends", "leftover_tokens")]
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 1]


CHATML = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nWhich way?<|im_end|>\n<|im_start|>assistant\n"
LLAMA = (
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhich way?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
)
GEMMA = "<bos><start_of_turn>user\nWhich way?<end_of_turn>\n<start_of_turn>model\n"


@pytest.mark.parametrize(("prompt", "roles"), [(CHATML, ["system", "user"]), (LLAMA, ["user"]), (GEMMA, ["user"])])
def test_a_prompt_in_a_known_template_is_read(prompt: str, roles: list[str]) -> None:
    turns = turns_of(prompt)
    assert turns is not None
    assert [t.role for t in turns] == roles
    assert turns[-1].content == "Which way?"


@pytest.mark.parametrize(
    "prompt", ["", "[INST] Hi [/INST]", CHATML + "No", CHATML.replace("user", "tool"), "<|im_start|>x"]
)
def test_a_prompt_in_another_template_is_not_guessed_at(prompt: str) -> None:
    assert turns_of(prompt) is None


def openrlhf(client: Client, prompts: list[str], answers: list[str]) -> Reply:
    query = [p + a for p, a in zip(prompts, answers, strict=True)]
    return client.post("/get_reward", {"query": query, "prompts": prompts, "labels": [None] * len(query)})


def test_openrlhf_gets_its_rewards_in_order(client: Client) -> None:
    CALLS.clear()
    found = openrlhf(client, [CHATML, "Plain?", CHATML], ["Left.<|im_end|>", " Right", "Straight on<|im_end|>\n"])
    assert found.body == {"rewards": [5.0, 6.0, 11.0], "scores": [5.0, 6.0, 11.0], "extra_logs": {}}
    asked = {g.query.messages[-1].content: [a.text for a in g.answers] for g in CALLS[0]}
    assert asked == {"Which way?": ["Left.", "Straight on"], "Plain?": [" Right"]}


def test_openrlhf_gets_an_error_if_one_reward_is_missing(client: Client) -> None:
    found = openrlhf(client, ["Q?", "Q?", "Q?"], ["one", "nan", "two"])
    assert found.status == 500
    assert set(found.body) == {"error"}
    assert "1 of 3" in found.body["error"]["message"]
    assert "query.1" in found.body["error"]["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": ["Q? a"]}, "prompts"),
        ({"query": ["Q? a"], "prompts": ["Q?", "R?"]}, ""),
        ({"query": ["Other a"], "prompts": ["Q?"]}, "query.0"),
        ({"query": ["[INST] a [/INST] b"], "prompts": ["[INST] a [/INST]"]}, "prompts.0"),
        ({"query": "Q? a", "prompts": ["Q?"]}, "query"),
    ],
)
def test_openrlhf_gets_the_field_that_is_wrong(client: Client, body: dict[str, Any], field: str) -> None:
    found = client.post("/get_reward", body)
    assert found.status == 422
    assert field in found.fields


def test_health_tells_the_model_without_paths(client: Client) -> None:
    found = client.get("/health").body
    assert found["model"] == {"family": "fake", "id": "letters", "folder": "letters"}
    assert (found["status"], found["window"], found["room"]) == ("ok", None, None)
    assert client.post("/count", {"prompts": [[{"role": "user", "content": "x"}]]}).body == {"tokens": None}


def test_without_its_token_nobody_is_told_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RM_TOKEN", "hush-hush-1")
    with running(token_env="RM_TOKEN", host="0.0.0.0") as client:
        assert client.score(item("a", "abc")).results["a"]["score"] == 3
        for token in (None, "hush-hush-2", "hush-hush-1x", "ü"):
            stranger = Client(client.address, token)
            for found in (stranger.score(item("a", "abc")), stranger.get("/health"), stranger.get("/metrics")):
                assert found.status == 401
                assert found.body["error"]["fields"] == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "198.51.100.7", "example.org"])
def test_off_loopback_a_token_is_needed(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PALATE_HTTP_KEY", raising=False)
    with pytest.raises(PalateError, match="PALATE_HTTP_KEY"):
        RewardServer("builtin/length", None, Settings(host=host, port=0))


@pytest.mark.parametrize(
    ("model", "view", "words"),
    [
        ("fake/letters", "oracle", "never sees a rubric"),
        ("fake/letters", "swapped", "takes no options"),
        ("fake/letters", "history?k=3", "takes no options"),
        ("fake/letters", "histroy", "Did you mean 'history'"),
        ("builtin/style", None, "learns from the data"),
        ("judge/some-model?base_url=http://localhost:1", None, "Serve a scorer"),
        ("fkae/letters", None, "Did you mean 'fake'"),
    ],
)
def test_what_cannot_be_served_is_told_at_the_start(model: str, view: str | None, words: str) -> None:
    known()
    with pytest.raises(PalateError, match=words):
        RewardServer(model, view, Settings(port=0))


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PalateError, match="cannot listen"):
            RewardServer("builtin/length", None, Settings(port=taken.getsockname()[1]))


@pytest.mark.parametrize(
    ("view", "good", "bad", "field"),
    [
        ("history", {"history": ["A post."]}, {}, "items.1.history"),
        ("history", {"history": []}, {"plan": ["x"]}, "items.1.history"),
        ("plan", {"plan": ["x"]}, {"history": ["x"]}, "items.1.plan"),
        ("question", {}, {"history": ["x"]}, "items.1.history"),
    ],
)
def test_a_server_of_one_view_wants_its_context(
    view: str, good: dict[str, Any], bad: dict[str, Any], field: str
) -> None:
    with running(view=view) as client:
        assert client.score(item("a", "x", **good), item("b", "y", **good)).status == 200
        found = client.score(item("a", "x", **good), item("b", "y", **bad))
        assert found.status == 422
        assert list(found.fields) == [field]


def test_context_goes_through_the_template_of_evaluation() -> None:
    from palate.records import Item, Message, Post
    from palate.views import View, look

    turns = (Message("user", "Which way?"),)
    posts = (Post("0", "I like trams."), Post("1", "I walk."))
    wanted = look(Item("", None, "all", None, turns, posts), View("history"), posts=posts)
    with running() as client:
        CALLS.clear()
        client.score(item("a", "x", history=["I like trams.", "I walk."]))
        client.score(item("a", "x", messages=[{"role": "user", "content": "As it is."}]))
    assert CALLS[0][0].query.messages == wanted.messages
    assert [m.content for m in CALLS[1][0].query.messages] == ["As it is."]
