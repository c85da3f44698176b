"""Intervals cover as often as they say, and no verdict comes more often than its level where nothing differs.

Every case is simulated with a seed; three standard errors of the simulation are allowed.
"""

import functools
import math

import numpy as np
import pytest
from numpy.random import Generator

from liob_core import stats
from liob_core.analysis import comparing
from liob_core.analysis.deltas import BETTER, WORSE, Delta, _with_verdicts
from liob_core.analysis.judge_verdicts import Cell, JudgeFacts, pair_row, score_row, with_verdicts
from liob_core.quality.closeness import fidelity

N = 1_000
ALLOWED = 3 * math.sqrt(0.05 * 0.95 / N)

tango = functools.cache(stats.paired_share_interval)
loss_bound = functools.cache(stats.loss_bound)
mcnemar = functools.cache(stats.mcnemar_exact)


@pytest.fixture
def rng() -> Generator:
    return np.random.default_rng(20)


@pytest.mark.parametrize(("share", "n"), [(0.1, 40), (0.5, 125), (0.9, 125)])
def test_wilson_covers(rng: Generator, share: float, n: int) -> None:
    hits = [
        low <= share <= high for low, high in (stats.wilson(int(k), n) for k in rng.binomial(n, share, N))
    ]
    assert abs(np.mean(hits) - 0.95) <= ALLOWED + 0.01  # counts are whole, so coverage swings about its level


@pytest.mark.parametrize("n", [3, 5, 10])
def test_a_ratio_over_blocks_covers_although_blocks_share_their_noise(rng: Generator, n: int) -> None:
    shared = rng.normal(0, 0.1, (N, n))  # what a block does to both
    rates = np.exp(3 + shared + rng.normal(0.2, 0.02, (N, n)))
    reference = np.exp(3 + shared + rng.normal(0, 0.02, (N, n)))
    hits = [
        low <= math.exp(0.2) <= high
        for low, high in (stats.paired_ratio(a, b).interval for a, b in zip(rates, reference, strict=True))
    ]
    assert abs(np.mean(hits) - 0.95) <= ALLOWED


def test_welch_covers_where_spreads_differ(rng: Generator) -> None:
    rates, reference = np.exp(rng.normal(3.1, 0.1, (N, 5))), np.exp(rng.normal(3.0, 0.02, (N, 8)))
    hits = [
        low <= math.exp(0.1) <= high
        for low, high in (stats.unpaired_ratio(a, b).interval for a, b in zip(rates, reference, strict=True))
    ]
    assert abs(np.mean(hits) - 0.95) <= ALLOWED


def test_the_bootstrap_covers_from_where_it_is_used(rng: Generator) -> None:
    n_runs = 80
    skewed = rng.exponential(1.0, (n_runs, stats.MIN_BOOTSTRAP_PAIRS)) - 1
    hits = [
        low <= 0 <= high for low, high in (stats.bootstrap_mean(list(values), seed=1) for values in skewed)
    ]
    # Percentiles are a little narrow for so skewed values; below 50 pairs t takes their place.
    assert np.mean(hits) >= 0.93 - 3 * math.sqrt(0.07 * 0.93 / n_runs)


@pytest.mark.parametrize(("gained", "lost"), [(0.0, 0.01), (0.02, 0.05), (0.05, 0.10)])
def test_a_bound_of_a_loss_holds(rng: Generator, gained: float, lost: float) -> None:
    counts = rng.multinomial(125, [gained, lost, 1 - gained - lost], N)
    held = [loss_bound(int(up), int(down), 125) >= lost - gained for up, down, _ in counts]
    assert np.mean(held) >= 0.95 - ALLOWED


@pytest.mark.parametrize(("gained", "lost", "n"), [(0.05, 0.05, 40), (0.02, 0.10, 125), (0.0, 0.04, 125)])
def test_tango_covers(rng: Generator, gained: float, lost: float, n: int) -> None:
    counts = rng.multinomial(n, [gained, lost, 1 - gained - lost], N)
    intervals = [tango(int(up), int(down), n) for up, down, _ in counts]
    hits = [low <= gained - lost <= high for low, high in intervals]
    assert np.mean(hits) >= 0.95 - ALLOWED - 0.01


def deltas(p_values: list[float], estimates: list[float]) -> list[Delta]:
    return [
        Delta(
            run_id="r", variant=str(place), reference="F16", metric="decode_tps", kind="ratio",
            estimate=estimate, p_value=p_value, n=5,
        )
        for place, (p_value, estimate) in enumerate(zip(p_values, estimates, strict=True))
    ]  # fmt: skip


def test_a_family_of_variants_gets_a_wrong_verdict_no_more_often_than_its_level(rng: Generator) -> None:
    wrong = 0
    for _ in range(N):
        reference = np.exp(rng.normal(3, 0.05, 5))
        pairs = [stats.paired_ratio(np.exp(rng.normal(3, 0.05, 5)), reference) for _ in range(4)]
        found = _with_verdicts(deltas([one.p_value for one in pairs], [one.estimate for one in pairs]))
        wrong += any(one.verdict in (BETTER, WORSE) for one in found)
    assert wrong / N <= 0.05 + ALLOWED


def test_flips_get_a_wrong_verdict_no_more_often_than_their_level(rng: Generator) -> None:
    counts = rng.multinomial(125, [0.06, 0.06, 0.88], N)
    wrong = [mcnemar(int(down), int(up)) < 0.05 for up, down, _ in counts]
    assert np.mean(wrong) <= 0.05 + ALLOWED


@pytest.mark.parametrize("n_windows", [8, 32])
def test_closeness_covers_and_keeps_its_level_although_tokens_of_a_window_go_together(
    rng: Generator, n_windows: int
) -> None:
    together = rng.normal(0, 0.02, (N, n_windows, 1))
    tokens = together + rng.normal(0, 0.1, (N, n_windows, 60))
    estimates = [fidelity.estimate(list(one)) for one in tokens]
    hits = [low <= 0 <= high for low, high in (fidelity.interval(one, n_windows) for one in estimates)]
    wrong = [fidelity._verdict(one, n_windows, {})["verdict"] != fidelity.SAME for one in estimates]
    # The error that takes tokens as independent would be half as wide, and wrong far more often.
    naive = [abs(one.mean) > 1.96 * one.se_iid for one in estimates]
    assert np.mean(hits) >= 0.95 - ALLOWED
    assert np.mean(wrong) <= 0.05 + ALLOWED
    assert np.mean(naive) > 0.15


def test_a_regression_is_found_no_more_often_than_its_level_where_nothing_beyond_the_margin_is_lost(
    rng: Generator,
) -> None:
    before, after = np.exp(rng.normal(3, 0.02, (N, 5))), 0.95 * np.exp(rng.normal(3, 0.02, (N, 5)))
    found = [
        comparing._speed("a", "decode_tps", list(a), list(b), 0.05).verdict
        for a, b in zip(before, after, strict=True)
    ]
    # One side of a 95 % interval.
    assert np.mean([one == comparing.REGRESSION for one in found]) <= 0.025 + ALLOWED


JUDGE = JudgeFacts(judge="j", judge_key="k", mode="single", n_judged=40, n_scored=40, n_right=10, n_items=10)


def cells(scores: list[int | None], results: list[str | None]) -> dict[str, Cell]:
    return {
        f"p{place}": Cell(
            outcome="ok", state="scored", score=score, result=result, lengths_differ=False, is_self=False,
            preferred_first=None, preferred_second=None,
        )
        for place, (score, result) in enumerate(zip(scores, results, strict=True))
    }  # fmt: skip


def test_a_judges_verdicts_keep_their_level(rng: Generator) -> None:
    n_runs, n = 300, 40
    wrong = {"scores": 0, "pairs": 0}
    for _ in range(n_runs):
        none: list[None] = [None] * n
        base = cells(list(map(int, rng.integers(3, 9, n))), none)
        mine = cells(list(map(int, rng.integers(3, 9, n))), none)
        rows = [
            {"is_reference": is_reference, **score_row(one, base)}
            for is_reference, one in ((True, base), (False, mine))
        ]
        wrong["scores"] += with_verdicts(rows, JUDGE)[1]["verdict"] in (BETTER, WORSE)
        results = list(map(str, rng.choice(["win", "tie", "loss"], n)))
        pair = {"is_reference": False, **pair_row(cells(none, results), base)}
        wrong["pairs"] += with_verdicts([pair], JUDGE)[0]["verdict"] in (BETTER, WORSE)
    allowed = 0.05 + 3 * math.sqrt(0.05 * 0.95 / n_runs)
    assert wrong["scores"] / n_runs <= allowed
    assert wrong["pairs"] / n_runs <= allowed


@pytest.mark.parametrize("n", [3, 5, 10])
def test_what_is_called_detectable_is_found_four_times_of_five(rng: Generator, n: int) -> None:
    differences = rng.normal(stats.minimum_detectable(0.02, n), 0.02, (N, n))
    found = [stats.paired_t(one).p_value < 0.05 for one in differences]
    assert abs(np.mean(found) - 0.8) <= 0.02 + 3 * math.sqrt(0.8 * 0.2 / N)


def test_the_difference_of_checks_that_is_called_detectable_is_found(rng: Generator) -> None:
    n, flips = 125, stats.ASSUMED_FLIP_SHARE
    difference = stats.minimum_detectable_share(n)
    shares = [(flips - difference) / 2, (flips + difference) / 2, 1 - flips]
    found = [mcnemar(int(down), int(up)) < 0.05 for up, down, _ in rng.multinomial(n, shares, N)]
    assert abs(np.mean(found) - 0.8) <= 3 * math.sqrt(0.8 * 0.2 / N)
