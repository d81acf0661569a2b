"""One form of numbers for pages and command line, on a floor that loads nothing."""

import subprocess
import sys

from palate.pages.numbers import interval, percent, points


def test_numbers_as_people_read_them() -> None:
    assert (percent(0.7194), percent(0.5, 0), percent(None)) == ("71.9 %", "50 %", "–")
    assert (points(0.032), points(-0.01), points(None)) == ("+3.2", "\u22121.0", "–")
    assert interval((0.676, 0.765)) == "67.6 – 76.5"
    assert interval((-0.01, 0.042), signed=True) == "\u22121.0 … +4.2"
    assert interval(None) == "–"


def test_numbers_load_nothing_heavy() -> None:
    code = "import sys, palate.pages.numbers; print({'jinja2', 'matplotlib', 'numpy', 'pydantic'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
