"""The audit's page in a real browser: hostile texts stay text, nothing sticks out, flagged checks are open."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import palate
from artefacts import clean_rows, key_in_history, longer
from palate.audit import audit, write_audit

SIZES = {"desktop": (1200, 900), "phone": (390, 844)}
NASTY = '</td><img src=x onerror=alert(1)></script><script>alert(2)</script>" onmouseover="alert(3)'


def hostile(rows: list[dict[str, Any]]) -> None:
    """Put a text that would run, and names without an end, wherever a user's text can reach the page."""
    rows[200] |= {"id": f"{NASTY}-{'i' * 5000}", "domain": f"d{NASTY}", "user_id": NASTY * 50}
    rows[200]["question"] = rows[200]["profile"][0]["text"] = f"{NASTY} א 😀 what is it that you want to know now?"
    rows[200]["chosen"] = NASTY + " w" * 3000
    rows[201]["chosen"], rows[201]["rejected"] = NASTY, f"{NASTY} too"
    rows[202]["rubric_aspects"][0]["aspect"] = f"{NASTY} img src x onerror alert"
    rows[202]["profile"][1]["text"] += " " + NASTY
    for row in rows[210:260]:
        row["domain"] = "<b>" + "d" * 3000


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("size", SIZES)
def test_text_of_others_stays_text_and_fits(
    size: str, scheme: str, chromium: Any, write: Callable[..., Path], tmp_path: Path
) -> None:
    rows = clean_rows(0)
    for change in (longer, key_in_history, hostile):
        change(rows)
    data = write(*rows, name="n" * 200 + ".jsonl")
    palate.evaluate(data, "builtin/length", ["question", "history"], tmp_path / "runs")
    found = audit(data, tmp_path / "runs")
    assert {"length", "near_equal", "leak_history", "repeated_question", "domains"} <= {c.id for c in found.flagged}
    made = write_audit(found, tmp_path / "out")
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page, said = context.new_page(), []
    page.on("dialog", lambda d: said.append(d.message))
    page.on("console", lambda m: said.append(m.text))
    page.on("request", lambda r: said.append(r.url) if not r.url.startswith("file:") else None)
    page.goto(made.page.as_uri())
    assert page.locator("#repeated_question").is_visible()
    assert NASTY[:40] in page.locator("#repeated_question").inner_text() + page.locator("#length").inner_text()
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.documentElement.scrollHeight") < 25_000
    assert page.locator("img, script, b:not(li b):not(.card b)").count() == 0
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/audit-{size}-{scheme}.png", full_page=True)
    context.close()
    assert said == []


def test_every_check_leads_to_its_details(chromium: Any, tmp_path: Path) -> None:
    found = audit("sample")
    made = write_audit(found, tmp_path)
    page = chromium.new_page()
    page.goto(made.page.as_uri())
    links = page.locator(".overview a")
    assert links.count() == len(found.checks)
    assert [page.locator(a.get_attribute("href")).count() for a in links.all()] == [1] * len(found.checks)
    assert page.locator(".card").first.inner_text().split() == ["ok", "verdict"]
    page.locator("#inferability summary").click()
    assert "first of all" in page.locator("#inferability").inner_text()
    page.close()


def test_a_script_that_got_in_does_not_run(chromium: Any, tmp_path: Path) -> None:
    made = write_audit(audit("sample"), tmp_path)
    whole = made.page.read_text()
    (tmp_path / "page.html").write_text(whole.replace("<main", "<script>document.title = 'in'</script><main", 1))
    page, said = chromium.new_page(), []
    page.on("console", lambda m: said.append(m.text))
    page.goto((tmp_path / "page.html").as_uri())
    assert page.title() != "in"
    assert any("Content Security Policy" in text for text in said)
    page.close()
