"""What the machine did during one sample, from the readings around it. Pure: no clock, no probe."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from liob_core.monitor.system import CpuMark, CpuShares, shares_between
from liob_core.types import Reading, Surroundings

# One busy process on a machine whose cores the engine fills made decoding eight times slower.
CONTENDED_SHARE = 0.10
# On a large machine one busy core is a small share, yet it delays an engine that wants every core.
CROWDED_OTHER_CORES = 0.5
CROWDED_BUSY_SHARE = 0.95
# The kernel counts in ticks of 10 ms: over less than this, two or three stray ticks decide.
MIN_SPAN_S = 0.5
_NS_PER_S = 1_000_000_000
_N = TypeVar("_N", int, float)


@dataclass(frozen=True, slots=True)
class Tick:
    """One reading and the cumulative CPU time at its moment; `mark` is None where it was not readable."""

    reading: Reading
    mark: CpuMark | None
    vram_bytes: int | None = None  # the engine's, on all devices


@dataclass(frozen=True, slots=True)
class Cores:
    """How many cores the machine has: as the kernel counts CPU time, and real ones."""

    logical: int
    physical: int


def describe(
    ticks: Sequence[Tick], start_utc_ns: int, end_utc_ns: int, cores: Cores, end_mark: CpuMark | None = None
) -> Surroundings:
    """What happened between two stamps (ns since the epoch); shares are 0 to 1 of all cores.

    `ticks` are in order of time; `end_mark` is a mark taken after the last of them.
    """
    inside = [tick for tick in ticks if start_utc_ns <= tick.reading.utc_ns <= end_utc_ns]
    near = inside or _nearest(ticks, start_utc_ns, end_utc_ns)
    marks = [tick.mark for tick in ticks if tick.mark is not None]
    if end_mark is not None:
        marks.append(end_mark)
    shares = _shares(marks, start_utc_ns, end_utc_ns)
    mean_pct = None if shares is None else 100 * shares.busy
    peaks = [tick.reading.system_cpu_pct for tick in inside]
    return Surroundings(
        cpu_mean_pct=mean_pct,
        cpu_peak_pct=_highest([*peaks, mean_pct]),
        cpu_other_share=None if shares is None else shares.other,
        cpu_steal_share=None if shares is None else shares.steal,
        peak_rss_bytes=_highest(tick.reading.rss_bytes for tick in near),
        peak_system_ram_bytes=_highest(tick.reading.system_ram_bytes for tick in near),
        peak_vram_bytes=_highest(tick.vram_bytes for tick in near),
        contended=None if shares is None else is_contended(shares, cores),
        n_readings=len(inside),
    )


def is_contended(shares: CpuShares, cores: Cores) -> bool:
    """Whether others took CPU time that the engine may have wanted."""
    taken = shares.other + (shares.steal or 0.0)
    if taken > CONTENDED_SHARE:
        return True
    wanted_cores = (taken + shares.engine) * cores.logical
    return taken * cores.logical > CROWDED_OTHER_CORES and wanted_cores > CROWDED_BUSY_SHARE * cores.physical


def _shares(marks: Sequence[CpuMark], start_utc_ns: int, end_utc_ns: int) -> CpuShares | None:
    """The shares between the marks nearest the two stamps, widened until the span can be judged."""
    if len(marks) < 2:
        return None
    first = _index_of_nearest(marks, start_utc_ns)
    last = _index_of_nearest(marks, end_utc_ns)
    while marks[last].utc_ns - marks[first].utc_ns < MIN_SPAN_S * _NS_PER_S:
        if first == 0 and last == len(marks) - 1:
            return None
        first = max(0, first - 1)
        last = min(len(marks) - 1, last + 1)
    if marks[last].utc_ns < start_utc_ns or marks[first].utc_ns > end_utc_ns:
        return None  # nothing was seen at that time
    return shares_between(marks[first], marks[last])


def _index_of_nearest(marks: Sequence[CpuMark], utc_ns: int) -> int:
    return min(range(len(marks)), key=lambda index: abs(marks[index].utc_ns - utc_ns))


def _nearest(ticks: Sequence[Tick], start_utc_ns: int, end_utc_ns: int) -> list[Tick]:
    """The reading closest to the stamps, for a sample shorter than the pause between two readings."""
    middle = (start_utc_ns + end_utc_ns) // 2
    close = [
        tick for tick in ticks if start_utc_ns - _NS_PER_S <= tick.reading.utc_ns <= end_utc_ns + _NS_PER_S
    ]
    return [min(close, key=lambda tick: abs(tick.reading.utc_ns - middle))] if close else []


def _highest(values: Iterable[_N | None]) -> _N | None:
    return max((value for value in values if value is not None), default=None)
