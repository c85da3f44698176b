"""The peaks of one load: memory while loading and while running, on the host and on the devices.

The kernel's own mark (VmHWM, PeakWorkingSet) sees what happens between two readings and before the
first one, so a peak is never below it. It holds resident memory of single processes only; what is
anonymous, swapped or on a device comes from readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from liob_core.monitor.process import TreeReading
from liob_core.types import GpuReading

NOT_PER_PROCESS = (
    "growth of the devices' used memory since before the load: the driver does not tell it per process"
)
HOST_UNKNOWN = "the engine's own memory before the load is not known, so it is included"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """The peaks of one load in bytes; a reason says why one is None or what it includes."""

    peak_rss_load_bytes: int | None = None
    peak_rss_run_bytes: int | None = None
    peak_anon_bytes: int | None = None  # anonymous and swap
    peak_memory_bytes: int | None = None  # host less what the engine held before the load, plus devices
    peak_memory_reason: str | None = None
    peak_vram_bytes: int | None = None
    peak_vram_reason: str | None = None


class PeakTracker:
    """Peaks of the watched tree from its first reading on.

    `vram_idle_bytes` is what the devices held before the load, `gpu_reason` why there are none.
    """

    def __init__(
        self, host_rss_bytes: int | None, vram_idle_bytes: int | None, gpu_reason: str | None
    ) -> None:
        self._host_rss_bytes = host_rss_bytes
        self._vram_idle_bytes = vram_idle_bytes
        self._gpu_reason = gpu_reason
        self._is_loaded = False
        self._stale_mark_bytes = -1
        self._last_mark_bytes: int | None = None
        self._rss_load: int | None = None
        self._rss_run: int | None = None
        self._anon: int | None = None
        self._sum: int | None = None
        self._vram: int | None = None
        self._vram_is_growth = False

    def add(self, tree: TreeReading, gpus: Sequence[GpuReading]) -> None:
        """Take one moment into account."""
        device = self.device_bytes(gpus)
        self._vram = _larger(self._vram, device)
        if tree.rss_bytes is None:
            return
        peak = tree.rss_bytes
        mark = tree.high_water_bytes
        self._last_mark_bytes = mark
        if mark is not None and mark > self._stale_mark_bytes:
            peak = max(peak, mark)
        if self._is_loaded:
            self._rss_run = _larger(self._rss_run, peak)
        else:
            self._rss_load = _larger(self._rss_load, peak)
        if tree.anon_bytes is not None:
            self._anon = _larger(self._anon, tree.anon_bytes + (tree.swap_bytes or 0))
        # Swapped pages are memory the engine asked for; a mark alone still bounds the sum from below.
        now = tree.rss_bytes + (tree.swap_bytes or 0) + (device or 0)
        self._sum = _larger(self._sum, max(now, peak) - (self._host_rss_bytes or 0))

    def mark_loaded(self, *, was_reset: bool) -> None:
        """The load is over. Where the mark could not start again, only a higher one counts from here."""
        self._is_loaded = True
        if not was_reset and self._last_mark_bytes is not None:
            self._stale_mark_bytes = self._last_mark_bytes

    def peaks(self) -> Peaks:
        """The peaks so far."""
        vram_reason = self._vram_reason()
        memory, memory_reason = self._memory(vram_reason)
        return Peaks(
            peak_rss_load_bytes=self._rss_load,
            peak_rss_run_bytes=self._rss_run,
            peak_anon_bytes=self._anon,
            peak_memory_bytes=memory,
            peak_memory_reason=memory_reason,
            peak_vram_bytes=self._vram,
            peak_vram_reason=vram_reason,
        )

    def _memory(self, vram_reason: str | None) -> tuple[int | None, str | None]:
        if self._sum is None:
            return None, "no process of the engine could be read on this machine"
        if self._gpu_reason is None and self._vram is None:
            return None, vram_reason
        return max(0, self._sum), HOST_UNKNOWN if self._host_rss_bytes is None else None

    def _vram_reason(self) -> str | None:
        if self._gpu_reason is not None:
            return self._gpu_reason
        if self._vram is None:
            return "the devices do not tell their used memory"
        return NOT_PER_PROCESS if self._vram_is_growth else None

    def device_bytes(self, gpus: Sequence[GpuReading]) -> int | None:
        """What the engine holds on all devices, or None where it cannot be told."""
        if not gpus:
            return None
        per_process = [gpu.process_bytes for gpu in gpus if gpu.process_bytes is not None]
        if len(per_process) == len(gpus):
            return sum(per_process)
        used = used_bytes(gpus)
        if used is None or self._vram_idle_bytes is None:
            return None
        self._vram_is_growth = True
        return max(0, used - self._vram_idle_bytes)


def used_bytes(gpus: Sequence[GpuReading]) -> int | None:
    """Bytes in use on all devices together, or None where one does not tell."""
    used = [gpu.used_bytes for gpu in gpus]
    return None if not used or None in used else sum(part or 0 for part in used)


def smaller(known: int | None, new: int | None) -> int | None:
    """The smaller of two numbers of bytes, of which either may be unknown."""
    if new is None:
        return known
    return new if known is None else min(known, new)


def _larger(known: int | None, new: int | None) -> int | None:
    if new is None:
        return known
    return new if known is None else max(known, new)
