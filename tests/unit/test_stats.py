"""Every statistic against a value from outside: scipy, a published table, or hand computation."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from liob_core import stats

RATES = [27.9, 28.4, 28.1, 27.2, 28.8]
REFERENCE = [22.1, 22.9, 22.4, 22.0, 22.6]


def test_mean_interval_agrees_with_scipy():
    mean = stats.mean_interval(RATES)
    expected = scipy_stats.t.interval(0.95, 4, loc=np.mean(RATES), scale=scipy_stats.sem(RATES))
    assert mean.interval == pytest.approx(expected)
    assert mean.sd == pytest.approx(np.std(RATES, ddof=1))
    assert mean.cv == pytest.approx(scipy_stats.variation(RATES, ddof=1))


def test_one_value_has_no_interval():
    assert stats.mean_interval([3.0]) == stats.Mean(1, 3.0)
    assert stats.paired_t([1.0]).interval is None
    assert stats.paired_ratio([2.0], [1.0]) == stats.Paired(1, 2.0)


@pytest.mark.parametrize(
    ("cv", "level"),
    [(None, "none"), (0.10, "none"), (0.101, "yellow"), (0.20, "yellow"), (0.201, "red")],
)
def test_spread_level_at_its_limits(cv, level):
    assert stats.spread_level(cv) == level


def test_wilson_agrees_with_newcombe_1998():
    # Newcombe (1998), Statistics in Medicine 17:857, table I: 81/263, 15/148, 0/20, 1/29.
    assert stats.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert stats.wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert stats.wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert stats.wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
    assert stats.wilson(0, 0) is None


def test_percentiles_interpolate_linearly_and_need_enough_values():
    assert stats.percentile([1.0, 2.0, 3.0, 10.0], 0.5).value == 2.5
    assert stats.percentile(list(range(101)), 0.9).value == pytest.approx(90.0)
    assert [stats.percentile_min_n(q) for q in (0.5, 0.9, 0.95, 0.99)] == [1, 29, 59, 299]
    too_few = stats.percentile(list(range(28)), 0.9)
    assert too_few == stats.Percentile(None, "needs 29 values, has 28")
    assert stats.percentile([], 0.5).value is None


def test_paired_ratio_agrees_with_a_t_test_of_the_logs():
    paired = stats.paired_ratio(RATES, REFERENCE)
    expected = scipy_stats.ttest_rel(np.log(RATES), np.log(REFERENCE))
    assert paired.p_value == pytest.approx(expected.pvalue)
    assert paired.interval == pytest.approx(tuple(np.exp(expected.confidence_interval(0.95))))
    assert paired.estimate == pytest.approx(math.prod(RATES) ** 0.2 / math.prod(REFERENCE) ** 0.2)


def test_paired_t_on_the_seed_study_says_not_distinguishable():
    # metrics.md: 0, 0, -1, -3, -1 gives t -2.5 to +0.5, where a bootstrap would say -2.0 to -0.2.
    differences = [0.0, 0.0, -1.0, -3.0, -1.0]
    paired = stats.paired_difference(differences, seed=1)
    assert paired.estimate == pytest.approx(-1.0)
    assert paired.interval == pytest.approx((-2.52, 0.52), abs=0.005)
    assert stats.bootstrap_mean(differences, seed=1) == pytest.approx((-2.0, -0.2), abs=0.01)


def test_bootstrap_starts_at_50_pairs_and_repeats_with_its_seed():
    differences = list(np.random.default_rng(3).normal(1.0, 2.0, 50))
    paired = stats.paired_difference(differences, seed=7)
    assert stats.paired_difference(differences[:49], seed=7).method == "paired t"
    assert paired.method == "bootstrap, 10000 resamples, seed 7"
    assert paired == stats.paired_difference(differences, seed=7)
    expected = scipy_stats.bootstrap((differences,), np.mean, method="percentile", rng=1)
    assert paired.interval == pytest.approx(tuple(expected.confidence_interval), abs=0.03)


@pytest.mark.parametrize(("lost", "gained"), [(0, 6), (1, 7), (10, 3), (4, 4), (25, 12)])
def test_mcnemar_agrees_with_the_binomial_test(lost, gained):
    expected = scipy_stats.binomtest(lost, lost + gained).pvalue
    assert stats.mcnemar_exact(lost, gained) == pytest.approx(expected)


def test_mcnemar_without_flips_is_1():
    assert stats.mcnemar_exact(0, 0) == 1.0


def test_tango_interval_agrees_with_published_figures():
    # Bentur et al. (2009), the example of Fagerland, Lydersen and Laake (2014): (-0.517, -0.026).
    assert stats.paired_share_interval(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    # R, PropCIs::scoreci.mp(25, 28, 618, conf.level = 0.9): (-0.0148, 0.0247).
    assert stats.paired_share_interval(28, 25, 618, level=0.9) == pytest.approx((-0.0148, 0.0247), abs=5e-5)


def test_tango_interval_at_its_edges():
    z2 = scipy_stats.norm.ppf(0.975) ** 2
    assert stats.paired_share_interval(0, 0, 40) == pytest.approx((-z2 / (40 + z2), z2 / (40 + z2)))
    # All pairs flip one way: the root of n (1 - d) / (1 + d) = z^2 that hand computation gives.
    assert stats.paired_share_interval(14, 0, 14) == pytest.approx(((14 - z2) / (14 + z2), 1.0))
    assert stats.paired_share_interval(0, 14, 14) == pytest.approx((-1.0, (z2 - 14) / (14 + z2)))
    assert stats.paired_share_interval(0, 0, 0) is None


def test_tango_interval_agrees_with_a_likelihood_maximised_numerically():
    gained, lost, n = 3, 9, 60
    low, high = stats.paired_share_interval(gained, lost, n)
    for difference in (low, high):
        grid = np.linspace(max(0.0, -difference) + 1e-9, (1 - difference) / 2 - 1e-9, 400_001)
        likelihood = (
            gained * np.log(grid + difference)
            + lost * np.log(grid)
            + (n - gained - lost) * np.log(1 - 2 * grid - difference)
        )
        share = grid[np.argmax(likelihood)]
        score = (gained - lost - n * difference) / math.sqrt(n * (2 * share + difference - difference**2))
        assert abs(score) == pytest.approx(1.95996, abs=1e-3)


def test_loss_is_bounded_but_never_at_0():
    # metrics.md: 7.2 points at 40 prompts, 3 at 99.
    assert stats.loss_bound(0, 0, 40) == pytest.approx(0.072, abs=5e-4)
    assert stats.loss_bound(0, 0, 99) == pytest.approx(0.030, abs=5e-4)
    assert stats.loss_bound(25, 28, 618) == pytest.approx(0.0247, abs=5e-5)
    assert stats.loss_bound(0, 0, 0) is None


def test_holm_agrees_with_hand_computation():
    # Sorted .01 .02 .03 .04 times 4 3 2 1 is .04 .06 .06 .04, made monotone.
    assert stats.holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []


def test_minimum_detectable_effects():
    assert stats.minimum_detectable_share(40) == pytest.approx(0.14)
    # t(0.975, 15) + t(0.8, 15) = 2.131 + 0.866; metrics.md's 2.8 is what many pairs come to.
    assert stats.minimum_detectable(2.0, 16) == pytest.approx((2.131 + 0.866) * 2 / 4, abs=1e-3)
    assert stats.minimum_detectable(1.0, 100_000) * math.sqrt(100_000) == pytest.approx(2.8, abs=0.005)


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(11)
    n_runs = 1_000
    t_hits = sum(
        low <= 5.0 <= high
        for low, high in (stats.mean_interval(rng.normal(5, 1, 5)).interval for _ in range(n_runs))
    )
    tango_hits = 0
    for gained, lost, _ in rng.multinomial(120, [0.04, 0.08, 0.88], size=n_runs):
        low, high = stats.paired_share_interval(int(gained), int(lost), 120)
        tango_hits += low <= -0.04 <= high
    assert 0.93 <= t_hits / n_runs <= 0.97
    assert 0.93 <= tango_hits / n_runs <= 0.97


def test_no_verdict_more_often_than_its_level_where_nothing_differs():
    rng = np.random.default_rng(12)
    found = sum(
        stats.paired_ratio(np.exp(rng.normal(3, 0.05, 5)), np.exp(rng.normal(3, 0.05, 5))).p_value < 0.05
        for _ in range(1_000)
    )
    flips = [
        stats.mcnemar_exact(*map(int, rng.multinomial(120, [0.05, 0.05, 0.9])[:2])) for _ in range(1_000)
    ]
    assert found / 1_000 < 0.07
    assert sum(p < 0.05 for p in flips) / 1_000 < 0.05


def test_unpaired_ratio_is_welch_on_logarithms() -> None:
    # scipy's own implementation of Welch's interval, on values with unequal spreads and sizes.
    rates, reference = [19.8, 20.4, 21.9, 20.1], [24.8, 25.2, 25.0]
    found = stats.unpaired_ratio(rates, reference)
    test = scipy_stats.ttest_ind(np.log(rates), np.log(reference), equal_var=False)
    expected = test.confidence_interval(0.95)
    assert found.interval is not None
    assert np.log(found.interval) == pytest.approx([expected.low, expected.high], rel=1e-9)
    assert (found.n, found.n_reference) == (4, 3)
    assert found.estimate == pytest.approx(stats.geometric_mean(rates) / stats.geometric_mean(reference))
    assert stats.geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_unpaired_ratio_without_spread() -> None:
    assert stats.unpaired_ratio([20.0], [10.0, 11.0]).interval is None
    assert stats.unpaired_ratio([20.0, 20.0], [10.0, 10.0]).interval == pytest.approx((2.0, 2.0))
