"""Who gets what: overlap, even loads, and nobody loses an item when others come."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from palate.annotate.assign import first_seat, in_order, share_out

ITEMS = st.integers(1, 60).map(lambda n: [f"i{k}" for k in range(n)])
NAMES = st.integers(1, 9).map(lambda n: [f"w{k}" for k in range(n)])


@given(ITEMS, NAMES, st.integers(1, 5), st.integers(0, 3))
def test_every_item_has_its_overlap_and_loads_are_even(
    items: list[str], names: list[str], overlap: int, s: int
) -> None:
    got = share_out(items, overlap, s, {}, names, {})
    assert set(got) == set(names)
    assert all(len(set(theirs)) == len(theirs) for theirs in got.values())
    counts = Counter(i for theirs in got.values() for i in theirs)
    assert all(counts[i] == min(overlap, len(names)) for i in items)
    loads = [len(theirs) for theirs in got.values()]
    assert max(loads) - min(loads) <= 1


@given(ITEMS, NAMES, st.integers(1, 4), st.integers(1, 5))
def test_who_comes_later_fills_gaps_first_and_then_takes_a_fair_share(
    items: list[str], names: list[str], more: int, overlap: int
) -> None:
    held = share_out(items, overlap, 0, {}, names, {})
    later = [f"n{k}" for k in range(more)]
    got = share_out(items, overlap, 0, held, later, {})
    assert set(got) == set(later)
    counts = Counter(i for theirs in (held | got).values() for i in theirs)
    assert all(counts[i] >= min(overlap, len(names) + more) for i in items)
    fair = min(len(items), len(items) * overlap // (len(names) + more))
    assert all(len(set(theirs)) == len(theirs) >= fair for theirs in got.values())


def test_who_comes_later_gets_what_fewest_have_finished() -> None:
    items = [f"i{k}" for k in range(12)]
    held = share_out(items, 1, 0, {}, ["ana", "ben"], {})
    finished = dict.fromkeys(held["ana"], 1)
    assert set(share_out(items, 1, 0, held, ["cy"], finished)["cy"]) < set(held["ben"])


def test_seats_are_random_but_fixed() -> None:
    seats = [first_seat(0, f"i{k}", "ana") for k in range(2000)]
    assert 900 < seats.count("chosen") < 1100
    assert seats == [first_seat(0, f"i{k}", "ana") for k in range(2000)]
    assert seats != [first_seat(0, f"i{k}", "ben") for k in range(2000)]
    assert seats != [first_seat(1, f"i{k}", "ana") for k in range(2000)]


def test_attention_items_are_spread_evenly() -> None:
    found = in_order(0, "ana", [f"i{k}" for k in range(40)], ["x", "y"])
    assert sorted(found) == sorted([*(f"i{k}" for k in range(40)), "x", "y"])
    first, second = sorted(found.index(name) for name in ("x", "y"))
    assert first < 21 < second
    assert found != in_order(0, "ben", [f"i{k}" for k in range(40)], ["x", "y"])
    assert in_order(0, "ana", [], ["x"]) == ["x"]
