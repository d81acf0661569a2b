"""A judge that guesses: how often the intervals hold the truth, which is known here.

The claim is about 20 users and more, with one item each or several: 1,500 simulations of each of ten designs from 20 to
120 users gave shares from 0.946 to 0.967. A share of 400 simulations has a standard error of 1.1 points, too much to
tell 93 from 95; so these tests take four times as many.
"""

import numpy as np
import pytest

from palate.metrics import CREDIT, difference, mean_interval

SIMULATIONS = 1600
OUTCOMES = ("correct", "wrong", "tie")
BOTH_ORDERS = (0.25, 0.25, 0.5)  # a guess in each order: half of the pairs flip and are ties
ONE_ORDER = (0.5, 0.5, 0.0)


@pytest.mark.parametrize(
    ("users", "items", "chances"),
    [(20, 3, BOTH_ORDERS), (20, 3, ONE_ORDER), (40, 1, BOTH_ORDERS)],
    ids=["both orders", "one order", "one item a user"],
)
def test_intervals_hold_the_truth_as_often_as_they_say(users: int, items: int, chances: tuple[float, ...]) -> None:
    rng = np.random.default_rng([20, users, items, int(chances[2] * 4)])
    owners = [k // items for k in range(users * items)]
    unit = "users" if items > 1 else "items"
    held = {"accuracy": 0, "lift": 0, "swap drop": 0}
    for _ in range(SIMULATIONS):
        own, none, other = (
            [OUTCOMES[k] for k in rng.choice(3, size=len(owners), p=chances)] for _ in ("own", "none", "other")
        )
        interval = mean_interval(own, owners).interval
        assert interval is not None
        held["accuracy"] += interval.low <= 0.5 <= interval.high
        for name, second in (("lift", none), ("swap drop", other)):
            found = difference([CREDIT[o] for o in own], [CREDIT[o] for o in second], owners, unit).ci95
            assert found is not None
            held[name] += found[0] <= 0 <= found[1]
    shares = {name: count / SIMULATIONS for name, count in held.items()}
    assert all(0.93 <= share <= 0.97 for share in shares.values()), shares
