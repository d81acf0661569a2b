"""Rank statistics against scipy, scikit-learn, brute force and hand; permutation tests; intervals that hold."""

import re
from itertools import pairwise, permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import ndcg_score

from palate.correlate.words import TITLES
from palate.metrics.latent import band, latent_interval, noise_share, power, share_of_noise
from palate.metrics.ranking import (
    MEASURES,
    agreement,
    all_orders,
    average_ranks,
    kendall,
    ndcg,
    null_values,
    options_of,
    random_orders,
    rbo,
    spearman,
    weighted_tau,
)
from palate.metrics.swap import swap_test
from places import ROOT

TOP = [5.0, 4.0, 3.0, 2.0, 1.0]
SIX = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


def lists(count: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 13, count)
    return [(rng.integers(0, 7, n).astype(float), rng.integers(0, 7, n).astype(float)) for n in sizes]


@pytest.mark.filterwarnings("ignore")
class TestReferences:
    def test_five_hundred_lists_with_ties(self) -> None:
        for x, y in lists(500):
            pairs = [
                (spearman(x, y), stats.spearmanr(x, y).statistic),
                (kendall(x, y), stats.kendalltau(x, y).statistic),
                (weighted_tau(x, y), stats.weightedtau(x, y).statistic),
                (ndcg(x, y, "raw"), ndcg_score([x], [y]) if x.any() else np.nan),
                (ndcg(x, y), ndcg_score([stats.rankdata(x)], [y])),
                (ndcg(x, y, "rank0"), ndcg_score([stats.rankdata(x) - 1], [y])),
                (ndcg(x, y, "exponential"), ndcg_score([2 ** (stats.rankdata(x) - 1) - 1], [y])),
            ]
            for ours, theirs in pairs:
                assert ours == pytest.approx(theirs, nan_ok=True, abs=1e-12)

    @pytest.mark.parametrize(
        ("scores", "value"), [([8, 10, 6, 4, 2], 0.6715328), ([10, 8, 6, 2, 4], 0.9014599), ([10, 8, 6, 4, 2], 1.0)]
    )
    def test_weighted_tau_weighs_the_top(self, scores: list[float], value: float) -> None:
        assert weighted_tau([10, 8, 6, 4, 2], scores) == pytest.approx(value, abs=1e-6)

    @pytest.mark.parametrize(("truth", "value"), [([10, 0, 0, 1, 5], 0.6909785), ([3, 1, 2], 0.8949990)])
    def test_ndcg_of_equal_scores_is_a_mean_over_orders(self, truth: list[float], value: float) -> None:
        assert ndcg(truth, [1.0] * len(truth), "raw") == pytest.approx(value, abs=1e-6)

    @pytest.mark.parametrize(("order", "value"), [("abcde", 1.0), ("bacde", 0.9), ("abced", 0.981775)])
    def test_rbo(self, order: str, value: float) -> None:
        assert rbo(TOP, [5.0 - order.index(c) for c in "abcde"]) == pytest.approx(value, abs=1e-9)

    def test_rbo_of_nearly_equal_tens(self) -> None:
        one, other = list(range(10, 0, -1)), [10, 9, 8, 7, 6, 5, 4, 3, 1, 2]
        direct = 0.0
        first, second = sorted(range(10), key=lambda i: -one[i]), sorted(range(10), key=lambda i: -other[i])
        for d in range(1, 11):
            direct += len(set(first[:d]) & set(second[:d])) / d * 0.9**d
        assert rbo(one, other) == pytest.approx(direct * 0.1 / 0.9 + 0.9**10, abs=1e-12)

    @given(
        x=st.lists(st.integers(0, 2), min_size=3, max_size=5),
        seed=st.integers(0, 99),
        name=st.sampled_from(["rbo", "ndcg"]),
    )
    def test_ties_are_averaged_over_the_orders_they_leave_open(self, x: list[int], seed: int, name: str) -> None:
        truth = np.random.default_rng(seed).permutation(len(x)).astype(float)
        open_orders = {order for order in permutations(range(len(x))) if all(x[a] >= x[b] for a, b in pairwise(order))}
        broken = []
        for order in open_orders:
            scores = np.empty(len(x))
            scores[list(order)] = np.arange(len(x), 0, -1)
            broken.append(MEASURES[name](truth, scores))
        assert MEASURES[name](truth, np.array(x, dtype=float)) == pytest.approx(np.mean(broken), abs=1e-12)

    def test_what_is_undefined_is_not_a_number(self) -> None:
        for measure in (spearman, kendall, weighted_tau):
            assert np.isnan(measure([1, 2, 3], [4, 4, 4]))
        assert np.isnan(ndcg([0, 0, 0], [3, 2, 1], "raw"))
        with pytest.raises(ValueError, match="below 0"):
            ndcg([-1, 0, 2], [0.1, 0.2, 0.3], "raw")
        with pytest.raises(ValueError, match="gains must be one of"):
            ndcg([1, 2, 3], [1, 2, 3], "ranks")
        with pytest.raises(ValueError, match="between 0 and 1"):
            rbo([1, 2, 3], [1, 2, 3], 1.0)


class TestPermutations:
    @pytest.mark.parametrize(("gains", "share"), [("rank", 166), ("rank0", 109), ("exponential", 89)])
    def test_shares_of_random_orders_that_reach_0_918(self, gains: str, share: int) -> None:
        values = ndcg(SIX, np.array(SIX)[all_orders(6)], gains)
        assert int((values >= 0.918).sum()) == share

    def test_spearman_of_six(self) -> None:
        orders = np.array(SIX)[all_orders(6)]
        near = orders[int(np.argmin(np.abs(spearman(SIX, orders) - 0.2571)))]
        found = agreement("spearman", SIX, near)
        assert found.value == pytest.approx(0.2571, abs=5e-5)
        assert found.p_greater == pytest.approx(0.3292, abs=5e-5)
        assert found.p_two_sided == pytest.approx(0.6583, abs=5e-5)
        assert (found.exact, found.orders) == (True, 720)

    @pytest.mark.parametrize("name", MEASURES)
    def test_looked_up_orders_are_those_computed_one_by_one(self, name: str) -> None:
        for x, y in [*lists(12, 3), (np.array(SIX), np.array([3.0, 1, 2, 6, 5, 4]))]:
            if np.ptp(x) == 0 or np.ptp(y) == 0:
                continue
            orders = random_orders(len(x), 1, 40)
            plain = [float(MEASURES[name](x, y[order])) for order in orders]
            assert null_values(name, x, y, options_of(name), orders) == pytest.approx(plain, abs=1e-10)

    @pytest.mark.parametrize("name", MEASURES)
    def test_p_values_are_valid_at_every_level(self, name: str) -> None:
        orders = np.array(SIX)[all_orders(6)]
        values = null_values(name, np.array(SIX), np.array(SIX), options_of(name), all_orders(6))
        assert values == pytest.approx(MEASURES[name](SIX, orders), abs=1e-10)
        p = np.array([(values >= v - 1e-9).mean() for v in values])
        for level in np.unique(p):
            assert (p <= level + 1e-12).mean() <= level + 1e-12

    @pytest.mark.parametrize("name", ["ndcg", "spearman"])
    def test_p_values_are_uniform_under_chance(self, name: str) -> None:
        rng = np.random.default_rng(5)
        found = [
            agreement(name, rng.standard_normal(20), rng.standard_normal(20), seed=k, draws=500).p_greater
            for k in range(150)
        ]
        assert stats.kstest(found, "uniform").pvalue > 0.01

    def test_beyond_nine_p_is_never_zero(self) -> None:
        found = agreement("kendall", np.arange(12.0), np.arange(12.0), draws=1000)
        assert found.p_greater == pytest.approx(1 / 1001)
        assert not found.exact

    def test_scipy_agrees_on_an_exact_test(self) -> None:
        x, y = np.arange(8.0), np.array([2.0, 0, 3, 1, 6, 4, 7, 5])
        theirs = stats.kendalltau(x, y, method="exact", alternative="greater").pvalue
        assert agreement("kendall", x, y).p_greater == pytest.approx(theirs)

    def test_what_cannot_be_tested_says_why(self) -> None:
        assert agreement("spearman", [1, 2, 3], [1, 1, 1]).reason == "one side is constant"
        assert agreement("ndcg", [0, 0, 0], [1, 2, 3], gains="raw").reason == "no gain is above 0"
        level = agreement("ndcg", [1, 2, 3], [1, 1, 1])
        assert (level.p_greater, level.value) == (None, level.expected)
        for bad, message in (
            (([1, 2], [1, 2]), "at least 3 pairs"),
            (([1, 2, np.nan], [1, 2, 3]), "missing or not finite"),
            (([1, 2, 3], [1, 2]), "one length"),
        ):
            with pytest.raises(ValueError, match=message):
                agreement("spearman", *bad)


def documented(name: str, n: int) -> list[float]:
    """Return the coverage that docs/trust.md prints for a statistic and a number of models, at three correlations."""
    text = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    line = next(li for li in text.splitlines() if re.fullmatch(rf"\| {TITLES[name]} (\| [\d /]+ % ){{3}}\|", li))
    cell = line.split("|")[2 + (6, 10, 20).index(n)]
    return [int(share) / 100 for share in re.findall(r"\d+", cell)]


class TestIntervals:
    """Known truth: the mean that n models of correlation ρ show without noise; noise as of 1,000 items."""

    @pytest.mark.parametrize("n", [6, 10, 20])
    @pytest.mark.parametrize("name", MEASURES)
    def test_they_cover_what_they_promise_and_what_the_docs_say(self, name: str, n: int) -> None:
        made, told = band(name, n), documented(name, n)
        for rho, documents in zip((0.0, 0.6, 0.9), told, strict=True):
            truth, hits, repeats = float(np.interp(rho, made.rho, made.mean)), 0, 400
            rng = np.random.default_rng(n)
            for _ in range(repeats):
                one, other = rng.standard_normal((2, n))
                clean = 0.65 + 0.05 * np.stack([one, rho * one + np.sqrt(1 - rho * rho) * other])
                errors = np.full((2, n), np.sqrt(0.65 * 0.35 / 1000))
                seen = clean + errors * rng.standard_normal((2, n))
                found = latent_interval(name, seen[0], seen[1], truth_errors=errors[0], score_errors=errors[1])
                hits += found is not None and found.low - 1e-9 <= truth <= found.high + 1e-9
            assert 0.90 <= hits / repeats <= 0.975, (rho, hits / repeats)
            assert hits / repeats == pytest.approx(documents, abs=0.01), rho

    def test_resampling_items_alone_would_not(self) -> None:
        """The reason for the above: which models there are is chance too, and items alone do not know of it."""
        rng, hits, repeats, rho, n = np.random.default_rng(0), 0, 300, 0.7, 20
        made = band("spearman", n)
        truth = float(np.interp(rho, made.rho, made.mean))
        for _ in range(repeats):
            one, other = rng.standard_normal((2, n))
            clean = 0.65 + 0.05 * np.stack([one, rho * one + np.sqrt(1 - rho * rho) * other])
            error = np.sqrt(0.65 * 0.35 / 1000)
            seen = clean + error * rng.standard_normal((2, n))
            drawn = seen[:, None, :] + error * rng.standard_normal((2, 400, n))
            low, high = np.quantile(spearman(drawn[0], drawn[1]), [0.025, 0.975])
            hits += bool(low <= truth <= high)
        assert hits / repeats < 0.8

    def test_noise_of_measurement_leaves_room_for_more(self) -> None:
        x, y = np.arange(8.0), np.array([2.0, 0, 5, 1, 3, 7, 4, 6])
        quiet = latent_interval("spearman", x, y)
        noisy = latent_interval("spearman", x, y, truth_errors=[1.2] * 8, score_errors=[1.2] * 8)
        assert quiet is not None
        assert noisy is not None
        assert noisy.high > quiet.high

    def test_nothing_but_noise_is_no_interval(self) -> None:
        assert noise_share([1, 2, 3], [5, 5, 5]) is None
        assert latent_interval("spearman", [1, 2, 3], [1, 2, 3], score_errors=[5, 5, 5]) is None
        assert noise_share([1, 2, 3], None) == 0.0


class TestPower:
    def test_it_is_the_level_under_chance_and_grows(self) -> None:
        assert power("spearman", 0.0, 8) <= 0.06
        small, large = power("spearman", 0.7, 6), power("spearman", 0.7, 20)
        assert 0.2 < small < large
        assert power("spearman", 0.7, 20, score_noise=0.6) < large

    def test_perfect_agreement_of_three_cannot_be_told_from_chance(self) -> None:
        assert power("kendall", 1.0, 3) == 0.0

    def test_noise_falls_with_items(self) -> None:
        assert share_of_noise(100, 0.05) == pytest.approx(0.5)
        assert share_of_noise(10_000, 0.05) < 0.01


class TestSwap:
    def test_all_exchanges_by_hand(self) -> None:
        truth, a, b = [4.0, 3, 2, 1], [4.0, 3, 2, 1], [1.0, 2, 3, 4]
        found = swap_test("spearman", truth, a, b)
        values = []
        for picks in range(16):
            one = [b[k] if picks >> k & 1 else a[k] for k in range(4)]
            other = [a[k] if picks >> k & 1 else b[k] for k in range(4)]
            x, y = (stats.spearmanr(truth, v).statistic if len(set(v)) > 1 else np.nan for v in (one, other))
            values.append(0.0 if np.isnan(x - y) else abs(x - y))
        assert found.difference == pytest.approx(2.0)
        assert found.p == pytest.approx(np.mean(np.array(values) >= 2 - 1e-9))
        assert found.least_p == 2 / 16

    def test_equal_benchmarks_do_not_differ(self) -> None:
        found = swap_test("ndcg", SIX, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])
        assert (found.difference, found.p, found.least_p) == (0.0, 1.0, 1.0)

    @pytest.mark.parametrize("name", ["spearman", "ndcg"])
    def test_the_level_holds_when_neither_is_better(self, name: str) -> None:
        rng, hits = np.random.default_rng(2), 0
        for k in range(300):
            truth, one, other = rng.standard_normal((3, 8))
            p = swap_test(name, truth, truth + one, truth + other, seed=k).p
            hits += p is not None and p <= 0.05
        assert hits <= stats.binom.ppf(0.999, 300, 0.05)

    @pytest.mark.parametrize("n", [6, 10, 20])
    def test_the_interval_of_a_difference_covers(self, n: int) -> None:
        corr = np.array([[1, 0.7, 0.3], [0.7, 1, 0.21], [0.3, 0.21, 1]])
        root, rng = np.linalg.cholesky(corr), np.random.default_rng(1)
        many = rng.standard_normal((20_000, n, 3)) @ root.T
        truth = float((spearman(many[..., 0], many[..., 1]) - spearman(many[..., 0], many[..., 2])).mean())
        hits = 0
        for k in range(150):
            seen = rng.standard_normal((n, 3)) @ root.T
            found = swap_test("spearman", seen[:, 0], seen[:, 1], seen[:, 2], seed=k).interval
            assert found is not None
            assert -2 <= found.low <= found.high <= 2
            hits += found.low <= truth <= found.high
        assert 0.87 <= hits / 150 <= 0.99

    def test_a_constant_side_says_so(self) -> None:
        assert swap_test("kendall", SIX, [1] * 6, SIX).reason == "one side is constant"

    def test_many_models_are_sampled(self) -> None:
        rng = np.random.default_rng(1)
        truth = rng.standard_normal(20)
        found = swap_test("spearman", truth, truth + 0.1 * rng.standard_normal(20), rng.standard_normal(20))
        assert not found.exact
        assert found.p is not None
        assert found.p < 0.01
        assert found.interval is not None
        assert found.interval.low > 0


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_ranks_are_scipys(values: list[float]) -> None:
    assert average_ranks(values) == pytest.approx(stats.rankdata(values))


def test_all_orders_are_all() -> None:
    assert len({tuple(o) for o in all_orders(5)}) == 120 == comb(5, 2) * 12
