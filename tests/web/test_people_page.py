"""The page of a study in a real browser: on a desktop and on a phone, and with names that want to be code."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palate.annotate.report import write_people

SIZES = {"desktop": (1200, 900, "light"), "phone": (390, 844, "dark")}
NASTY = '<img src=x onerror=alert(1)>"x" onmouseover="alert(2)'


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    rows = []
    for k in range(20):
        for j, who in enumerate(("ana", "ben", NASTY)):
            good = dict.fromkeys(("chosen", "rejected"), 4 + (k + j) % 2)
            common = {"item_id": f"q{k}", "annotator": who, "seats": ["chosen", "rejected"]}
            general = dict.fromkeys(("factuality", "relevance", "helpfulness"), good | {"rejected": 5 - k % 2})
            preference = "none" if k == 3 else "rejected" if k == j else "chosen"
            rows.append(common | general | {"step": 1, "preference": preference})
            rows.append(common | {"step": 2, "fit": {"chosen": 5 - k % 2, "rejected": 1 + k % 3}})
    check = {"item_id": NASTY, "seats": ["chosen", "rejected"], "step": 1, "attention": True}
    rows.append(check | {"annotator": NASTY, "preference": "none", "passed": False})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_people([folder / "rows.jsonl"], folder / "out").page


@pytest.fixture(params=SIZES)
def page(request: pytest.FixtureRequest, chromium: Any, page_file: Path) -> Iterator[Any]:
    width, height, scheme = SIZES[request.param]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page, complaints = context.new_page(), []
    page.on("console", lambda m: complaints.append(m.text))
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("dialog", lambda d: complaints.append(d.message))
    page.goto(page_file.as_uri())
    yield page
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{request.node.name}.png", full_page=True)
    context.close()
    assert complaints == []


def test_the_page_tells_verdicts_and_hides_no_name(page: Any) -> None:
    text = page.locator("main").inner_text()
    assert "factuality: " in text
    assert "1 of 1 failed" in text
    assert page.locator("bdi", has_text="onmouseover").count() >= 2
    assert page.locator("main img").count() == 0
    assert page.locator("figure svg").count() == 2


def test_nothing_sticks_out_at_the_side(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_pairs_unfold(page: Any) -> None:
    pairs = page.locator("details").first
    assert not pairs.locator("table").is_visible()
    pairs.locator("summary").click()
    assert pairs.locator("tbody tr").count() == 3
    assert pairs.locator("table").is_visible()
