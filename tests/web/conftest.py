"""A real browser."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Headless Chromium of the system; without one the tests fail under CI and are skipped elsewhere."""
    path = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium on this machine")
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[[Path, int, str], Any]]:
    """Open a file at a width and in a colour scheme; it must say nothing and ask for nothing beyond itself."""
    pages: list[Any] = []

    def open_(path: Path, width: int, scheme: str) -> Any:
        page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        pages.append(page)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if not request.url.startswith("file:") else None)
        page.goto(path.as_uri())
        assert said == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        return page

    yield open_
    for page in pages:
        page.close()
