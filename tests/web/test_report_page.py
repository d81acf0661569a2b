"""The report in a real browser: table, filters, item browser, links, keyboard; on a desktop and on a phone."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import palate
from palate.store import digest_of
from rows import make_row

VIEWS = ["question", "history?user=none", "swapped", "history", "oracle"]
SIZES = {"desktop": (1200, 900), "phone": (390, 844)}
NASTY = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    palate.evaluate("sample", ["builtin/length", "builtin/style", "builtin/lexical"], VIEWS, folder / "runs")
    return palate.write_report([folder / "runs"], folder / "out").page


@pytest.fixture(params=SIZES)
def page(request: pytest.FixtureRequest, chromium: Any, page_file: Path) -> Iterator[Any]:
    width, height = SIZES[request.param]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme="dark")
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


def buttons(page: Any) -> Any:
    return page.locator("[data-list] button[data-k]")


def test_the_table_tells_the_figures(page: Any) -> None:
    row = page.locator("tr", has_text="builtin/lexical").first
    assert "61.7 %" in row.inner_text()
    assert page.locator("tr.probe").first.is_visible()
    assert page.locator(".grid figure svg").count() == 3


def test_nothing_sticks_out_at_the_side(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_filters_narrow_the_list(page: Any) -> None:
    assert buttons(page).count() == 60
    page.select_option("[data-f=run]", label="builtin/lexical · history")
    page.select_option("[data-f=outcome]", "w")
    assert buttons(page).count() == 23
    page.select_option("[data-f=domain]", "Society_and_Culture")
    count = buttons(page).count()
    assert 0 < count < 23
    assert page.locator("[data-f=count]").inner_text() == f"{count} of 60 items"
    page.fill("[data-f=search]", "nothing like this")
    assert buttons(page).count() == 0


def test_an_item_is_shown_as_the_model_saw_it(page: Any) -> None:
    page.select_option("[data-f=run]", label="builtin/lexical · history")
    page.locator("[data-list] button", has_text="life-04a").click()
    item = page.locator("[data-item]")
    item.get_by_text("As shown to builtin/lexical under history").wait_for()
    shown = item.locator(".shown").inner_text()
    assert "[1]" in shown
    assert "[10]" in shown
    assert item.locator("tbody tr").count() == 15
    page.select_option("[data-f=run]", label="builtin/lexical · oracle")
    item.get_by_text("under oracle").wait_for()
    assert "What this person wants" in item.locator(".shown").inner_text()


def test_a_link_leads_to_one_item_and_its_twin(page: Any, page_file: Path) -> None:
    page.locator("[data-list] button", has_text="art-02b").click()
    page.locator("[data-item] h3", has_text="art-02b").wait_for()
    assert page.url.endswith("#item-0-art-02b")
    page.goto(f"{page_file.as_uri()}#item-0-art-03a")
    page.reload()
    page.locator("[data-item] h3", has_text="art-03a").wait_for()
    page.locator("[data-item] button", has_text="art-03b").click()
    page.locator("[data-item] h3", has_text="art-03b").wait_for()


def test_the_keyboard_is_enough(page: Any) -> None:
    buttons(page).first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("[data-item] h3", has_text="art-01b").wait_for()


def test_text_of_others_stays_text(chromium: Any, tmp_path: Path, write: Any) -> None:
    rows = [
        make_row(k, question=f"{NASTY} \u05d0 😀 {k}", chosen=NASTY + " long" * 2500, id=f'{NASTY}"{k}', domain=NASTY)
        for k in range(3)
    ]
    palate.evaluate(str(write(*rows)), "builtin/length", "history", tmp_path / "runs")
    made = palate.write_report([tmp_path / "runs"], tmp_path / "out")
    page, said = chromium.new_page(), []
    page.on("dialog", lambda d: said.append(d.message))
    page.on("console", lambda m: said.append(m.text))
    page.goto(made.page.as_uri())
    buttons(page).first.click()
    page.locator("[data-item] .box").first.wait_for()
    assert NASTY in page.locator("[data-item]").inner_text()
    assert page.locator("img").count() == 0
    page.close()
    assert said == []


NAMES = ("<img src=x onerror=alert(1)>" * 400, "\u05d0\u05d1\u05d2 \U0001f600", "n" * 10_000, "$\\frac{$")


@pytest.mark.parametrize("size", SIZES)
def test_names_of_any_kind_fit(size: str, chromium: Any, tmp_path: Path, write: Any) -> None:
    rows = [make_row(k, user_id=f"u{k // 2}", domain="d" * 10_000 if k % 2 else "<b>\u05d0") for k in range(8)]
    data = str(write(*rows, name="x" * 200 + ".jsonl"))
    for k, name in enumerate(NAMES):
        for run in palate.evaluate(data, f"builtin/random?seed={k}", VIEWS, tmp_path / "runs"):
            record = json.loads((run.folder / "run.json").read_text())
            record["config"]["model"] |= {"id": name, "probe": k % 2 == 0}
            record["digest"] = digest_of(record["config"])
            (run.folder / "run.json").write_text(json.dumps(record))
    made = palate.write_report([tmp_path / "runs"], tmp_path / "out")
    width, height = SIZES[size]
    page, said = chromium.new_page(viewport={"width": width, "height": height}), []
    page.on("dialog", lambda d: said.append(d.message))
    page.on("console", lambda m: said.append(m.text))
    page.goto(made.page.as_uri())
    buttons(page).first.click()
    page.locator("[data-item] .box").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.documentElement.scrollHeight") < 20_000
    assert page.locator("img").count() == 0
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/names-{size}.png", full_page=True)
    page.close()
    assert said == []


def test_a_script_that_got_in_does_not_run(chromium: Any, page_file: Path, tmp_path: Path) -> None:
    whole = page_file.read_text()
    (tmp_path / "page.html").write_text(whole.replace("<main", "<script>document.title = 'in'</script><main", 1))
    page, said = chromium.new_page(), []
    page.on("console", lambda m: said.append(m.text))
    page.goto((tmp_path / "page.html").as_uri())
    assert page.title() != "in"
    assert any("Content Security Policy" in text for text in said)
    assert buttons(page).count() == 60
    page.close()


def test_what_was_not_asked_is_told(chromium: Any, tmp_path: Path, write: Any) -> None:
    data = write(make_row(1), make_row(2, domain="alone"), make_row(3))
    palate.evaluate(str(data), "builtin/lexical", "swapped", tmp_path / "runs")
    made = palate.write_report([tmp_path / "runs"], tmp_path / "out")
    page = chromium.new_page()
    page.goto(made.page.as_uri())
    page.locator("[data-list] button", has_text="q2").click()
    told = page.locator("[data-untold]").inner_text()
    assert "not asked" in told
    assert "no other user of domain 'alone'" in told
    assert "no context" in page.locator("[data-item] tbody").inner_text()
    page.close()


def test_run_details_are_read_on_a_phone(chromium: Any, page_file: Path) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto(page_file.as_uri())
    page.locator("summary", has_text="runs: verdicts").click()
    cells = page.locator("table.stack tbody tr").first.locator("td:visible")
    assert all(cells.nth(k).bounding_box()["x"] + cells.nth(k).bounding_box()["width"] <= 390 for k in range(4))
    assert page.locator("table.stack thead").first.is_hidden()
    page.close()
