"""Energy counters of this machine: NVIDIA devices through NVML, processor packages and memory through RAPL.

Each scope (gpu, package, dram) is read by one source and stands alone: scopes are never added. A source that
fails gives no figure for the time in which it failed, with the reason; nothing here raises into a run.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from liob_core.monitor.nvml import GpuProbe, make_gpu_probe
from liob_core.monitor.rapl import Zone, open_zones
from liob_core.types import GpuReading

GPU, PACKAGE, DRAM = "gpu", "package", "dram"
SCOPES = {GPU: "graphics devices", PACKAGE: "processor", DRAM: "memory"}  # as people say them
NOT_MEASURED = "energy not measured"  # the event that says why a run has no windows
NVML_COUNTER, NVML_POWER, RAPL = "nvml counter", "nvml power", "rapl"
POWERCAP = Path("/sys/class/powercap")
RAPL_FIX = "sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj"
NO_COUNTER = "this system shows none of its processor"
NOT_ALLOWED = f"only root may read the processor's energy counters; until a restart `{RAPL_FIX}` opens them"
POWER_PERIOD_S = 0.1
# Between power readings further apart than this anything may have happened.
MOST_GAP_S = 0.5
# RAPL counters wrap after 65 to 262 kJ: read this often, none can wrap twice unseen.
KEEP_UP_S = 30.0
_LOG = logging.getLogger(__name__)


class _Lost(Exception):  # noqa: N818 - a figure is missing, nothing is wrong
    """Why a counter cannot tell what was spent up to now."""


class Counter(Protocol):
    """One scope's joules since some moment."""

    @property
    def source(self) -> str:
        """What tells them."""
        ...

    def begin(self) -> None:
        """Forget the past: nothing was read for a while."""
        ...

    def read(self, at_s: float) -> float:
        """The joules up to `at_s`, which is now; raises where that is not known."""
        ...


@dataclass(frozen=True, slots=True)
class Mark:
    """One moment, in seconds of the meter's clock, and the joules of each scope until then."""

    at_s: float
    joules: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Spent:
    """Joules between two marks, or None with the reason."""

    joules: float | None
    reason: str | None = None


class EnergyMeter:
    """The counters that can be read here; `missing` says of the other scopes why they cannot."""

    def __init__(
        self,
        counters: Mapping[str, Counter],
        missing: Mapping[str, str],
        *,
        fix: str = "",
        now_s: Callable[[], float] = time.perf_counter,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._counters = dict(counters)
        self._now_s = now_s
        self._lock = threading.Lock()
        self._losses: list[tuple[float, str, str]] = []
        self.missing = dict(missing)
        self.fix = fix  # the command that opens a counter which is there and may not be read
        self.close = close

    @property
    def sources(self) -> Mapping[str, str]:
        """What each scope is read by; empty where there is none."""
        return {scope: counter.source for scope, counter in self._counters.items()}

    @property
    def reason(self) -> str | None:
        """Why nothing can be measured, or None where something can."""
        return (
            None
            if self._counters
            else f"no energy counter that LIOB can read: {'; '.join(self.missing.values())}"
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Read as often as each source needs until the block ends; marks are of use only within."""
        is_power = NVML_POWER in self.sources.values()
        period_s = POWER_PERIOD_S if is_power else KEEP_UP_S
        ended = threading.Event()

        def keep_up() -> None:
            while not ended.wait(period_s):
                self.mark()

        with self._lock:
            self._losses.clear()
            for counter in self._counters.values():
                counter.begin()
        thread = threading.Thread(target=keep_up, name="energy", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def mark(self) -> Mark:
        """This moment; a scope that cannot be read is not in it."""
        with self._lock:
            at_s, joules = self._now_s(), {}
            for scope, counter in self._counters.items():
                try:
                    joules[scope] = counter.read(at_s)
                except _Lost as lost:
                    self._losses.append((at_s, scope, str(lost)))
                except (OSError, ValueError) as error:
                    why = error.strerror if isinstance(error, OSError) else error
                    self._losses.append((at_s, scope, f"the energy counter cannot be read any more ({why})"))
                except Exception as error:  # no sensor may end a run
                    _LOG.warning("The energy of %s cannot be read", scope, exc_info=True)
                    self._losses.append((at_s, scope, f"{type(error).__name__}: {error}"))
        return Mark(at_s, joules)

    def spent(self, scope: str, first: Mark, last: Mark) -> Spent:
        """The joules of a scope between two marks of one `running`."""
        with self._lock:
            lost = [
                why for at_s, name, why in self._losses if name == scope and first.at_s <= at_s <= last.at_s
            ]
        if lost:
            return Spent(None, lost[0])
        if scope not in first.joules or scope not in last.joules:
            return Spent(None, "the counter could not be read")
        joules = last.joules[scope] - first.joules[scope]
        # Some virtual machines show counters that stand still.
        return Spent(joules) if joules > 0 else Spent(None, "the energy counter did not move")

    def power_w(self, scope: str, first: Mark, last: Mark) -> float | None:
        """The mean power of a scope between two marks, in W; None where it is not known."""
        joules, seconds = self.spent(scope, first, last).joules, last.at_s - first.at_s
        return None if joules is None or seconds <= 0 else joules / seconds


def make_meter(gpu: GpuProbe | None = None, powercap: Path = POWERCAP) -> EnergyMeter:
    """A meter of what can be read on this machine; never raises. A probe that is given stays open."""
    probe = gpu or make_gpu_probe()
    counters: dict[str, Counter] = {}
    missing: dict[str, str] = {}
    try:
        counters[GPU] = _nvml(probe)
    except _Lost as lost:
        missing[GPU] = str(lost)
    (packages, memory), is_shut = open_zones(powercap)
    counters |= {scope: _Rapl(own) for scope, own in ((PACKAGE, packages), (DRAM, memory)) if own}
    if PACKAGE not in counters:
        missing[PACKAGE] = NOT_ALLOWED if is_shut else NO_COUNTER
    if gpu is None and GPU not in counters:
        probe.close()
    close = probe.close if gpu is None and GPU in counters else lambda: None
    return EnergyMeter(counters, missing, fix=RAPL_FIX if is_shut else "", close=close)


# --- NVIDIA devices ---------------------------------------------------------------------------


def _nvml(probe: GpuProbe) -> Counter:
    """All visible devices together, by their counters where every one has one."""
    if probe.reason is not None:
        raise _Lost(probe.reason)
    readings = probe.read(())
    if readings and all(reading.energy_mj is not None for reading in readings):
        return _NvmlCounter(probe)
    if readings and all(reading.power_w is not None for reading in readings):
        return _NvmlPower(probe)
    silent = [str(reading.device) for reading in readings if reading.power_w is None]
    raise _Lost(f"graphics device {', '.join(silent)} tells neither its energy nor its power")


def _told(values: Sequence[float | None], readings: Sequence[GpuReading]) -> list[float]:
    """The values, where every device told its own."""
    silent = [str(one.device) for one, value in zip(readings, values, strict=True) if value is None]
    if silent or not readings:
        raise _Lost(f"graphics device {', '.join(silent)} stopped telling it")
    return [value for value in values if value is not None]


class _NvmlCounter:
    """The devices' own total energy, which the driver counts in mJ."""

    source = NVML_COUNTER

    def __init__(self, probe: GpuProbe) -> None:
        self._probe = probe

    def begin(self) -> None:
        """The driver counts by itself."""

    def read(self, at_s: float) -> float:
        """The sum over the devices in J."""
        readings = self._probe.read(())
        return sum(_told([reading.energy_mj for reading in readings], readings)) / 1000


class _NvmlPower:
    """Power of the devices, integrated over time by the trapezoidal rule."""

    source = NVML_POWER

    def __init__(self, probe: GpuProbe) -> None:
        self._probe = probe
        self._joules = 0.0
        self._last: tuple[float, float] | None = None

    def begin(self) -> None:
        """The next reading is the first."""
        self._last = None

    def read(self, at_s: float) -> float:
        """The joules since the first reading."""
        readings = self._probe.read(())
        power_w = sum(_told([reading.power_w for reading in readings], readings))
        last, self._last = self._last, (at_s, power_w)
        if last is not None:
            gap_s = at_s - last[0]
            if gap_s > MOST_GAP_S:
                raise _Lost(f"readings of the power were {gap_s:.1f} s apart")
            self._joules += (power_w + last[1]) / 2 * gap_s
        return self._joules


class _Rapl:
    """The same part of every processor, together."""

    source = RAPL

    def __init__(self, zones: Sequence[Zone]) -> None:
        self._zones = zones

    def begin(self) -> None:
        """Bring the counters up to now, since they may have wrapped while nobody looked."""
        with suppress(OSError, ValueError):  # the next reading tells of it
            self.read(0.0)

    def read(self, at_s: float) -> float:
        """The sum over the processors in J."""
        return sum(zone.joules() for zone in self._zones)
