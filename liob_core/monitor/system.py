"""CPU time and memory of the whole machine, and whose CPU time it was.

The kernel counts CPU time in ticks (10 ms on Linux), so a share over one period of 100 ms is coarse.
Everything that is judged is therefore the difference of two cumulative marks at the ends of a window.
"""

import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """CPU seconds of all cores together since boot. `steal_s` is None where the system has none."""

    total_s: float
    busy_s: float  # worked by this machine: neither idle, waiting for a disk, nor stolen
    steal_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuMark:
    """Cumulative CPU time at one moment: of the machine, the engine and LIOB itself."""

    utc_ns: int
    machine: CpuTimes
    engine_s: float
    own_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuShares:
    """Who used the machine's CPU time between two marks, 0 to 1 of all cores."""

    busy: float
    engine: float
    other: float  # neither the engine nor LIOB
    steal: float | None


def read_cpu_times() -> CpuTimes:
    """The machine's CPU seconds since boot."""
    times = psutil.cpu_times()
    # Linux counts a guest's time in `user` as well, so the guest fields are left out of the sum.
    busy = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    steal = getattr(times, "steal", None)
    idle = times.idle + getattr(times, "iowait", 0.0)
    return CpuTimes(total_s=busy + idle + (steal or 0.0), busy_s=busy, steal_s=steal)


def read_own_cpu_s() -> float:
    """CPU seconds of this process, all of its threads, without its children."""
    return time.process_time()


def read_ram_used_bytes() -> int:
    """Bytes of the machine's memory that are not available to a new process."""
    memory = psutil.virtual_memory()
    return int(memory.total - memory.available)


def shares_between(first: CpuMark, last: CpuMark) -> CpuShares | None:
    """Whose CPU time passed from `first` to `last`, or None where no tick lies between.

    A process's own ticks and the machine's are counted apart, so a remainder below 0 means "none".
    """
    total = last.machine.total_s - first.machine.total_s
    if total <= 0:
        return None
    busy = _share(last.machine.busy_s - first.machine.busy_s, total)
    engine = _share(last.engine_s - first.engine_s, total)
    own = _share(last.own_s - first.own_s, total)
    steal = None
    if first.machine.steal_s is not None and last.machine.steal_s is not None:
        steal = _share(last.machine.steal_s - first.machine.steal_s, total)
    return CpuShares(busy=busy, engine=engine, other=max(0.0, busy - engine - own), steal=steal)


def _share(part_s: float, total_s: float) -> float:
    return min(1.0, max(0.0, part_s / total_s))
