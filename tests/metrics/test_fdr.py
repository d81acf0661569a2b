"""Adjusted p-values against scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from palate.metrics import benjamini_hochberg


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_adjusted_values_are_those_of_scipy(values: list[float]) -> None:
    assert benjamini_hochberg(values) == pytest.approx(list(false_discovery_control(values, method="bh")))


def test_a_hand_computed_example_keeps_its_order() -> None:
    assert benjamini_hochberg([0.04, 0.01, 0.03, 0.5]) == pytest.approx([0.16 / 3, 0.04, 0.16 / 3, 0.5])
    assert benjamini_hochberg([]) == []


def test_what_is_no_p_value_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        benjamini_hochberg([1.2])
