"""The page of a comparison in a real browser: wide and light, narrow and dark, names that would run if they could."""

import csv
from pathlib import Path
from typing import Any

import pytest

from palate.correlate import correlate, power_of, write_correlation

HOSTILE = '<img src=x onerror="document.title=1">'
LONG = "an-organisation-with-a-long-name/Reward-Model-of-many-words-and-27-billion-parameters-v2"


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("correlate")
    models = [HOSTILE, LONG, "c", "d", "e", "f"]
    orders = {"one": (1, 2, 3, 4, 5, 6), "two": (2, 1, 3, 4, 6, 5), "down": (1, 3, 2, 4, 5, 6)}
    for name, values in orders.items():
        with (folder / f"{name}.csv").open("w", newline="") as handle:
            table = csv.writer(handle)
            table.writerow(["model", "score", "low", "high"])
            table.writerows([m, v / 10, v / 10 - 0.05, v / 10 + 0.05] for m, v in zip(models, values, strict=True))
            table.writerow([f"only in {name}", 0.9, "", ""])
    found = correlate([str(folder / "one.csv"), str(folder / "two.csv")], [str(folder / "down.csv")])
    return write_correlation(found, folder / "out", power_of(found, 0.8)).page


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (390, "dark")])
def test_it_opens_and_fits(opened: Any, page_path: Path, width: int, scheme: str) -> None:
    page = opened(page_path, width, scheme)
    assert page.title() == "Does the benchmark predict?"
    assert page.locator("figure svg").count() == 4  # two scatters, the flow of ranks, power
    assert page.locator("img").count() == 0
    headings = page.locator("h2").all_inner_texts()
    assert headings == [
        "Agreement",
        "Which benchmark agrees better?",
        "Models",
        "How many models would it take?",
        "Published figures, not ours",
        "Missing and left out",
        "Notes",
    ]
    assert page.locator("#published ~ table").first.inner_text().count("arXiv 2604.07343") == 6
