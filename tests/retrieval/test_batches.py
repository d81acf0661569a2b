"""Texts that are encoded together: each once, of like length, within the bounds."""

from hypothesis import given
from hypothesis import strategies as st

from palate.retrieval.dense import batches_of


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 9), st.integers(1, 700))
def test_batches_hold_each_place_once_within_both_bounds(sizes: list[int], most: int, tokens: int) -> None:
    found = batches_of(sizes, most, tokens)
    places = [place for batch in found for place in batch]
    assert sorted(places) == list(range(len(sizes)))
    assert [sizes[p] for p in places] == sorted(sizes)
    for batch in found:
        widest = max(sizes[p] for p in batch)
        assert len(batch) <= most
        assert len(batch) == 1 or len(batch) * widest <= tokens


def test_a_batch_is_filled_before_the_next_begins() -> None:
    assert batches_of([5, 1, 5, 1, 5], 3, 100) == [[1, 3, 0], [2, 4]]
