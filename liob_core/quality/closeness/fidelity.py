"""Windows -> one closeness result per variant, with the errors of its means and what may be said of them.

Every mean has two standard errors: `_se_iid` takes tokens as independent, as llama.cpp's tool does; the
other is clustered by window, because tokens of one window are not. Where both exist the larger one counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import NDArray

from liob_core import stats
from liob_core.quality.closeness.records import Build, WindowScore
from liob_core.quality.closeness.windows import FROM_START, SPREAD
from liob_core.stats import Interval

MIN_WINDOWS = 8  # fewer give no verdict
BROKEN_PPL = 100.0
BROKEN_SAME_TOP = 0.10
RANKABLE_KLD = 0.03  # below it variants cannot be ranked by their divergence
BETTER, WORSE, SAME = "better", "worse", "not distinguishable"
_MEANS = ("ln_ratio", "kld", "same_top", "delta_p")
_INTERVAL_FIELDS = ("ln_ratio_low", "ln_ratio_high", "ln_ratio_bound", "ln_ratio_p", "verdict")
_KLD_PERCENTILES = {"kld_median": 0.5, "kld_p90": 0.9, "kld_p95": 0.95, "kld_p99": 0.99, "kld_p999": 0.999}
_COMPARED_FIELDS = (
    "ln_ratio", "kld_mean", "same_top", "delta_p_mean", "delta_p_rms", "kld_max",
    *_KLD_PERCENTILES, *(f"{name}_se" for name in _MEANS), *(f"{name}_se_iid" for name in _MEANS),
    *_INTERVAL_FIELDS,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """How close one variant is to its reference on one text.

    Likelihoods and divergences are in nats, shares and probability changes fractions; what is None has its
    reason in `unknown`, by field name.
    """

    variant: str
    reference: str | None
    text: str
    text_sha256: str
    n_ctx: int
    n_windows: int
    n_tokens: int  # scored ones
    window_choice: str  # spread | from start
    ppl: float
    ppl_se: float | None
    ppl_se_iid: float | None
    ln_ratio: float | None = None
    ln_ratio_se: float | None = None
    ln_ratio_se_iid: float | None = None
    kld_mean: float | None = None
    kld_se: float | None = None
    kld_se_iid: float | None = None
    kld_median: float | None = None
    kld_p90: float | None = None
    kld_p95: float | None = None
    kld_p99: float | None = None
    kld_p999: float | None = None
    kld_max: float | None = None
    same_top: float | None = None
    same_top_se: float | None = None
    same_top_se_iid: float | None = None
    delta_p_mean: float | None = None
    delta_p_se: float | None = None
    delta_p_se_iid: float | None = None
    delta_p_rms: float | None = None
    ln_ratio_low: float | None = None  # 95 %, t on windows - 1
    ln_ratio_high: float | None = None
    ln_ratio_bound: float | None = None  # the largest loss: one-sided 95 %
    ln_ratio_p: float | None = None  # two-sided p of "no difference", for Holm's correction
    verdict: str | None = None  # better | worse | not distinguishable; of one variant alone
    broken: str | None = None  # why the variant is broken at its size; None: it is not
    prefill_tps: float | None = None  # windows' tokens per second, the output of half of them included
    build: str = ""
    cpu_features: str = ""
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its two standard errors, in the unit of the values."""

    mean: float
    se: float | None
    se_iid: float | None


def estimate(values_by_window: Sequence[NDArray[np.floating]]) -> Estimate:
    """The mean over all values of equally long windows, with its errors; one window has no clustered one."""
    table = np.asarray(values_by_window, dtype=np.float64)
    n_windows, n = len(table), table.size
    mean = float(table.mean())
    se_iid = float(table.std()) / math.sqrt(n - 1) if n > 1 else None
    if n_windows < 2 or se_iid is None:
        return Estimate(mean, None, se_iid)
    clustered = float(table.mean(axis=1).std(ddof=1)) / math.sqrt(n_windows)
    return Estimate(mean, max(clustered, se_iid), se_iid)


def interval(result: Estimate, n_windows: int) -> Interval | None:
    """The 95 % interval of a mean over windows, t on windows - 1; None below two windows."""
    if result.se is None:
        return None
    half = float(scipy.special.stdtrit(n_windows - 1, 0.975)) * result.se
    return Interval(result.mean - half, result.mean + half)


def closeness(
    scores: Sequence[WindowScore],
    reference: Sequence[WindowScore] | None,
    *,
    text: str,
    text_sha256: str,
    from_start: bool,
    build: Build,
) -> Fidelity:
    """The result of one variant over the windows that it and the reference share; at least one is needed.

    `reference` None: the variant is the reference, or a file evaluated alone.
    """
    pairs = pair_windows(scores, reference)
    own = [one for one, _ in pairs]
    nll = estimate([one.nll for one in own])
    ppl = math.exp(nll.mean)
    base = Fidelity(
        variant=own[0].variant,
        reference=reference[0].variant if reference else None,
        text=text,
        text_sha256=text_sha256,
        n_ctx=own[0].n_ctx,
        n_windows=len(own),
        n_tokens=sum(len(one.nll) for one in own),
        window_choice=FROM_START if from_start else SPREAD,
        ppl=ppl,
        ppl_se=None if nll.se is None else ppl * nll.se,
        ppl_se_iid=None if nll.se_iid is None else ppl * nll.se_iid,
        prefill_tps=_prefill_tps(own),
        build=build.version,
        cpu_features=build.cpu_features,
    )
    return _alone(base) if reference is None else _compared(base, pairs)


def pair_windows(
    scores: Sequence[WindowScore], reference: Sequence[WindowScore] | None
) -> list[tuple[WindowScore, WindowScore]]:
    """The windows that both have, by number; each with itself where there is no reference."""
    by_window = {one.window: one for one in (scores if reference is None else reference)}
    return [
        (one, by_window[one.window])
        for one in sorted(scores, key=lambda one: one.window)
        if one.window in by_window
    ]


def _alone(base: Fidelity) -> Fidelity:
    reason = "no reference to compare with"
    unknown = dict.fromkeys(_COMPARED_FIELDS, reason)
    if base.ppl_se is None:
        unknown["ppl_se"] = "one window has no error between windows"
    return _replaced(base, {"unknown": unknown})


def _compared(base: Fidelity, pairs: Sequence[tuple[WindowScore, WindowScore]]) -> Fidelity:
    """`base` with all that compares it to the reference."""
    n_windows = len(pairs)
    # The change of the correct token's probability follows from its two likelihoods.
    own, theirs = (np.asarray([pair[side].nll for pair in pairs], dtype=np.float64) for side in (0, 1))
    delta_p = np.exp(-own) - np.exp(-theirs)
    kld_values = np.asarray([one.kld for one, _ in pairs], dtype=np.float64)
    ratio, kld, top, change = (
        estimate(list(table))
        for table in (own - theirs, kld_values, np.asarray([one.same_top for one, _ in pairs]), delta_p)
    )
    found: dict[str, object] = {}
    for name, result in zip(_MEANS, (ratio, kld, top, change), strict=True):
        found |= {f"{name}_se": result.se, f"{name}_se_iid": result.se_iid}
    found |= {"ln_ratio": ratio.mean, "kld_mean": kld.mean, "same_top": top.mean}
    found |= {"delta_p_mean": change.mean, "delta_p_rms": math.sqrt(float((delta_p**2).mean()))}
    found |= {"kld_max": float(kld_values.max())}
    unknown: dict[str, str] = {}
    for name, q in _KLD_PERCENTILES.items():
        point = stats.percentile(kld_values.ravel().tolist(), q)
        found[name] = point.value
        if point.value is None:
            unknown[name] = point.reason
    found |= _verdict(ratio, n_windows, unknown)
    if ratio.se is None:
        names = ("ppl_se", *(f"{name}_se" for name in _MEANS))
        unknown |= dict.fromkeys(names, "one window has no error between windows")
    reference_ppl = math.exp(float(theirs.mean()))
    found["broken"] = _broken(base.ppl, reference_ppl, top.mean)
    return _replaced(base, {**found, "unknown": unknown})


def _verdict(ratio: Estimate, n_windows: int, unknown: dict[str, str]) -> dict[str, object]:
    """What may be said of the ln ratio; `unknown` gets the reasons for what may not."""
    both = interval(ratio, n_windows)
    if both is None or ratio.se is None or n_windows < MIN_WINDOWS:
        reason = f"needs {MIN_WINDOWS} windows, has {n_windows}"
        unknown |= dict.fromkeys(_INTERVAL_FIELDS, reason)
        return {}
    df = n_windows - 1
    if ratio.se:
        p_value = 2 * float(scipy.special.stdtr(df, -abs(ratio.mean) / ratio.se))
    else:
        p_value = 1.0 if ratio.mean == 0 else 0.0
    word = SAME if p_value >= 0.05 else (WORSE if ratio.mean > 0 else BETTER)
    return {
        "ln_ratio_low": both.low,
        "ln_ratio_high": both.high,
        "ln_ratio_bound": ratio.mean + float(scipy.special.stdtrit(df, 0.95)) * ratio.se,
        "ln_ratio_p": p_value,
        "verdict": word,
    }


def _broken(ppl: float, reference_ppl: float, same_top: float) -> str | None:
    """Why a variant is broken, or None. A text that the reference fails on too says nothing of its size."""
    if ppl > BROKEN_PPL >= reference_ppl:
        return f"perplexity {ppl:.0f}, where the reference has {reference_ppl:.1f}"
    if same_top < BROKEN_SAME_TOP:
        return f"agrees with the reference's first choice on {same_top:.0%} of tokens only"
    return None


def broken_from_bits(bits_and_results: Sequence[tuple[float, Fidelity]]) -> float | None:
    """The bits per weight at which this ladder breaks: the largest broken size; None where none is."""
    broken = [bits for bits, result in bits_and_results if result.broken is not None]
    return max(broken, default=None)


def _prefill_tps(scores: Sequence[WindowScore]) -> float | None:
    total_ns = sum(one.prefill_ns for one in scores)
    return sum(one.n_ctx for one in scores) / total_ns * 1e9 if total_ns else None


def _replaced(base: Fidelity, changes: Mapping[str, object]) -> Fidelity:
    values = {name: getattr(base, name) for name in Fidelity.__dataclass_fields__}
    return Fidelity(**{**values, **changes})
