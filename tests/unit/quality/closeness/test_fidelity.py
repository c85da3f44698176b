"""Results against hand computation; what may be said of them and what may not."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from liob_core.quality.closeness.fidelity import (
    Fidelity,
    broken_from_bits,
    closeness,
    estimate,
    interval,
)
from liob_core.quality.closeness.records import Build, WindowScore

BUILD = Build(version="llama-cpp-python 0.3.36", cpu_features="AVX2 = 1")


def _window(
    window: int,
    nll: list[float],
    kld: list[float] | None = None,
    same: list[bool] | None = None,
    name: str = "Q",
) -> WindowScore:
    return WindowScore(
        variant=name,
        window=window,
        n_ctx=2 * len(nll) + 2,
        prefill_ns=2_000_000,
        nll=np.array(nll, dtype=np.float32),
        kld=None if kld is None else np.array(kld, dtype=np.float32),
        same_top=None if same is None else np.array(same),
    )


def _closeness(scores: list[WindowScore], reference: list[WindowScore] | None) -> Fidelity:
    return closeness(scores, reference, text="t", text_sha256="0", from_start=True, build=BUILD)


REFERENCE = [_window(0, [1.0, 2.0], name="F"), _window(1, [3.0, 2.0], name="F")]
VARIANT = [
    _window(0, [1.5, 2.0], [0.25, 0.5], [True, True]),
    _window(1, [3.0, 3.0], [0.25, 1.0], [True, False]),
]


def test_reference_by_hand() -> None:
    result = _closeness(REFERENCE, None)
    assert (result.n_windows, result.n_tokens, result.n_ctx) == (2, 4, 6)
    assert result.ppl == pytest.approx(math.exp(2))
    # The tool's: population variance 0.5 over N - 1 = 3. Clustered: window means 1.5 and 2.5.
    assert result.ppl_se_iid == pytest.approx(math.exp(2) * math.sqrt(0.5 / 3))
    assert result.ppl_se == pytest.approx(math.exp(2) * 0.5)
    assert (result.ln_ratio, result.kld_mean, result.verdict) == (None, None, None)
    assert result.unknown["kld_mean"] == result.unknown["verdict"] == "no reference to compare with"
    assert result.prefill_tps == pytest.approx(12 / 0.004)
    assert (result.build, result.cpu_features) == ("llama-cpp-python 0.3.36", "AVX2 = 1")


def test_variant_by_hand() -> None:
    result = _closeness(VARIANT, REFERENCE)
    assert (result.variant, result.reference, result.window_choice) == ("Q", "F", "from start")
    # Differences 0.5, 0, 0, 1: mean 0.375, population variance 0.171875; window means 0.25 and 0.5.
    assert result.ln_ratio == pytest.approx(0.375)
    assert result.ln_ratio_se_iid == pytest.approx(math.sqrt(0.171875 / 3))
    assert result.ln_ratio_se == pytest.approx(math.sqrt(0.171875 / 3))  # larger than 0.125 between windows
    assert result.ppl == pytest.approx(math.exp(2.375))
    assert result.kld_mean == pytest.approx(0.5)
    assert result.kld_median == pytest.approx(0.375)
    assert result.kld_max == pytest.approx(1.0)
    assert result.same_top == pytest.approx(0.75)
    assert result.same_top_se_iid == pytest.approx(math.sqrt(0.75 * 0.25 / 3))  # the tool's formula
    changes = [math.exp(-1.5) - math.exp(-1), 0.0, 0.0, math.exp(-3) - math.exp(-2)]
    assert result.delta_p_mean == pytest.approx(sum(changes) / 4)
    assert result.delta_p_rms == pytest.approx(math.sqrt(sum(one * one for one in changes) / 4))
    assert result.kld_p99 is None
    assert result.unknown["kld_p99"] == "needs 299 values, has 4"


def test_clustered_error_counts_where_windows_differ_more_than_tokens() -> None:
    windows = [np.array([float(mean)] * 10) for mean in (0, 1, 0, 1)]
    result = estimate(windows)
    assert result.se_iid == pytest.approx(0.5 / math.sqrt(39))
    assert result.se == pytest.approx(math.sqrt(1 / 3) / 2)


def test_one_window_has_no_error_between_windows() -> None:
    result = _closeness(VARIANT[:1], REFERENCE)
    assert (result.ppl_se, result.ln_ratio_se, result.verdict) == (None, None, None)
    assert result.ppl_se_iid is not None
    assert result.unknown["ln_ratio_se"] == result.unknown["ppl_se"]
    assert "one window" in result.unknown["ppl_se"]


def _many(n: int, shift: float, spread: float) -> tuple[list[WindowScore], list[WindowScore]]:
    reference = [_window(index, [2.0, 2.5], name="F") for index in range(n)]
    shifts = [shift + (spread if index % 2 else -spread) for index in range(n)]
    own = [_window(i, [2.0 + d, 2.5 + d], [0.1, 0.1], [True, True]) for i, d in enumerate(shifts)]
    return own, reference


def test_below_eight_windows_there_is_no_verdict() -> None:
    result = _closeness(*_many(7, 0.5, 0.01))
    assert (result.verdict, result.ln_ratio_low, result.ln_ratio_bound, result.ln_ratio_p) == (None,) * 4
    assert result.unknown["verdict"] == "needs 8 windows, has 7"


@pytest.mark.parametrize(
    ("shift", "word"), [(0.05, "worse"), (-0.05, "better"), (0.01, "not distinguishable")]
)
def test_verdict_follows_the_interval(shift: float, word: str) -> None:
    result = _closeness(*_many(8, shift, 0.02))
    assert result.verdict == word
    assert result.ln_ratio_low is not None
    assert result.ln_ratio_high is not None
    assert (result.ln_ratio_low > 0 or result.ln_ratio_high < 0) == (word != "not distinguishable")
    # Window means are shift +- 0.02: sd 0.02 sqrt(8/7), so the error is 0.02/sqrt(7).
    half = float(special.stdtrit(7, 0.975)) * 0.02 / math.sqrt(7)
    assert result.ln_ratio_high - result.ln_ratio_low == pytest.approx(2 * half, rel=1e-4)
    assert result.ln_ratio_bound == pytest.approx(
        shift + float(special.stdtrit(7, 0.95)) * 0.02 / math.sqrt(7), rel=1e-4
    )


def test_a_variant_that_is_its_reference_is_not_distinguishable() -> None:
    result = _closeness(*_many(8, 0.0, 0.0))
    assert (result.verdict, result.ln_ratio, result.ln_ratio_p) == ("not distinguishable", 0.0, 1.0)


def test_only_shared_windows_are_compared() -> None:
    result = _closeness([*VARIANT, _window(9, [99.0, 99.0], [9, 9], [False, False])], REFERENCE)
    assert (result.n_windows, result.ln_ratio) == (2, pytest.approx(0.375))


def _level(name: str, nll: float, *, same: bool) -> list[WindowScore]:
    return [_window(index, [nll, nll], [0.1, 0.1], [same, same], name) for index in range(2)]


@pytest.mark.parametrize(
    ("nll", "same", "reference_nll", "expected"),
    [
        (math.log(101), True, 2.0, "perplexity 101"),
        (math.log(99), True, 2.0, None),
        (math.log(101), True, math.log(150), None),  # the text is to blame
        (2.5, False, 2.0, "0% of tokens"),
    ],
)
def test_broken_is_named(nll: float, same: bool, reference_nll: float, expected: str | None) -> None:
    result = _closeness(_level("Q", nll, same=same), _level("F", reference_nll, same=True))
    assert (result.broken is None) if expected is None else expected in str(result.broken)


def test_the_size_at_which_a_ladder_breaks() -> None:
    whole = _closeness(VARIANT, REFERENCE)
    broken = replace(whole, broken="perplexity 900")
    assert broken_from_bits([(8.5, whole), (3.4, broken), (2.6, broken)]) == 3.4
    assert broken_from_bits([(8.5, whole)]) is None


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    n_hits, n_trials, n_windows = 0, 400, 12
    for _ in range(n_trials):
        centres = rng.normal(0.1, 0.05, n_windows)  # tokens of a window share its centre
        found = estimate([rng.normal(centre, 0.2, 60) for centre in centres])
        both = interval(found, n_windows)
        assert both is not None
        n_hits += both.low <= 0.1 <= both.high
    assert 0.92 <= n_hits / n_trials <= 0.985
