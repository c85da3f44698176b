"""Intervals, paired tests and bounds: pure functions over plain numbers, all at 95 % unless said.

Values keep the unit they came in; rates and shares are fractions, p values two-sided. An interval that
does not exist is None, never a zero-width one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported when they are used: `special` alone takes long

YELLOW_CV = 0.10
RED_CV = 0.20
MIN_BOOTSTRAP_PAIRS = 50
N_RESAMPLES = 10_000
ASSUMED_FLIP_SHARE = 0.10
# z(0.975) + z(0.8): two-sided 5 % and 80 % power.
POWER_FACTOR = 2.8


class Interval(NamedTuple):
    """The two ends of an interval, in the unit of the estimate."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its standard deviation (ddof 1), coefficient of variation and t interval."""

    n: int
    mean: float
    sd: float | None = None
    cv: float | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Paired:
    """A paired effect: a ratio or a mean difference, its interval and the p value of "no effect"."""

    n: int
    estimate: float
    sd: float | None = None  # of the differences, or of the ln ratios
    interval: Interval | None = None
    p_value: float | None = None
    method: str = "one pair, no interval"


@dataclass(frozen=True, slots=True)
class Unpaired:
    """A ratio of two groups that are not paired, with the numbers of values and its interval."""

    n: int
    n_reference: int
    estimate: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile in the unit of the values, or None with the reason."""

    value: float | None
    reason: str = ""


def mean_interval(values: Sequence[float], *, level: float = 0.95) -> Mean:
    """The mean of `values` with its t interval; one value has none. Source: Student (1908)."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Mean(1, mean)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = _t_quantile(n - 1, 0.5 + level / 2) * sd / math.sqrt(n)
    return Mean(n, mean, sd, sd / abs(mean) if mean else None, Interval(mean - half, mean + half))


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive `values`, in their unit."""
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def spread_level(cv: float | None) -> str:
    """How wide a coefficient of variation is: none, yellow (above 10 %) or red (above 20 %)."""
    if cv is None or cv <= YELLOW_CV:
        return "none"
    return "yellow" if cv <= RED_CV else "red"


def wilson(n_successes: int, n: int, *, level: float = 0.95) -> Interval | None:
    """The interval of a share, 0 to 1; None for n = 0. Source: Wilson (1927), without correction."""
    if n == 0:
        return None
    z2 = _z(0.5 + level / 2) ** 2
    share = n_successes / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def percentile_min_n(q: float) -> int:
    """How many values the percentile `q` (0 to 1) needs: fewer have no 95 % upper bound at all.

    The largest of n values lies above the true percentile with probability 1 - q^n; medians are free.
    """
    return 1 if q <= 0.5 else math.ceil(math.log(0.05) / math.log(q))


def percentile(values: Sequence[float], q: float) -> Percentile:
    """The percentile `q` (0 to 1) by linear interpolation, in the unit of `values`."""
    needed = percentile_min_n(q)
    if len(values) < needed:
        return Percentile(None, f"needs {needed} values, has {len(values)}")
    return Percentile(float(np.quantile(np.asarray(values, dtype=float), q)))


def paired_t(differences: Sequence[float], *, level: float = 0.95) -> Paired:
    """The mean difference with its t interval and p value, in the unit of the differences."""
    mean = mean_interval(differences, level=level)
    if mean.sd is None:
        return Paired(1, mean.mean)
    return Paired(mean.n, mean.mean, mean.sd, mean.interval, _t_p_value(mean), "paired t")


def paired_ratio(rates: Sequence[float], reference: Sequence[float], *, level: float = 0.95) -> Paired:
    """The ratio of rates to the reference's over pairs: e^mean(d), d = ln(rate / reference), t over pairs."""
    logs = [math.log(rate / base) for rate, base in zip(rates, reference, strict=True)]
    paired = paired_t(logs, level=level)
    interval = paired.interval and Interval(math.exp(paired.interval.low), math.exp(paired.interval.high))
    method = paired.method if interval is None else "t over ln ratios"
    return Paired(paired.n, math.exp(paired.estimate), paired.sd, interval, paired.p_value, method)


def unpaired_ratio(rates: Sequence[float], reference: Sequence[float], *, level: float = 0.95) -> Unpaired:
    """The ratio of geometric means of two unpaired groups, with Welch's t interval over the logarithms.

    Source: Welch (1947), degrees of freedom by Satterthwaite. A group of one has no spread, so no interval.
    """
    sides = [mean_interval([math.log(rate) for rate in group]) for group in (rates, reference)]
    difference = sides[0].mean - sides[1].mean
    ratio = math.exp(difference)
    if sides[0].sd is None or sides[1].sd is None:
        return Unpaired(sides[0].n, sides[1].n, ratio, None)
    parts = [(side.sd or 0.0) ** 2 / side.n for side in sides]
    variance = math.fsum(parts)
    if variance == 0:
        return Unpaired(sides[0].n, sides[1].n, ratio, Interval(ratio, ratio))
    df = variance**2 / math.fsum(part**2 / (side.n - 1) for part, side in zip(parts, sides, strict=True))
    half = float(scipy.special.stdtrit(df, 0.5 + level / 2)) * math.sqrt(variance)
    interval = Interval(math.exp(difference - half), math.exp(difference + half))
    return Unpaired(sides[0].n, sides[1].n, ratio, interval)


def paired_difference(differences: Sequence[float], *, seed: int) -> Paired:
    """The mean difference per prompt: paired t below 50 pairs, bootstrap percentiles from there on.

    The p value is the t test's in both; the seed makes the bootstrap repeatable and is in `method`.
    """
    paired = paired_t(differences)
    if paired.n < MIN_BOOTSTRAP_PAIRS:
        return paired
    interval = bootstrap_mean(differences, seed=seed)
    method = f"bootstrap, {N_RESAMPLES} resamples, seed {seed}"
    return Paired(paired.n, paired.estimate, paired.sd, interval, paired.p_value, method)


def bootstrap_mean(values: Sequence[float], *, seed: int, level: float = 0.95) -> Interval:
    """The percentile-bootstrap interval of a mean, 10,000 resamples. Source: Efron (1979)."""
    data = np.asarray(values, dtype=float)
    rng = np.random.default_rng(seed)
    # A million draws at a time: fast, and memory does not grow with the number of prompts.
    n_rows = max(1, 1_000_000 // data.size)
    sizes = [min(n_rows, N_RESAMPLES - start) for start in range(0, N_RESAMPLES, n_rows)]
    means = np.concatenate([rng.choice(data, size=(size, data.size)).mean(axis=1) for size in sizes])
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high))


def two_sided_p(statistic: float, df: int) -> float:
    """The two-sided p value of a t statistic on `df` degrees of freedom."""
    return 2 * float(scipy.special.stdtr(df, -abs(statistic)))


def mcnemar_exact(n_lost: int, n_gained: int) -> float:
    """The exact two-sided p value of "as many flips down as up". Source: McNemar (1947), binomial form."""
    n = n_lost + n_gained
    if n == 0:
        return 1.0
    return min(1.0, 2 * float(scipy.special.bdtr(min(n_lost, n_gained), n, 0.5)))


def paired_share_interval(n_gained: int, n_lost: int, n: int, *, level: float = 0.95) -> Interval | None:
    """The score interval of (gained - lost) / n, a difference of two paired shares; None for n = 0.

    Source: Tango (1998), Statistics in Medicine 17:891. Its score falls as the difference grows, so each
    end is the one root on its side of the estimate.
    """
    if n == 0:
        return None
    z = _z(0.5 + level / 2)
    estimate = (n_gained - n_lost) / n

    def score(difference: float) -> float:
        return _tango_score(n_gained, n_lost, n, difference)

    low = -1.0 if n_lost == n else scipy.optimize.brentq(lambda d: score(d) - z, -1.0, estimate, xtol=1e-10)
    high = 1.0 if n_gained == n else scipy.optimize.brentq(lambda d: score(d) + z, estimate, 1.0, xtol=1e-10)
    return Interval(float(low), float(high))


def loss_bound(n_gained: int, n_lost: int, n: int) -> float | None:
    """The largest loss of pass rate (a fraction) that the flips allow, one-sided 95 %; None for n = 0.

    Without a single flip the score interval would be too sure, so the exact bound takes its place.
    """
    if n == 0:
        return None
    if n_gained == 0 and n_lost == 0:
        return no_flip_bound(n)
    interval = paired_share_interval(n_gained, n_lost, n, level=0.90)
    return None if interval is None else max(0.0, -interval.low)


def no_flip_bound(n: int) -> float:
    """The share of flips (a fraction) that n pairs without one cannot rule out: 1 - 0.05^(1/n)."""
    return float(1 - 0.05 ** (1 / n))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted for their number, in the order given. Source: Holm (1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def minimum_detectable(sd: float, n: int) -> float:
    """The smallest mean difference n pairs find with 80 % power, in the unit of `sd` (of differences).

    The factor is POWER_FACTOR for many pairs and larger for few, where it would find a third of them: 5.4 at
    three pairs, 3.7 at five. At least two pairs are needed.
    """
    return (_t_quantile(n - 1, 0.975) + _t_quantile(n - 1, 0.8)) * sd / math.sqrt(n)


def minimum_detectable_share(n: int, *, flip_share: float = ASSUMED_FLIP_SHARE) -> float:
    """The smallest difference of pass rates (a fraction) n pairs find with 80 % power."""
    return POWER_FACTOR * math.sqrt(flip_share / n)


def _t_quantile(df: int, probability: float) -> float:
    return float(scipy.special.stdtrit(df, probability))


def _z(probability: float) -> float:
    return float(scipy.special.ndtri(probability))


def _t_p_value(mean: Mean) -> float:
    if not mean.sd:
        return 1.0 if mean.mean == 0 else 0.0
    return two_sided_p(mean.mean * math.sqrt(mean.n) / mean.sd, mean.n - 1)


def _tango_score(n_gained: int, n_lost: int, n: int, difference: float) -> float:
    """The score statistic at a supposed difference, with the flips' maximum-likelihood share under it."""
    b = (2 * n - n_gained + n_lost) * difference - n_gained - n_lost
    c = -n_lost * difference * (1 - difference)
    root = math.sqrt(max(0.0, b * b - 8 * n * c))
    lost_share = (root - b) / (4 * n)
    variance = n * (2 * lost_share + difference * (1 - difference))
    distance = n_gained - n_lost - n * difference
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)
