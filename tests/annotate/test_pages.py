"""The pages over HTTP: steps and locks, what is refused, what a stranger meets, texts of others."""

import html
import re
from typing import Any

import pytest
from markupsafe import escape

from annotators import STEP_ONE, Person
from palate.annotate.guard import LARGEST_BODY
from rows import make_row

NASTY = '</textarea></script><img src=x onerror=alert(1)>" onmouseover="alert(2) {{ 7*7 }} \u202e&amp; \u05d0'


def kept(desk: Any, name: str = "ana", number: int = 1, step: int = 1) -> dict[str, str]:
    task = desk.study.book.task(desk.study.book.annotators()[name], number)
    return dict(desk.study.book.state(task)[step].values)


def test_from_the_link_to_the_end(desk: Any) -> None:
    d = desk(limit=2)
    ana = d.person("ana")
    first = d.client.get(ana.base)
    assert "Hello ana" in first.text
    assert "0 of 2 items done" in first.text
    assert d.client.get(f"{ana.base}/next").headers["location"] == f"{ana.base}/item/1/1"
    for number in (1, 2):
        assert ana.page(number, 2).headers["location"] == f"{ana.base}/item/{number}/1"
        assert ana.finish(number).headers["location"] == f"{ana.base}/item/{number}/2"
        assert d.client.get(f"{ana.base}/next").headers["location"] == f"{ana.base}/item/{number}/2"
        after = f"{ana.base}/item/2/1" if number == 1 else f"{ana.base}/done"
        assert ana.finish(number, 2).headers["location"] == after
    assert "All done" in d.client.get(f"{ana.base}/done").text
    assert "2 of 2 items done" in d.client.get(f"{ana.base}/items").text


def test_the_page_is_blind(desk: Any) -> None:
    d = desk(limit=6, attention="auto:2")
    ana = d.person("ana")
    for number in range(1, 9):
        text, sheet = ana.page(number).text, d.study.book.sheet(d.item("ana", number))
        a, b = (text.index(str(escape(t))) for t in (sheet.chosen, sheet.rejected))
        assert (a < b) == (d.seats("ana", number)[0] == "chosen")
        page = text.replace(sheet.turns[-1].content, "")
        for shown in (*sheet.posts, sheet.chosen, sheet.rejected):
            page = page.replace(str(escape(shown)), "")
        for word in ("chosen", "rejected", "attention", "expected", d.item("ana", number), sheet.aspects[0].reason):
            assert word not in page


def test_an_item_without_a_rubric_has_one_step(desk: Any, write: Any) -> None:
    d = desk(write(make_row(1, rubric_aspects=None), make_row(2, profile=[])), overlap=1)
    ana = d.person("ana")
    bare = next(n for n in (1, 2) if d.item("ana", n) == "q1")
    assert "Finish this item" in ana.page(bare).text
    assert ana.page(bare, 2).status_code == 404
    assert "/1" in ana.finish(bare).headers["location"]
    assert d.study.book.progress(1).done == 1
    assert "Nothing that this person wrote" in ana.page(3 - bare).text


def test_every_change_is_kept_and_shown_again(desk: Any) -> None:
    d = desk(limit=1)
    ana = d.person("ana")
    assert ana.save(1, factuality_a="4").json() == {"saved": ["factuality_a"]}
    ana.save(1, factuality_a="2")
    ana.save(1, comment="so so", preference="none")
    assert kept(d) == {"factuality_a": "2", "comment": "so so", "preference": "none"}
    text = ana.page(1).text
    assert re.search(r'name="factuality_a" value="2" required checked', text)
    assert text.count(" checked") == 2
    assert "so so</textarea>" in text
    ana.save(1, comment=" ")
    assert "comment" not in kept(d)


def test_without_javascript_a_form_saves_and_finishes(desk: Any) -> None:
    d = desk(limit=1)
    ana = d.person("ana")
    page = ana.page(1).text
    assert 'formaction="' in page
    assert ana.post(1, 1, "save", {"factuality_a": "3"}).headers["location"].endswith("/item/1/1?said=saved")
    assert "Saved." in d.client.get(f"{ana.base}/item/1/1?said=saved").text
    gaps = ana.post(1, 1, "finish", {"relevance_a": "5", "comment": ""})
    assert gaps.status_code == 422
    assert "Still missing: helpfulness of answer A, factuality of answer B" in gaps.text
    assert kept(d) == {"factuality_a": "3", "relevance_a": "5"}
    assert 'name="relevance_a" value="5" required checked' in gaps.text


@pytest.mark.parametrize("act", ["save", "finish"])
def test_a_bad_value_is_named_and_nothing_is_kept(desk: Any, act: str) -> None:
    d = desk(limit=1)
    ana = d.person("ana")
    for bad in ({"relevance_b": "6"}, {"relevance_b": "<b>"}, {"preference": "chosen"}, {"comment": "x" * 2001}):
        found = ana.post(1, 1, act, STEP_ONE | bad, Accept="application/json")
        assert found.status_code == 422
        assert found.json()["field"] == next(iter(bad))
    page = ana.post(1, 1, act, STEP_ONE | {"relevance_b": "<b>"})
    assert page.status_code == 422
    assert "relevance of answer B: expected a whole number from 1 to 5, found &#39;&lt;b&gt;&#39;" in page.text
    assert ana.post(1, 1, act, {"fit_a": "3"}).status_code == 422
    twice = f"form_token={ana.form_token}&factuality_a=1&factuality_a=5"
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert d.client.post(f"{ana.base}/item/1/1/{act}", content=twice, headers=form).status_code == 422
    assert kept(d) == {}


def test_a_finished_step_changes_only_by_correction_which_is_noted(desk: Any) -> None:
    from palate.annotate import read_status

    d = desk(limit=1)
    ana = d.person("ana")
    ana.finish(1)
    ana.page(1, 2)
    assert ana.save(1, factuality_a="1").status_code == 409
    assert ana.finish(1, factuality_a="1").status_code == 409
    assert ana.finish(1).status_code == 303
    assert kept(d)["factuality_a"] == "4"
    assert "disabled" in ana.page(1).text
    assert ana.post(1, 1, "correct", {}).headers["location"].endswith("/item/1/1?said=correct")
    assert ana.page(1, 2).status_code == 303
    assert ana.save(1, 2, fit_a="3").status_code == 409
    late = ana.finish(1, 2)
    assert late.status_code == 409
    assert "Step two opens when step one is finished" in late.text
    assert "Which answer would this person prefer?" in late.text
    assert ana.save(1, factuality_a="1").status_code == 200
    assert ana.finish(1, factuality_a="1").headers["location"].endswith("/item/1/2")
    ana.finish(1, 2)
    ana.post(1, 2, "correct", {})
    assert d.study.book.progress(1).done == 0
    ana.finish(1, 2, fit_b="2")
    (status,) = read_status(d.study.folder)
    assert (status.done, status.begun, status.corrected, status.after_rubric) == (1, 0, 2, 1)


def test_a_stranger_sees_nothing(desk: Any) -> None:
    d = desk(limit=1)
    other = desk(limit=1, folder="other")
    ana = d.person("ana")
    for client, base in ((d.client, other.person("ana").base), (other.client, ana.base), (d.client, "/a/x")):
        for path in ("", "/next", "/items", "/item/1/1", "/item/1/2", "/done"):
            found = client.get(base + path)
            assert found.status_code == 404
            assert "not one of this study" in found.text
        assert client.post(f"{base}/item/1/1/save", data={"form_token": ana.form_token}).status_code == 404
    for path in ("/", "/docs", "/openapi.json", "/static/study.db", "/static/..%2fstudy.json", f"{ana.base}/item/x/1"):
        assert d.client.get(path).status_code == 404
    for path in ("/item/2/1", "/item/0/1", "/item/1/3", "/item/99999999999999999999/1"):
        assert d.client.get(ana.base + path).status_code == 404


def test_forms_of_other_sites_or_annotators_are_refused(desk: Any) -> None:
    d = desk(names="ana,ben", limit=1)
    ana, ben = d.person("ana"), d.person("ben")
    url = f"{ana.base}/item/1/1/save"
    for token in ("", "guess", ben.form_token, "ä"):
        assert d.client.post(url, data={"form_token": token, "factuality_a": "1"}).status_code == 403
    assert d.client.post(url, data={"factuality_a": "1"}).status_code == 403
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert ana.post(1, 1, "save", {"factuality_a": "1"}, **headers).status_code == 403
    assert d.client.post(url, json={"form_token": ana.form_token, "factuality_a": "1"}).status_code == 415
    assert kept(d) == {}
    for headers in ({"Origin": "http://testserver"}, {"Origin": "null", "Sec-Fetch-Site": "same-origin"}, {}):
        assert ana.post(1, 1, "save", {"factuality_a": "1"}, **headers).status_code == 303
    assert d.client.get(url).status_code == 405


def test_too_much_is_refused(desk: Any) -> None:
    d = desk(limit=1)
    ana = d.person("ana")
    assert ana.save(1, comment="x" * LARGEST_BODY).status_code == 413
    many = {f"f{k}": "1" for k in range(100)}
    assert ana.save(1, **many).status_code in (400, 422)

    def pieces() -> Any:
        yield f"form_token={ana.form_token}&comment=".encode()
        for _ in range(100):
            yield b"x" * 1000

    form = {"content-type": "application/x-www-form-urlencoded"}
    assert d.client.post(f"{ana.base}/item/1/1/save", content=pieces(), headers=form).status_code == 413
    assert kept(d) == {}


def test_every_reply_is_guarded(desk: Any) -> None:
    d = desk(limit=1)
    ana = d.person("ana")
    replies = [ana.page(1), d.client.get("/a/x"), d.client.get("/static/annotate.js"), ana.save(1, factuality_a="9")]
    replies += [ana.finish(1), ana.save(1, comment="x" * LARGEST_BODY), ana.post(1, 1, "save", {}, Origin="http://e")]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert "no-store" in replies[0].headers["cache-control"]
    assert "immutable" in replies[2].headers["cache-control"]
    page = replies[0].text
    assert "<style" not in page
    assert not re.search(r"<script(?! src=\"/static/)", page)
    assert not re.search(r"(src|href|action)=\"https?:", page)


def test_text_of_others_stays_text(desk: Any, write: Any) -> None:
    aspects = [{"aspect": NASTY + "1", "evidence": NASTY + "2", "reason": NASTY + "3"}]
    turns = [{"role": r, "content": NASTY + r} for r in ("system", "user", "assistant", "user")]
    row = make_row(
        1, id=NASTY, question=None, messages=turns, chosen=NASTY + "c", rejected=NASTY + "r", rubric_aspects=aspects,
        profile=[{"text": NASTY, "prompt": NASTY, "rejected": NASTY}],
    )  # fmt: skip
    d = desk(write(row), names='<b onclick="x">ana</b>')
    ana = d.person('<b onclick="x">ana</b>')
    pages = [ana.page(1), ana.save(1, comment=NASTY) and ana.page(1)]
    ana.finish(1, comment=NASTY)
    pages += [ana.page(1), ana.page(1, 2), d.client.get(ana.base), d.client.get(f"{ana.base}/items")]
    for reply in pages:
        assert reply.status_code == 200
        assert "<img" not in reply.text
        assert 'onmouseover="' not in reply.text
        assert "<b onclick" not in reply.text
        assert "49" not in re.sub(r"v=[0-9a-f]+|/a/[\w-]+|value=\"[\w-]{32}\"", "", reply.text)
    assert html.unescape(pages[1].text).count(NASTY) >= 9


def test_items_are_listed_in_parts(desk: Any, write: Any) -> None:
    d = desk(write(*(make_row(k) for k in range(450))))
    ana = d.person("ana")
    page = d.client.get(f"{ana.base}/items").text
    assert page.count('class="new"') == 200
    assert f"{ana.base}/items?start=401" in page
    assert "/item/450/1" in d.client.get(f"{ana.base}/items?start=450").text
    assert d.client.get(f"{ana.base}/items?start=-5").status_code == 200
    assert d.client.get(f"{ana.base}/items?start=x").status_code == 404
    assert isinstance(ana, Person)
