"""What a user asks of a variant, and whether its figures are shown to meet it.

A limit is met by the bad end of an interval; a figure that is unknown never meets one.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from liob_core.analysis import words
from liob_core.analysis.closeness import MARGIN as LN_RATIO_MARGIN
from liob_core.errors import UsageError
from liob_core.monitor.energy import SCOPES

MET, MISSED, UNKNOWN, NOT_TRIED = "met", "missed", "unknown", "not tried"
# The most pass rate that may be lost, as a share: 5 points.
PASS_MARGIN = 0.05

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is asked. None asks nothing; a loss always has a margin.

    `min_tps` is the decode rate in tokens/s, `max_bytes` the peak memory, `max_joules` the energy of one
    output token, `max_loss` a share of the pass rate, `max_ln_ratio` the ln PPL ratio in nats.
    """

    min_tps: float | None = None
    max_bytes: float | None = None
    max_joules: float | None = None
    max_loss: float = PASS_MARGIN
    max_ln_ratio: float = LN_RATIO_MARGIN

    def __post_init__(self) -> None:
        for what, value in (("speed", self.min_tps), ("memory", self.max_bytes), ("energy", self.max_joules)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"A limit of {what} must be above 0: leave it out to have none.")
        if not 0 < self.max_loss <= 1:
            raise UsageError("The loss that is allowed must be above 0 and at most 100 points.")
        if not 0 < self.max_ln_ratio <= math.log(10):
            raise UsageError("The rise of perplexity that is allowed must be above 0 and at most 900 %.")

    @property
    def has_resources(self) -> bool:
        """Whether anything but a loss is limited."""
        return any(value is not None for value in (self.min_tps, self.max_bytes, self.max_joules))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One limit and one variant: its figure, the interval, and the verdict with its words.

    `verdict` is met, missed, unknown or not tried; `bound` is the end of the interval that decides, `excess`
    by what share of the limit it is beyond it (0 where it is met, 1 where that is unknown).
    """

    limit: str  # speed | memory | energy | loss
    metric: str
    verdict: str
    sentence: str
    allowed: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    n: int | None = None
    excess: float = 0.0


def resources(row: Row, limits: Limits) -> Iterator[Evidence]:
    """The evidence for each limit but the loss; `row` is one of the view `results`."""
    if limits.min_tps is not None:
        yield _speed(row, limits.min_tps)
    if limits.max_bytes is not None:
        yield _memory(row, limits.max_bytes)
    if limits.max_joules is not None:
        yield _energy(row, limits.max_joules)


def _speed(row: Row, asked: float) -> Evidence:
    what = f"decode rate of at least {words.value('decode_tps', asked)}"
    value, low, high = (row[name] for name in ("decode_tps", "decode_tps_ci_low", "decode_tps_ci_high"))
    found = _unknown("speed", "decode_tps", what, asked)
    if value is None:
        return found
    shown = f"{what}: {words.value('decode_tps', value)}"
    found = _over_blocks(found, shown, (value, low, high), row["n_blocks"])
    return found if low is None else _decided(found, low, max(0.0, 1 - low / asked))


def _memory(row: Row, asked: float) -> Evidence:
    what = f"peak memory of at most {words.memory(asked)}"
    value, need = row["peak_memory_bytes"], row["need_bytes"]
    found = _unknown("memory", "peak_memory_bytes", what, asked)
    if value is None:
        told = f"{found.sentence}, {words.memory(need)} predicted" if need else found.sentence
        return replace(found, sentence=told)
    # The highest of all loads has no interval; it is the bad end already.
    found = replace(found, sentence=f"{what}: {words.memory(value)}", value=value)
    return _decided(found, value, max(0.0, value / asked - 1))


def _energy(row: Row, asked: float) -> Evidence:
    what = f"energy of at most {words.three_digits(asked)} J a token"
    value, low, high = (row[f"j_per_output_token{end}"] for end in ("", "_ci_low", "_ci_high"))
    found = _unknown("energy", "j_per_output_token", what, asked)
    if value is None:
        reason = json.loads(row["unknown"] or "{}").get("j_per_output_token", "not measured")
        return replace(found, sentence=f"{what}: {reason}")
    scope = SCOPES.get(row["energy_scope"], row["energy_scope"])
    shown = f"{what}: {words.value('j_per_output_token', value)} by the {scope}"
    found = _over_blocks(found, shown, (value, low, high), row["energy_n_blocks"])
    return found if high is None else _decided(found, high, max(0.0, high / asked - 1))


def _over_blocks(
    found: Evidence, shown: str, ends: tuple[float, float | None, float | None], n: int | None
) -> Evidence:
    """The evidence with a mean over blocks and both ends of its interval, where it has one."""
    value, low, high = ends
    between = words.interval(found.metric, low, high) or "one block, no interval"
    return replace(found, sentence=f"{shown} ({between})", value=value, low=low, high=high, n=n)


def _unknown(limit: str, metric: str, what: str, asked: float) -> Evidence:
    return Evidence(
        limit=limit,
        metric=metric,
        verdict=UNKNOWN,
        sentence=f"{what}: not measured",
        allowed=asked,
        excess=1.0,
    )


def _decided(found: Evidence, bound: float, excess: float) -> Evidence:
    return replace(found, verdict=MISSED if excess else MET, bound=bound, excess=excess)
