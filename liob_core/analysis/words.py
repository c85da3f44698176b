"""Numbers and verdicts as people say them: three significant digits, familiar units, plain words."""

import math
from collections.abc import Callable, Mapping

from liob_core.metrics import METRICS

UNKNOWN = "—"

# From here on a ratio is easier to grasp as "times" than as a percentage.
_TIMES_FROM = 1.95


def three_digits(value: float | None) -> str:
    """`value` to three significant digits, thousands grouped; an em dash where unknown."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    # Rounding comes first: 99.97 has three digits as 100, not as 100.0.
    rounded = float(f"{value:.3g}")
    n_decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{n_decimals}f}"


def in_a_sentence(label: str) -> str:
    """A label as it is written within a sentence; an abbreviation at its beginning keeps its capitals."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def memory(n_bytes: float | None) -> str:
    """`n_bytes` as MiB or GiB, three significant digits."""
    if n_bytes is None or not math.isfinite(n_bytes):
        return UNKNOWN
    if abs(n_bytes) < 2**30:
        return f"{three_digits(n_bytes / 2**20)} MiB"
    return f"{three_digits(n_bytes / 2**30)} GiB"


def seconds(value_s: float | None) -> str:
    """`value_s` in ms below a second, s below two minutes, minutes above."""
    if value_s is None or not math.isfinite(value_s):
        return UNKNOWN
    if abs(value_s) < 1:
        return f"{three_digits(value_s * 1e3)} ms"
    return f"{three_digits(value_s)} s" if abs(value_s) < 120 else f"{three_digits(value_s / 60)} min"


def percent(share: float | None) -> str:
    """`share` (0 to 1) in whole per cent, one decimal below 10 %."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:.0f} %"


def points(share: float | None) -> str:
    """A difference of shares (0 to 1) in points, to the point; below one, a decimal."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    value = abs(share) * 100
    shown = f"{value:.1f}" if 0 < value < 0.95 else f"{value:.0f}"
    return f"{shown} point" if shown == "1" else f"{shown} points"


def at_most_points(share: float) -> str:
    """An upper bound (0 to 1) in whole points, rounded up so that it stays a bound."""
    value = math.ceil(round(share * 100, 6))
    return f"{value} point" if value == 1 else f"{value} points"


def value(metric: str, stored: float | None) -> str:
    """A stored value of `metric` in the unit people say."""
    if stored is None or not math.isfinite(stored):
        return UNKNOWN
    unit = METRICS[metric].unit
    if unit in _SHOWN:
        return _SHOWN[unit](stored)
    return f"{three_digits(stored)} {METRICS[metric].shown_unit}"


def interval(metric: str, low: float | None, high: float | None) -> str | None:
    """Both ends in the unit people say, "12.1 to 13.4 tok/s"; None where there is no interval."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    low_words, high_words = value(metric, low), value(metric, high)
    if low_words.split()[-1] == high_words.split()[-1]:
        low_words = low_words.split()[0]
    return f"{low_words} to {high_words}"


def ratio(times: float, more: str, less: str, as_adjective: str | None = None) -> str:
    """A ratio to the reference: "18 % faster", "12 % slower", "2.1 times as fast"."""
    if times >= _TIMES_FROM and as_adjective:
        return (
            f"{times:.1f} times as {as_adjective}" if times < 9.95 else f"{times:.0f} times as {as_adjective}"
        )
    change = percent(abs(times - 1))
    if change == "0 %":
        return "the same"
    return f"{change} {more if times > 1 else less}"


def effect(metric: str, estimate: float | None) -> str:
    """How far a variant is from the reference, without a verdict: "18 % faster", "1.9 GiB less"."""
    if estimate is None or not math.isfinite(estimate):
        return UNKNOWN
    return _EFFECTS[metric](estimate)


def verdict(
    metric: str, estimate: float | None, verdict_: str | None, reason: str | None, n: int | None = None
) -> str:
    """A delta against the reference with its verdict, in words a table cell can hold."""
    if verdict_ == "not distinguishable":
        return verdict_
    if verdict_ == "not comparable":
        return f"not comparable: {reason}" if reason else verdict_
    if estimate is None or not math.isfinite(estimate):
        return UNKNOWN
    words = effect(metric, estimate)
    # A peak or a size is one figure by nature, so only a missing interval is worth a remark.
    if verdict_ is None and metric != "peak_memory_bytes":
        return f"{words} (n = {n}, no verdict)" if n else f"{words} (no verdict)"
    return words


def _signed(shown: Callable[[float], str], more: str, less: str) -> Callable[[float], str]:
    def words(difference: float) -> str:
        if difference == 0:
            return "the same"
        return f"{shown(abs(difference))} {more if difference > 0 else less}"

    return words


_SHOWN: Mapping[str, Callable[[float], str]] = {
    "bytes": memory,
    "ms": lambda ms: seconds(ms / 1e3),
    "s": seconds,
    "share": percent,
}
_EFFECTS: Mapping[str, Callable[[float], str]] = {
    "decode_tps": lambda times: ratio(times, "faster", "slower", "fast"),
    "prefill_tps": lambda times: ratio(times, "faster", "slower", "fast"),
    "ttft_ms": lambda times: ratio(times, "longer", "shorter", "long"),
    "load_ms": lambda times: ratio(times, "longer", "shorter", "long"),
    "answer_s": _signed(seconds, "longer per prompt on average", "shorter per prompt on average"),
    "peak_memory_bytes": _signed(memory, "more", "less"),
    "pass_rate": _signed(points, "higher", "lower"),
    "seed_pass_rate": _signed(points, "higher", "lower"),
    "judge_score": _signed(lambda score: f"score {three_digits(score)}", "higher", "lower"),
    "judge_win_share": _signed(points, "more won than lost", "more lost than won"),
    "ln_ratio": lambda ln: f"perplexity {ratio(math.exp(ln), 'higher', 'lower', 'high')}",
}
