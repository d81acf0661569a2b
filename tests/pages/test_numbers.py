"""One form of numbers for pages and command line, on a floor that loads nothing."""

import subprocess
import sys

from palate.pages.numbers import chance, interval, percent, plain, points, span


def test_numbers_as_people_read_them() -> None:
    assert (percent(0.7194), percent(0.5, 0), percent(None)) == ("71.9 %", "50 %", "–")
    assert (points(0.032), points(-0.01), points(None)) == ("+3.2", "\u22121.0", "–")
    assert interval((0.676, 0.765)) == "67.6 – 76.5"
    assert interval((-0.01, 0.042), signed=True) == "\u22121.0 … +4.2"
    assert interval(None) == "–"


def test_numbers_load_nothing_heavy() -> None:
    code = "import sys, palate.pages.numbers; print({'jinja2', 'matplotlib', 'numpy', 'pydantic'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_plain_numbers_have_a_true_minus_and_a_dash_for_nothing() -> None:
    assert plain(0.7119, 3) == "0.712"
    assert plain(-0.5, signed=True) == "−0.50"
    assert plain(0.5, signed=True) == "+0.50"
    assert span((-0.1, 0.25)) == "−0.10 … 0.25"
    assert plain(None) == span(None) == chance(None) == "–"


def test_a_small_p_is_no_zero() -> None:
    assert chance(0.0004) == "< 0.001"
    assert chance(0.0312) == "0.031"
