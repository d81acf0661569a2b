"""Published figures: every one graded and sourced, and what is inferred follows from what is not."""

import pytest

from palate.data.published import ABOUT, GRADES, figures, published_rows
from palate.metrics.ranking import agreement, all_orders, spearman


def test_every_figure_has_a_source_and_a_known_grade() -> None:
    found = figures()
    assert all(f.grade in GRADES and f.about in ABOUT and f.source and f.what for f in found)
    assert len({f.what for f in found}) == len(found)
    assert all(0 < f.value <= 1 for f in found if f.about != "data" and f.what != "reward models ranked")


def test_the_domains_add_up_to_the_test_pairs() -> None:
    values = {f.what: f.value for f in figures() if f.about == "data"}
    assert values.pop("test pairs") == sum(values.values()) == 2830


def test_rows_beside_own_runs_are_those_on_agreement() -> None:
    values = {f.what: f.value for f in published_rows("agreement")}
    assert values["NDCG with best-of-N: Personalized RewardBench"] == 0.918
    assert all(f.n is None for f in published_rows("agreement"))  # not told; six is inferred and says so


@pytest.mark.parametrize("way", ["best-of-N", "PPO"])
def test_six_models_give_the_published_spearman_values(way: str) -> None:
    values = {f.what: f.value for f in published_rows("agreement")}
    told, n = values[f"Spearman with {way}: Personalized RewardBench"], int(values["reward models ranked"])
    order = range(n)
    reached = spearman(order, all_orders(n))
    close = all_orders(n)[abs(reached - told).argmin()]
    found = agreement("spearman", order, close)
    assert round(found.value or 0, 4) == told
    assert (found.p_greater or 0) > 0.2
