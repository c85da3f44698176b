"""CPU time and memory of the whole machine, and whose CPU time it was.

The kernel counts CPU time in ticks (10 ms on Linux), so a share over one period of 100 ms is coarse.
Everything that is judged is therefore the difference of two cumulative marks at the ends of a window.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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


class SystemProbe(Protocol):
    """The whole machine."""

    def read_cpu_times(self) -> CpuTimes:
        """CPU seconds of all cores since boot."""
        ...

    def read_ram_used_bytes(self) -> int:
        """Bytes of memory that are not available to a new process."""
        ...

    def close(self) -> None:
        """Free what is held open."""
        ...


class LinuxSystem:
    """The machine seen through two files that stay open: a third of the cost of psutil."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._stat = os.open(proc / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self._meminfo = os.open(proc / "meminfo", os.O_RDONLY | os.O_CLOEXEC)

    def read_cpu_times(self) -> CpuTimes:
        """CPU seconds of all cores since boot. A guest's time is in `user` too, so it is not added."""
        line = os.pread(self._stat, 256, 0)
        user, nice, kernel, idle, iowait, irq, softirq, steal = map(int, line.split(None, 9)[1:9])
        busy = user + nice + kernel + irq + softirq
        total = busy + idle + iowait + steal
        tick_s = self._tick_s
        return CpuTimes(total_s=total * tick_s, busy_s=busy * tick_s, steal_s=steal * tick_s)

    def read_ram_used_bytes(self) -> int:
        """MemTotal less MemAvailable."""
        text = os.pread(self._meminfo, 512, 0)
        return _meminfo_bytes(text, b"MemTotal:") - _meminfo_bytes(text, b"MemAvailable:")

    def close(self) -> None:
        """Close both files."""
        os.close(self._stat)
        os.close(self._meminfo)


class PsutilSystem:
    """The machine seen through psutil, for macOS and Windows: there is no steal time."""

    def read_cpu_times(self) -> CpuTimes:
        """CPU seconds of all cores since boot."""
        times = psutil.cpu_times()
        busy = times.user + times.system + getattr(times, "nice", 0.0)
        return CpuTimes(total_s=busy + times.idle, busy_s=busy, steal_s=None)

    def read_ram_used_bytes(self) -> int:
        """The total less what is available."""
        memory = psutil.virtual_memory()
        return int(memory.total - memory.available)

    def close(self) -> None:
        """Nothing is held open."""


def make_system_probe() -> SystemProbe:
    """The probe for this platform."""
    return LinuxSystem() if sys.platform.startswith("linux") else PsutilSystem()


def read_own_cpu_s() -> float:
    """CPU seconds of this process, all of its threads, without its children."""
    return time.process_time()


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


def _meminfo_bytes(text: bytes, name: bytes) -> int:
    start = text.index(name) + len(name)
    return int(text[start : text.index(b"kB", start)]) * 1024
