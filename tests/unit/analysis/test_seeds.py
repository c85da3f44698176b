"""Seeds averaged by prompt; figures computed by hand, and simulated where there is no difference."""

import numpy as np
import pytest

from liob_core import stats
from liob_core.analysis.seeds import Passes, differences, disagreement, pass_rate


def passes(*patterns):
    """One prompt a pattern, one answer a letter: p passed, f failed, - not checked."""
    known = {"p": True, "f": False, "-": None}
    return {
        f"p{number}": Passes({block: known[letter] for block, letter in enumerate(pattern)})
        for number, pattern in enumerate(patterns)
    }


def test_the_pass_rate_is_a_mean_over_prompts_and_so_is_its_interval():
    """Shares 1, 0.5, 0: mean 0.5, sd 0.5, t(2) = 4.3027, so 0.5 +- 1.242, cut at 0 and 1."""
    rate = pass_rate(passes("pp", "pf", "ff"))
    assert (rate.n, rate.mean, rate.sd) == (3, 0.5, 0.5)
    assert rate.interval == (0.0, 1.0)


def test_answers_that_were_not_checked_are_no_failures():
    assert pass_rate(passes("pp-", "---")).mean == 1.0
    assert pass_rate(passes("---")) is None


def test_prompts_that_are_all_alike_do_not_make_an_interval_without_width():
    interval = pass_rate(passes(*["ppp"] * 10)).interval
    assert interval == stats.wilson(10, 10)
    assert interval.low == pytest.approx(0.7225, abs=1e-4)


def test_ten_seeds_of_one_prompt_are_one_prompt():
    rate = pass_rate(passes("p" * 10))
    assert rate.n == 1
    assert rate.interval == stats.wilson(1, 1)


def test_differences_are_of_shares_on_prompts_that_both_had_checked():
    mine, base = passes("pf", "pp", "--", "ff"), passes("ff", "pp", "pp", "pf")
    assert differences(mine, base) == [0.5, 0.0, -0.5]


def test_a_file_flips_against_itself_as_often_as_two_of_its_answers_differ():
    """p of 4 with 1 failed: 3 of 6 pairs differ; 2 of 2: none. Half of the flips go either way."""
    found = disagreement(own := passes("pppf", "pp"), own)
    assert (found.n_prompts, found.flips) == (2, 0.25)
    assert found.lost == found.gained == 0.125


def test_two_variants_are_compared_over_different_seeds_as_one_is_with_itself():
    """Equal seeds begin alike: the diagonal, on which these two agree always, must not count."""
    found = disagreement(passes("pf"), passes("pf"))
    assert found.flips == 1.0
    assert disagreement(passes("ff"), passes("pp")).lost == 1.0
    assert disagreement(passes("p"), passes("f")) is None, "one block each: no pair of two seeds"


def test_without_a_true_difference_a_verdict_is_as_rare_as_its_level_says():
    rng = np.random.default_rng(7)
    n_verdicts = 0
    for _ in range(400):
        skill = rng.uniform(0.1, 0.9, size=40)
        mine, base = (rng.binomial(5, skill) / 5 for _ in range(2))
        n_verdicts += stats.paired_t(list(mine - base)).p_value < 0.05
    # 400 trials at 5 %: mean 20, sd 4.4.
    assert n_verdicts <= 33
