"""How the report page opens: a generated set in the shape of the real one × 10 runs, in headless Chromium.

    python benchmarks/report/run.py [--quick] [--json]

`open_seconds` is from the call to the page's load event, `first_item_seconds` from a click on an item to its texts.
"""

import argparse
import json
import platform
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from shape import FULL, WORK, generated

RUNS = 10
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def make(items: int) -> tuple[Path, float]:
    import palate

    runs, out = WORK / f"report-runs-{items}", WORK / f"report-{items}"
    models = [f"builtin/random?seed={k}" for k in range(RUNS)]
    palate.evaluate(str(generated(items)), models, "history", runs)
    shutil.rmtree(out, ignore_errors=True)
    start = time.perf_counter()
    page = palate.write_report([runs], out).page
    return page, time.perf_counter() - start


def browse(page_file: Path) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(page_file.as_uri())
        opened = time.perf_counter()
        page.locator("[data-list] button").nth(5).click()
        page.locator("[data-item] .box").first.wait_for()
        shown = time.perf_counter()
        page.select_option("[data-f=outcome]", "w")
        page.locator("[data-f=count]").wait_for()
        filtered = time.perf_counter()
        browser.close()
    return {
        "open_seconds": round(opened - start, 2),
        "first_item_seconds": round(shown - opened, 2),
        "filter_seconds": round(filtered - shown, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the items")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    items = FULL // 10 if args.quick else FULL
    page, seconds = make(items)
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "items": items,
        "runs": RUNS,
        "write_seconds": round(seconds, 1),
        "page_mb": round(page.stat().st_size / 1e6, 1),
        **browse(page),
    }
    print(json.dumps(result, indent=2) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
