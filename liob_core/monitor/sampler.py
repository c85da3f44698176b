"""The sampler: one thread of the worker that reads the machine at a set rate while a run measures.

It never raises into the runner: a source that fails gives None and is named in `missing`. One lock
guards the probes; the thread holds it for one reading, the runner for a mark or an exchange of the
watched processes, each well below a millisecond.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from liob_core.monitor import clock
from liob_core.monitor.highwater import Peaks, PeakTracker, smaller, used_bytes
from liob_core.monitor.nvml import GpuProbe, make_gpu_probe
from liob_core.monitor.process import ProcessTree, TreeReading
from liob_core.monitor.readings import ReadingsFile
from liob_core.monitor.system import CpuMark, CpuShares, make_system_probe, read_own_cpu_s, shares_between
from liob_core.monitor.window import Cores, Tick, describe
from liob_core.types import GpuReading, Reading, Surroundings

FLUSH_EVERY_S = 1.0
SLOW_PERIOD_S = 1.0
# Bounds the memory of the monitor (about 10 MB); at 10 Hz this is half an hour. A request that lasts
# longer is described by its last half hour.
MAX_TICKS = 20_000
# The most of one core that reading devices may take; where a driver is slow they are read less often.
GPU_COST_SHARE = 0.005
_SLACK_NS = 5_000_000_000
NO_RESET = "the kernel's high-water mark cannot start again, so the peak of a run may come from readings"
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Sampler:
    """Reads the machine `hz` times a second from `start` to `stop` and answers about the past."""

    def __init__(self, hz: float, readings_path: Path, *, gpu_probe: GpuProbe | None = None) -> None:
        self._period_s = 1.0 / hz
        self._file = ReadingsFile(readings_path)
        self._gpu = gpu_probe or make_gpu_probe()
        self._system = make_system_probe()
        self._cores = _count_cores()
        self._lock = threading.Lock()
        # Held while the sampler runs: waiting for a lock costs half of waiting for an Event.
        self._running = threading.Lock()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._loop, name="sampler", daemon=True)
        self._ticks: deque[Tick] = deque(maxlen=MAX_TICKS)
        self._problems: dict[str, str] = {}
        self._tree = ProcessTree(())
        self._tracker: PeakTracker | None = None
        self._ended_trees_cpu_s = 0.0
        self._vram_idle_bytes: int | None = None
        self._next_gpu_s = 0.0
        self._started_s: float | None = None
        self._own_cost_s: float | None = None

    def start(self) -> None:
        """Begin to read."""
        self._started_s = time.monotonic()
        self._running.acquire()
        self._thread.start()

    def stop(self) -> None:
        """End reading and write what is kept; again is no harm."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._started_s is not None:
            self._running.release()
            self._thread.join()
        with self._lock:
            self._file.close()
            self._tree.close()
            self._gpu.close()
            self._system.close()

    def read_slowly(self) -> None:
        """Read once a second from now on: for work whose speed depends on what else the machine does."""
        self._period_s = max(self._period_s, SLOW_PERIOD_S)

    def watch(self, pids: tuple[int, ...], host_rss_bytes: int | None = None) -> None:
        """Watch the trees of `pids` from now on, with peaks of their own; `()` watches nothing.

        `host_rss_bytes` is what the engine held before its load.
        """
        with self._lock:
            self._ended_trees_cpu_s += self._tree.cpu_s
            self._tree.close()
            self._tree = self._try("engine_processes", lambda: ProcessTree(pids)) or ProcessTree(())
            if not pids:
                self._tracker, self._vram_idle_bytes = None, None
                return
            self._tracker = PeakTracker(host_rss_bytes, self._vram_idle_bytes, self._gpu.reason)
            self._next_gpu_s = 0.0
            self._track()

    def follow(self, pids: tuple[int, ...]) -> None:
        """Watch the trees of `pids` instead, as the same load: its peaks go on."""
        with self._lock:
            self._ended_trees_cpu_s += self._tree.cpu_s
            self._tree.close()
            self._tree = self._try("engine_processes", lambda: ProcessTree(pids)) or ProcessTree(())
            self._track()

    def mark_loaded(self) -> None:
        """The load of what is watched is over: from here on peaks belong to the run."""
        with self._lock:
            if self._tracker is None:
                return
            self._track()
            was_reset = bool(self._try("high_water_reset", self._tree.reset_high_water))
            self._tracker.mark_loaded(was_reset=was_reset)
            if not was_reset:
                self._problems["high_water_reset"] = NO_RESET

    def peaks(self) -> Peaks:
        """The peaks of what is watched, in bytes, up to now."""
        with self._lock:
            if self._tracker is None:
                reason = "no process of the engine runs on this machine"
                return Peaks(peak_memory_reason=reason, peak_vram_reason=reason)
            self._track()
            return self._tracker.peaks()

    def window(self, start_utc_ns: int, end_utc_ns: int) -> Surroundings:
        """What the machine did between two stamps of `clock.utc_ns`, to be asked at the window's end."""
        with self._lock:
            end_mark = self._mark(clock.utc_ns(), self._read_tree())
            recent: list[Tick] = []
            for tick in reversed(self._ticks):
                recent.append(tick)
                if tick.reading.utc_ns < start_utc_ns - _SLACK_NS:
                    break
        return describe(recent[::-1], start_utc_ns, end_utc_ns, self._cores, end_mark)

    def latest(self) -> Reading | None:
        """The last reading, or None before the first."""
        with self._lock:
            return self._ticks[-1].reading if self._ticks else None

    def cpu_share(self) -> float | None:
        """What the sampler's own thread costs, as a share of one core; None before the first reading."""
        if self._own_cost_s is None or self._started_s is None:
            return None
        return self._own_cost_s / max(time.monotonic() - self._started_s, self._period_s)

    @property
    def missing(self) -> dict[str, str]:
        """Which source gives nothing, and why."""
        lost = {"readings": self._file.reason} if self._file.reason else {}
        with self._lock:
            return {**self._gpu.missing, **self._problems, **lost}

    @property
    def lost_readings(self) -> int:
        """How many readings could not be stored."""
        return self._file.n_lost

    def _loop(self) -> None:
        next_s = next_flush_s = time.monotonic()
        while not self._running.acquire(timeout=max(0.0, next_s - time.monotonic())):
            with self._lock:
                self._try("reading", self._tick)
            # Outside the lock: a slow disk must not hold up the runner.
            if time.monotonic() >= next_flush_s:
                self._try("readings", self._file.flush)
                next_flush_s = time.monotonic() + FLUSH_EVERY_S
            self._own_cost_s = time.thread_time()
            # A late reading is not made up for: the gap stays visible and no burst follows it.
            next_s = max(next_s + self._period_s, time.monotonic())

    def _tick(self) -> None:
        """Take one reading and keep it."""
        utc_ns = clock.utc_ns()
        tree = self._read_tree()
        mark = self._mark(utc_ns, tree)
        last = self._ticks[-1] if self._ticks else None
        gpus = self._read_gpus()
        if self._tracker is not None:
            self._tracker.add(tree, gpus)
        else:
            self._vram_idle_bytes = smaller(self._vram_idle_bytes, used_bytes(gpus))
        shares = shares_between(last.mark, mark) if last and last.mark and mark else None
        reading = self._reading(utc_ns, tree, shares, gpus)
        vram = self._tracker.device_bytes(gpus) if self._tracker is not None else None
        self._ticks.append(Tick(reading, mark, vram))
        self._file.append(reading)

    def _reading(
        self, utc_ns: int, tree: TreeReading, shares: CpuShares | None, gpus: tuple[GpuReading, ...]
    ) -> Reading:
        n_cores = self._cores.logical
        return Reading(
            utc_ns=utc_ns,
            rss_bytes=tree.rss_bytes,
            anon_bytes=tree.anon_bytes,
            swap_bytes=tree.swap_bytes,
            engine_cpu_pct=round(100 * n_cores * shares.engine, 1) if shares and tree.n_processes else None,
            system_cpu_pct=round(100 * shares.busy, 1) if shares else None,
            other_cpu_share=round(shares.other, 4) if shares else None,
            steal_share=round(shares.steal, 4) if shares and shares.steal is not None else None,
            system_ram_bytes=self._try("system_ram", self._system.read_ram_used_bytes),
            gpus=gpus,
        )

    def _read_tree(self) -> TreeReading:
        return self._try("engine_processes", self._tree.read) or TreeReading(cpu_s=self._tree.cpu_s)

    def _mark(self, utc_ns: int, tree: TreeReading) -> CpuMark | None:
        """The CPU time so far."""
        times = self._try("system_cpu", self._system.read_cpu_times)
        if times is None:
            return None
        engine_s = self._ended_trees_cpu_s + tree.cpu_s
        return CpuMark(utc_ns=utc_ns, machine=times, engine_s=engine_s, own_s=read_own_cpu_s())

    def _read_gpus(self) -> tuple[GpuReading, ...]:
        """The devices, or nothing where it is not their turn: see GPU_COST_SHARE."""
        if self._gpu.reason is not None or time.monotonic() < self._next_gpu_s:
            return ()
        before_s = time.thread_time()
        gpus = self._try("gpu", lambda: self._gpu.read(self._tree.pids)) or ()
        self._next_gpu_s = (
            time.monotonic() + (time.thread_time() - before_s) / GPU_COST_SHARE - self._period_s / 2
        )
        return gpus

    def _track(self) -> None:
        """Bring the peaks up to this moment."""
        if self._tracker is not None:
            self._tracker.add(self._read_tree(), self._read_gpus())

    def _try(self, source: str, read: Callable[[], _T]) -> _T | None:
        """What `read` gives, or None with the reason noted; each source is logged once."""
        try:
            return read()
        except Exception as error:
            if source not in self._problems:
                _LOG.warning("The monitor cannot read %s", source, exc_info=True)
                self._problems[source] = f"{type(error).__name__}: {error}"
            return None


def _count_cores() -> Cores:
    logical = psutil.cpu_count() or 1
    return Cores(logical=logical, physical=psutil.cpu_count(logical=False) or logical)
