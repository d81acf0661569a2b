"""The page of a best-of-N curve in a real browser: wide and light, narrow and dark, nothing foreign that runs."""

from pathlib import Path
from typing import Any

import pytest

from bon.world import rows, world
from llm.stub import Stub
from palate.bon import Request, best_of_n

HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose data, domain and policy have names that would run if they were not escaped."""
    import json

    folder = tmp_path_factory.mktemp("bon")
    data = folder / "data.jsonl"
    made = [row | {"domain": (HOSTILE, "Travel")[k % 2]} for k, row in enumerate(rows(12))]
    data.write_text("".join(json.dumps(row) + "\n" for row in made))
    models, views = ["builtin/length", "builtin/lexical"], ["question", "history"]
    with Stub(world) as server:
        options: dict[str, Any] = {"policy": f"llm/{HOSTILE.replace('?', '')}", "grader": "llm/g", "n": 4}
        found = best_of_n(Request(str(data), models, views, folder / "out", base_url=server.url, **options))
    return found.folder / "bon.html"


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (390, "dark")])
def test_it_opens_and_fits(opened: Any, page_path: Path, width: int, scheme: str) -> None:
    page = opened(page_path, width, scheme)
    assert page.title() == "What your reward models choose"
    assert page.locator("figure svg").count() == 1
    legend = page.locator("figure svg text", has_text="builtin/length · history (probe)").bounding_box(timeout=5000)
    assert legend is not None
    assert 0 < legend["x"] < legend["x"] + legend["width"] < width, "which line is which is seen without scrolling"
    assert page.locator("img").count() == 0
    heading = page.locator("h2").all_inner_texts()
    assert heading[:3] == ["Best of 4", "The curve", "By domain, best of 4"]
    assert page.locator("table").first.locator("tbody tr").count() == 4
