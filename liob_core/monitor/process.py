"""Memory and CPU time of a process tree, cheap enough to read ten times a second.

On Linux one open file per process is read again and again (`/proc/<pid>/status` and `stat`): it costs
no walk over page tables, as `smaps` does, and it can never show a process that took over the pid.
Elsewhere psutil answers.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

IS_LINUX = sys.platform.startswith("linux")
CHILDREN_EVERY_S = 2.0
# Without the kernel's list of children, psutil reads every process of the machine to find them.
CHILDREN_EVERY_S_SLOW = 5.0
_RESET_PEAK_RSS = b"5"  # proc(5), clear_refs


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReading:
    """One process at one moment, in bytes and CPU seconds; None: the platform does not tell."""

    rss_bytes: int
    anon_bytes: int | None
    swap_bytes: int | None
    high_water_bytes: int | None
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeReading:
    """A process tree at one moment: sums in bytes, None where no process is left or told."""

    rss_bytes: int | None = None
    anon_bytes: int | None = None
    swap_bytes: int | None = None
    # The highest mark of any one process: the tree's own peak where it is one process, else below it.
    high_water_bytes: int | None = None
    cpu_s: float = 0.0  # since the tree is watched, ended processes included
    n_processes: int = 0


class ProcessProbe(Protocol):
    """One process that is watched."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def read(self) -> ProcessReading | None:
        """Its memory and CPU time, or None once it has ended."""
        ...

    def children(self) -> list[int]:
        """The pids of its direct children."""
        ...

    def reset_high_water(self) -> bool:
        """Whether the mark of the highest RSS now starts again from the RSS of this moment."""
        ...

    def close(self) -> None:
        """Free what the probe holds open."""
        ...


class LinuxProcess:
    """A process seen through files under `/proc/<pid>` that stay open."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self.pid = pid
        self._dir = proc / str(pid)
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._status = os.open(self._dir / "status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._stat = os.open(self._dir / "stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(self._status)
            raise

    def read(self) -> ProcessReading | None:
        """Its memory and CPU time, or None once it has ended (a zombie has no memory either)."""
        try:
            status = os.pread(self._status, 8192, 0)
            stat = os.pread(self._stat, 2048, 0)
        except OSError:
            return None
        rss = _kb_field(status, b"\nVmRSS:")
        if rss is None:
            return None
        # The name in brackets may hold spaces and brackets, so count fields from its end.
        fields = stat[stat.rindex(b")") + 2 :].split()
        return ProcessReading(
            rss_bytes=rss,
            anon_bytes=_kb_field(status, b"\nRssAnon:"),
            swap_bytes=_kb_field(status, b"\nVmSwap:"),
            high_water_bytes=_kb_field(status, b"\nVmHWM:"),
            cpu_s=(int(fields[11]) + int(fields[12])) * self._tick_s,
        )

    def children(self) -> list[int]:
        """The pids of its direct children, as the kernel lists them per thread."""
        found: list[int] = []
        for task in os.scandir(self._dir / "task"):
            # A thread that ends between the listing and the reading has handed its children on.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (Path(task.path) / "children").read_bytes().split())
        return found

    def reset_high_water(self) -> bool:
        """Whether VmHWM now starts again; the kernel refuses where `/proc` is read-only."""
        try:
            (self._dir / "clear_refs").write_bytes(_RESET_PEAK_RSS)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close both files."""
        os.close(self._status)
        os.close(self._stat)


class PsutilProcess:
    """A process seen through psutil, for macOS and Windows."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)

    def read(self) -> ProcessReading | None:
        """Its memory and CPU time, or None once it has ended; anonymous memory is not told."""
        try:
            with self._process.oneshot():
                if self._process.status() == psutil.STATUS_ZOMBIE:
                    return None
                memory = self._process.memory_info()
                cpu = self._process.cpu_times()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return None
        return ProcessReading(
            rss_bytes=memory.rss,
            anon_bytes=None,
            swap_bytes=None,
            high_water_bytes=getattr(memory, "peak_wset", None),
            cpu_s=cpu.user + cpu.system,
        )

    def children(self) -> list[int]:
        """The pids of its direct children."""
        try:
            return [child.pid for child in self._process.children()]
        except psutil.NoSuchProcess:
            return []

    def reset_high_water(self) -> bool:
        """False: neither Windows nor macOS can start the mark again."""
        return False

    def close(self) -> None:
        """Nothing is held open."""


def open_process(pid: int) -> ProcessProbe | None:
    """The probe of the process `pid`, or None where there is no such process."""
    try:
        return LinuxProcess(pid) if IS_LINUX else PsutilProcess(pid)
    except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
        return None


class ProcessTree:
    """The processes `pids` and everything below them."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._probes: dict[int, ProcessProbe] = {}
        self._last_cpu_s: dict[int, float] = {}
        self._cpu_s = 0.0
        self._has_children_lists = IS_LINUX and Path("/proc/self/task", str(os.getpid()), "children").exists()
        for pid in pids:
            self._add(pid, is_new=False)
        self._find_children(are_new=False)

    @property
    def pids(self) -> tuple[int, ...]:
        """The pids that were alive when last read."""
        return tuple(self._probes)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the tree since it is watched, as last read."""
        return self._cpu_s

    def read(self) -> TreeReading:
        """The tree's sums; looks for new children once in a while."""
        if time.monotonic() >= self._next_children_s:
            self._find_children(are_new=True)
        readings: list[ProcessReading] = []
        for pid, probe in list(self._probes.items()):
            reading = probe.read()
            if reading is None:
                self._drop(pid)
                continue
            readings.append(reading)
            self._cpu_s += max(0.0, reading.cpu_s - self._last_cpu_s[pid])
            self._last_cpu_s[pid] = reading.cpu_s
        return _sum(readings, self._cpu_s)

    def reset_high_water(self) -> bool:
        """Whether every process's mark of the highest RSS started again."""
        were_reset = [probe.reset_high_water() for probe in self._probes.values()]
        return bool(were_reset) and all(were_reset)

    def close(self) -> None:
        """Free every probe."""
        for pid in list(self._probes):
            self._drop(pid)

    def _add(self, pid: int, *, is_new: bool) -> None:
        """Watch `pid`; the CPU time of one that started under our eyes counts from its beginning."""
        probe = open_process(pid)
        if probe is None:
            return
        reading = None if is_new else probe.read()
        self._probes[pid] = probe
        self._last_cpu_s[pid] = reading.cpu_s if reading else 0.0

    def _drop(self, pid: int) -> None:
        self._probes.pop(pid).close()
        del self._last_cpu_s[pid]

    def _find_children(self, *, are_new: bool) -> None:
        every_s = CHILDREN_EVERY_S if self._has_children_lists else CHILDREN_EVERY_S_SLOW
        self._next_children_s = time.monotonic() + every_s
        waiting = list(self._probes.values())
        while waiting:
            # A process may end at any moment of the walk; the next reading notices.
            with contextlib.suppress(OSError):
                for child in self._children_of(waiting.pop()):
                    if child not in self._probes:
                        self._add(child, is_new=are_new)
                        waiting += [self._probes[child]] if child in self._probes else []

    def _children_of(self, probe: ProcessProbe) -> list[int]:
        if self._has_children_lists or not IS_LINUX:
            return probe.children()
        return PsutilProcess(probe.pid).children()


def _kb_field(status: bytes, name: bytes) -> int | None:
    """The field `name` of a `/proc/<pid>/status` text in bytes, or None where it is absent."""
    at = status.find(name)
    if at < 0:
        return None
    return int(status[at + len(name) : status.index(b"kB", at)]) * 1024


def _sum(readings: list[ProcessReading], cpu_s: float) -> TreeReading:
    """The sums of one moment; a part that one process does not tell is unknown for the tree."""
    if not readings:
        return TreeReading(cpu_s=cpu_s)
    rss, anon, swap, mark = 0, 0, 0, 0
    tells_anon = tells_swap = tells_mark = True
    for reading in readings:
        rss += reading.rss_bytes
        anon += reading.anon_bytes or 0
        swap += reading.swap_bytes or 0
        mark = max(mark, reading.high_water_bytes or 0)
        tells_anon = tells_anon and reading.anon_bytes is not None
        tells_swap = tells_swap and reading.swap_bytes is not None
        tells_mark = tells_mark and reading.high_water_bytes is not None
    return TreeReading(
        rss_bytes=rss,
        anon_bytes=anon if tells_anon else None,
        swap_bytes=swap if tells_swap else None,
        high_water_bytes=mark if tells_mark else None,
        cpu_s=cpu_s,
        n_processes=len(readings),
    )
