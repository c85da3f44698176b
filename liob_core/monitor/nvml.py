"""NVIDIA devices through NVML; a machine without them gets a null probe that says why.

Nothing is loaded at import. A device that stops answering gives None from then on, with the reason.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import psutil

from liob_core.types import GpuInfo, GpuReading


class GpuProbe(Protocol):
    """The machine's graphics devices, as far as they can be read."""

    @property
    def reason(self) -> str | None:
        """Why there is no device, or None where there is one."""
        ...

    @property
    def missing(self) -> Mapping[str, str]:
        """Which value of which device cannot be read, and why."""
        ...

    def devices(self) -> tuple[GpuInfo, ...]:
        """What the devices are."""
        ...

    def read(self, pids: Iterable[int]) -> tuple[GpuReading, ...]:
        """The devices now; `process_bytes` is what the processes `pids` hold on each."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


class NullGpuProbe:
    """No device can be read, and `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.missing = {"gpu": reason}

    def devices(self) -> tuple[GpuInfo, ...]:
        """Nothing."""
        return ()

    def read(self, pids: Iterable[int]) -> tuple[GpuReading, ...]:
        """Nothing."""
        return ()

    def close(self) -> None:
        """Nothing is held."""


def make_gpu_probe(nvml: Any = None) -> GpuProbe:
    """A probe of the NVIDIA devices, or a null probe with the reason; never raises.

    `nvml` is the `pynvml` module or a stand-in for it.
    """
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return NullGpuProbe("the package nvidia-ml-py is not installed")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return NullGpuProbe(f"no NVIDIA driver answers ({error})")
    try:
        handles = _handles(nvml)
    except nvml.NVMLError as error:
        return NullGpuProbe(f"the NVIDIA driver lists no devices ({error})")
    if not handles:
        return NullGpuProbe("the NVIDIA driver is there, but no device is visible")
    return NvmlProbe(nvml, handles)


class NvmlProbe:
    """Every visible NVIDIA device; where a device is split by MIG, each of its visible parts."""

    reason: str | None = None

    def __init__(self, nvml: Any, handles: list[Any]) -> None:
        self._nvml = nvml
        self._devices = [_Device(nvml, index, handle) for index, handle in enumerate(handles)]

    @property
    def missing(self) -> dict[str, str]:
        """Which value of which device cannot be read, and why."""
        return {name: why for device in self._devices for name, why in device.missing.items()}

    def devices(self) -> tuple[GpuInfo, ...]:
        """What the devices are, with their memory in bytes."""
        try:
            driver = str(self._nvml.nvmlSystemGetDriverVersion())
        except self._nvml.NVMLError:
            driver = None
        return tuple(device.info(driver) for device in self._devices)

    def read(self, pids: Iterable[int]) -> tuple[GpuReading, ...]:
        """The devices now; values they do not tell are None."""
        wanted = frozenset(pids)
        return tuple(device.read(wanted) for device in self._devices)

    def close(self) -> None:
        """Let go of the driver."""
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            return  # a driver that is gone has nothing left to free


class _Device:
    """One device. What it does not support is asked once; a device that is lost is left alone."""

    def __init__(self, nvml: Any, index: int, handle: Any) -> None:
        self._nvml = nvml
        self._index = index
        self._handle = handle
        self._is_lost = False
        self._unsupported: set[str] = set()
        self.missing: dict[str, str] = {}

    def info(self, driver: str | None) -> GpuInfo:
        """Its name, memory in bytes and driver."""
        name = self._ask("name", self._nvml.nvmlDeviceGetName)
        memory = self._ask("memory", self._nvml.nvmlDeviceGetMemoryInfo)
        return GpuInfo(
            index=self._index,
            name=str(name) if name else "unknown NVIDIA device",
            memory_bytes=int(memory.total) if memory else None,
            driver=driver,
        )

    def read(self, pids: frozenset[int]) -> GpuReading:
        """Its values now."""
        nvml = self._nvml
        memory = self._ask("memory", nvml.nvmlDeviceGetMemoryInfo)
        rates = self._ask("utilization", nvml.nvmlDeviceGetUtilizationRates)
        power_mw = self._ask("power", nvml.nvmlDeviceGetPowerUsage)
        energy_mj = self._ask("energy", nvml.nvmlDeviceGetTotalEnergyConsumption)
        celsius = self._ask("temperature", nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
        sm_mhz = self._ask("sm_clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM)
        mem_mhz = self._ask("mem_clock", nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM)
        return GpuReading(
            device=self._index,
            used_bytes=int(memory.used) if memory else None,
            process_bytes=self._process_bytes(pids) if pids else None,
            utilization_pct=float(rates.gpu) if rates else None,
            power_w=power_mw / 1000 if power_mw is not None else None,
            energy_mj=energy_mj,
            temperature_c=float(celsius) if celsius is not None else None,
            sm_clock_mhz=sm_mhz,
            mem_clock_mhz=mem_mhz,
        )

    def _process_bytes(self, pids: frozenset[int]) -> int | None:
        """Bytes that `pids` hold here. 0 only where the list is known to speak of this machine's pids.

        In a container the driver lists nothing, or pids of the host.
        """
        compute = self._ask("compute_processes", self._nvml.nvmlDeviceGetComputeRunningProcesses)
        graphics = self._ask("graphics_processes", self._nvml.nvmlDeviceGetGraphicsRunningProcesses)
        if compute is None:
            return None
        # A process with both kinds of work is in both lists, with the same figure.
        used = {process.pid: process.usedGpuMemory for process in [*(graphics or ()), *compute]}
        ours = [used[pid] for pid in pids if pid in used]
        if ours:
            return None if None in ours else sum(ours)
        if used and all(psutil.pid_exists(pid) for pid in used):
            return 0
        self.missing[f"gpu{self._index}.process_memory"] = "the driver does not list this system's processes"
        return None

    def _ask(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """What `function` says of the device, or None with the reason noted."""
        if self._is_lost or name in self._unsupported:
            return None
        nvml = self._nvml
        try:
            return function(self._handle, *args)
        except (
            nvml.NVMLError_NotSupported,
            nvml.NVMLError_FunctionNotFound,
            nvml.NVMLError_NoPermission,
        ) as error:
            self._unsupported.add(name)
            reason = str(error)
        except nvml.NVMLError_GpuIsLost as error:
            self._is_lost = True
            name, reason = "device", str(error)
        except nvml.NVMLError as error:
            reason = str(error)
        self.missing.setdefault(f"gpu{self._index}.{name}", reason)
        return None


def _handles(nvml: Any) -> list[Any]:
    """The handles of all visible devices; one that cannot be opened is left out."""
    handles: list[Any] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError:
            continue
        handles += _mig_parts(nvml, handle) or [handle]
    return handles


def _mig_parts(nvml: Any, handle: Any) -> list[Any]:
    """The visible MIG parts of a device, empty where it is not split."""
    try:
        if nvml.nvmlDeviceGetMigMode(handle)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return []
        n_parts = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except nvml.NVMLError:
        return []
    parts: list[Any] = []
    for index in range(n_parts):
        try:
            parts.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
        except nvml.NVMLError:
            continue  # the slots of a card need not all be used
    return parts
