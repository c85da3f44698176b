"""Estimates while an evaluation runs: what is known after each window, and when that is enough."""

from dataclasses import dataclass

from liob_core import stats
from liob_core.quality.closeness.fidelity import MIN_WINDOWS
from liob_core.quality.closeness.records import WindowScore


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One variant after `n_windows`: means in nats with the half widths of their 95 % t intervals.

    `ln` is the ln ratio to the reference, or ln PPL where there is none to compare with.
    """

    n_windows: int
    ln: float
    ln_half_width: float | None
    kld: float | None
    kld_half_width: float | None


class RunningEstimates:
    """Window means of every variant, added one by one."""

    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._nll: dict[str, dict[int, float]] = {}
        self._kld: dict[str, dict[int, float]] = {}
        self._known: dict[str, Running | None] = {}  # asked for more often than windows come

    def add(self, score: WindowScore) -> None:
        """Take in one window."""
        self._nll.setdefault(score.variant, {})[score.window] = float(score.nll.mean())
        if score.kld is not None:
            self._kld.setdefault(score.variant, {})[score.window] = float(score.kld.mean())
        if score.variant == self._reference:
            self._known.clear()
        self._known.pop(score.variant, None)

    def of(self, variant: str) -> Running | None:
        """What is known of a variant now; None before its first window."""
        if variant not in self._known:
            self._known[variant] = self._estimate(variant)
        return self._known[variant]

    def _estimate(self, variant: str) -> Running | None:
        own = self._nll.get(variant, {})
        theirs = self._nll.get(self._reference, {})
        if variant == self._reference:
            values = list(own.values())
        else:
            values = [value - theirs[window] for window, value in own.items() if window in theirs]
        if not values:
            return None
        ln, ln_half = _mean_and_half_width(values)
        klds = list(self._kld.get(variant, {}).values())
        kld, kld_half = _mean_and_half_width(klds) if klds else (None, None)
        return Running(n_windows=len(values), ln=ln, ln_half_width=ln_half, kld=kld, kld_half_width=kld_half)

    def is_narrow(self, variant: str, half_width: float) -> bool:
        """Whether a variant's interval reaches at most `half_width` to each side, over enough windows."""
        known = self.of(variant)
        return (
            known is not None
            and known.n_windows >= MIN_WINDOWS
            and known.ln_half_width is not None
            and known.ln_half_width <= half_width
        )


def _mean_and_half_width(values: list[float]) -> tuple[float, float | None]:
    mean = stats.mean_interval(values)
    return mean.mean, None if mean.interval is None else mean.interval.high - mean.mean
