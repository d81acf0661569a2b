"""A study in a real browser: three annotators by keyboard, a server killed in the middle, and every answer counted."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from annotators import free_port, served, wait_until
from palate.annotate import export_rows
from rows import make_row

NAMES = ("ana", "ben", "cy")
ITEMS = 10
SIZES = {"desktop": (1366, 850), "phone": (390, 844)}
CRITERIA = ("factuality", "relevance", "helpfulness")


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open pages; whatever a page complains of fails the test, unless it is about a server that is gone."""
    contexts, complaints = [], []

    def page(link: str, size: str = "desktop", **how: Any) -> Any:
        width, height = SIZES[size]
        context = chromium.new_context(viewport={"width": width, "height": height}, **how)
        contexts.append(context)
        found = context.new_page()
        found.on("console", lambda m: complaints.append(m.text))
        found.on("pageerror", lambda e: complaints.append(str(e)))
        found.on("dialog", lambda d: complaints.append(d.message))
        found.goto(link)
        return found

    yield page
    for context in contexts:
        context.close()
    assert [c for c in complaints if "ERR_CONNECTION" not in c] == []


def picture(page: Any, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def ratings(who: int, number: int) -> str:
    return "".join(str(1 + (who + number + k) % 5) for k in range(6))


def preference(who: int, number: int) -> str:
    return "anb"[(who + number) % 3]


def saved(page: Any) -> None:
    page.locator("[data-saved]", has_text=re.compile("^Saved$")).wait_for()


def step_one(page: Any, who: int, number: int) -> None:
    page.wait_for_url(f"**/item/{number}/1")
    for digit in ratings(who, number):
        page.keyboard.press(digit)
    page.keyboard.press(preference(who, number))
    if number == 3:
        page.get_by_label("Comment").fill(f"by {NAMES[who]}")
    saved(page)


def step_two(page: Any, who: int, number: int) -> None:
    page.wait_for_url(f"**/item/{number}/2")
    for digit in ratings(who, number)[:2]:
        page.keyboard.press(digit)
    page.keyboard.press("Enter")


def work(page: Any, who: int, first: int, last: int) -> None:
    for number in range(first, last + 1):
        step_one(page, who, number)
        page.keyboard.press("Control+Enter" if number == 3 else "Enter")
        step_two(page, who, number)


def test_three_annotators_ten_items_and_a_killed_server(opened: Any, tmp_path: Path) -> None:
    port = str(free_port())
    make = ("--data", "sample", "--limit", str(ITEMS), "--annotators", ",".join(NAMES), "--out", "study")
    with served(*make, "--port", port, cwd=tmp_path) as (process, links):
        pages = [opened(links[name]) for name in NAMES]
        for page in pages:
            page.get_by_role("link", name="Start").click()
        for who, page in enumerate(pages):
            work(page, who, 1, 4)
        step_one(pages[0], 0, 5)
        pages[1].wait_for_url("**/item/5/1")
        for digit in ratings(1, 5)[:3]:
            pages[1].keyboard.press(digit)
        saved(pages[1])
        process.kill()
        process.wait()
    for digit in ratings(1, 5)[3:]:
        pages[1].keyboard.press(digit)  # while nobody is there to take them
    pages[1].keyboard.press(preference(1, 5))
    pages[1].keyboard.press("Enter")
    pages[1].locator("[data-saved]", has_text="Trying again").wait_for()
    pages[2].context.close()
    with served("--out", "study", "--port", port, cwd=tmp_path) as (_, again):
        assert again == links
        pages[1].wait_for_url("**/item/5/2", timeout=60_000)
        pages[0].keyboard.press("Enter")
        step_two(pages[0], 0, 5)
        step_two(pages[1], 1, 5)
        pages[2] = opened(links["cy"], "phone")
        pages[2].get_by_role("link", name="Go on").click()
        work(pages[2], 2, 5, ITEMS)
        work(pages[0], 0, 6, ITEMS)
        work(pages[1], 1, 6, ITEMS)
        for page in pages:
            page.get_by_text("All done, thank you").wait_for()
        check_rows(tmp_path / "study")


def check_rows(study: Path) -> None:
    made = export_rows(study)
    rows = [json.loads(line) for line in (study / "annotations.jsonl").read_text().splitlines()]
    assert (made.rows, made.unfinished, made.unbegun) == (3 * ITEMS * 2, 0, 0)
    assert len({(r["item_id"], r["annotator"], r["step"]) for r in rows}) == len(rows) == 60
    for who, name in enumerate(NAMES):
        for step in (1, 2):
            mine = [r for r in rows if (r["annotator"], r["step"]) == (name, step)]
            for number, row in enumerate(mine, 1):
                a, b = row["seats"]
                digits = [int(d) for d in ratings(who, number)]
                if step == 2:
                    assert row["fit"] == {a: digits[0], b: digits[1]}
                    continue
                assert [row[c][side] for side in (a, b) for c in CRITERIA] == digits
                assert row["preference"] == {"a": a, "b": b, "n": "none"}[preference(who, number)]
                assert row["comment"] == (f"by {name}" if number == 3 else None)


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("study")
    names = "desktop-light,desktop-dark,phone-light,phone-dark,mouse,bare,back"
    args = ("--data", "sample", "--limit", "12", "--attention", "auto:2", "--annotators", names, "--port", "0")
    with served(*args, "--overlap", "7", cwd=folder) as (_, found):
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_sticks_out_at_any_size(size: str, scheme: str, opened: Any, links: dict[str, str]) -> None:
    page = opened(links[f"{size}-{scheme}"], size, color_scheme=scheme)
    link = page.url

    def look(name: str) -> None:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        picture(page, f"annotate-{size}-{scheme}-{name}")

    look("instructions")
    page.goto(f"{link}/next")
    boxes = [page.get_by_role("region", name=f"Answer {s}").bounding_box() for s in "AB"]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (size == "desktop")
    step_one(page, 0, 1)
    look("step-one")
    page.keyboard.press("Enter")
    page.wait_for_url("**/item/1/2")
    look("step-two")
    page.goto(f"{link}/item/1/1")
    look("finished")
    page.goto(f"{link}/items")
    look("items")


def test_by_mouse_what_is_missing_is_shown(opened: Any, links: dict[str, str]) -> None:
    page = opened(f"{links['mouse']}/item/1/1")
    answer = page.get_by_role("region", name="Answer B")
    answer.get_by_role("group", name="Relevance").get_by_role("radio", name="4", exact=True).click()
    saved(page)
    page.get_by_role("button", name="Finish step one").click()
    page.locator("[data-saved]", has_text="6 still missing").wait_for()
    assert page.locator(".rate.gap").count() == 6
    picture(page, "annotate-gaps")
    page.reload()
    assert answer.get_by_role("radio", name="4", exact=True).nth(1).is_checked()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_arrows_and_tab_reach_everything(opened: Any, links: dict[str, str]) -> None:
    page = opened(f"{links['mouse']}/item/2/1")
    page.locator("input[name=factuality_a]").first.focus()
    page.keyboard.press("Space")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "relevance_a"
    page.keyboard.press("Space")
    saved(page)
    page.reload()
    assert page.locator("input:checked").evaluate_all("all => all.map((i) => i.name + i.value)") == [
        "factuality_a3",
        "relevance_a1",
    ]


def test_letters_in_a_comment_are_letters_and_a_closed_page_keeps_them(opened: Any, links: dict[str, str]) -> None:
    page = opened(f"{links['mouse']}/item/3/1")
    page.get_by_label("Comment").press_sequentially("banana 12345")
    page.goto("about:blank")
    page = opened(f"{links['mouse']}/item/3/1")
    wait_until(lambda: page.reload() and page.get_by_label("Comment").input_value() == "banana 12345")
    assert page.locator("input:checked").count() == 0


def test_back_and_correct(opened: Any, links: dict[str, str]) -> None:
    page = opened(f"{links['back']}/next")
    work(page, 1, 1, 1)
    page.wait_for_url("**/item/2/1")
    page.get_by_role("link", name="← Previous").click()
    assert page.locator("input[name=factuality_a]").first.is_disabled()
    page.get_by_role("button", name="Correct these answers").click()
    page.get_by_text("You can change your answers now").wait_for()
    page.keyboard.press("5")
    page.locator("input[name=preference]").first.focus()
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.wait_for_url("**/item/2/1")
    page.go_back()
    assert page.locator("input[name=preference][value=b]").is_checked()


def test_it_works_without_javascript(opened: Any, links: dict[str, str]) -> None:
    page = opened(f"{links['bare']}/next", java_script_enabled=False)
    for name in CRITERIA:
        page.locator(f"label:has(input[name={name}_a][value='4'])").click()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    for name in CRITERIA:
        assert page.locator(f"input[name={name}_a][value='4']").is_checked()
        page.locator(f"label:has(input[name={name}_b][value='2'])").click()
    page.locator("label:has(input[name=preference][value=none])").click()
    page.get_by_role("button", name="Finish step one").click()
    page.wait_for_url("**/item/1/2")
    assert page.get_by_text("What this person wants from the answer").is_visible()


def test_texts_of_others_stay_text(opened: Any, tmp_path: Path, write: Any) -> None:
    nasty = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    row = make_row(
        question=nasty + " \u05d0", chosen=nasty + "n" * 3000, rejected="word " * 4000, profile=[{"text": nasty}] * 12,
        rubric_aspects=[{"aspect": nasty, "evidence": nasty, "reason": "x" * 5000}],
    )  # fmt: skip
    data = write(row)
    with served("--data", data, "--annotators", f"{nasty[:30]}", "--port", "0", cwd=tmp_path) as (_, found):
        for size in SIZES:
            page = opened(f"{next(iter(found.values()))}/next", size)
            if size == "desktop":
                step_one(page, 0, 1)
                page.keyboard.press("Enter")
            page.wait_for_url("**/item/1/2")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.locator("img").count() == 0
            assert page.get_by_text(nasty).count() >= 12
            picture(page, f"annotate-nasty-{size}")
