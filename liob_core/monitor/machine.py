"""The machine before a run: the facts that change its numbers, and what to warn about.

The record holds no name of a host, a user or a path.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from liob_core.monitor.limits import read_cpu_limit, read_memory_limit_bytes
from liob_core.monitor.nvml import GpuProbe, make_gpu_probe
from liob_core.types import GpuInfo, Machine

BUSY_CORE_SHARE = 0.25
_T = TypeVar("_T")
# The kernel keeps a little for itself, and how much changes with every update.
_RAM_STEP_BYTES = 256 * 1024 * 1024
_NOT_TOLD = "the system does not tell"
_NOT_LINUX = "only Linux tells it for another process"


class _Facts:
    """Reads facts one by one and remembers which could not be read, and why."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}

    def read(self, name: str, read: Callable[[], _T | None], why_none: str | None = _NOT_TOLD) -> _T | None:
        """The fact, or None; a None that means "there is none" has no `why_none`."""
        try:
            value = read()
        except Exception as error:  # a curious machine must not stop a run
            self.missing[name] = f"{type(error).__name__}: {error}"
            return None
        if value is None and why_none is not None:
            self.missing[name] = why_none
        return value


def read_machine(gpu_probe: GpuProbe | None = None) -> Machine:
    """The machine this runs on; never raises: what cannot be read is None and named in `missing_sources`."""
    facts = _Facts()
    probe = gpu_probe or make_gpu_probe()
    gpus = facts.read("gpu_devices", probe.devices) or ()
    facts.missing.update(probe.missing)
    if gpu_probe is None:
        probe.close()
    if not sys.platform.startswith("linux"):
        facts.missing.update(dict.fromkeys(("anonymous_memory", "process_swap", "steal"), _NOT_LINUX))
    cpu_name = facts.read("cpu_name", _cpu_name)
    physical = facts.read("physical_cores", lambda: psutil.cpu_count(logical=False))
    logical = psutil.cpu_count() or os.cpu_count() or 1
    ram_bytes = psutil.virtual_memory().total
    swap = facts.read("swap", psutil.swap_memory)
    is_virtual = facts.read("is_virtual", _is_virtual)
    return Machine(
        machine_id=_machine_id(cpu_name, physical, logical, ram_bytes, gpus),
        cpu_name=cpu_name,
        cpu_arch=platform.machine(),
        physical_cores=physical,
        logical_cores=logical,
        ram_bytes=ram_bytes,
        swap_bytes=swap.total if swap else None,
        os_name=platform.system(),
        os_version=facts.read("os_version", _os_version) or platform.system(),
        python_version=platform.python_version(),
        gpus=gpus,
        gpu_reason=probe.reason,
        power_source=facts.read("power_source", lambda: _power_source(is_virtual=is_virtual)),
        cpu_governor=facts.read("cpu_governor", lambda: linux_cpu_governor(Path("/"))),
        is_virtual=is_virtual,
        cpu_limit=facts.read("cpu_limit", read_cpu_limit, None),
        memory_limit_bytes=facts.read("memory_limit", read_memory_limit_bytes, None),
        missing_sources=facts.missing,
    )


def _machine_id(
    cpu_name: str | None, physical: int | None, logical: int, ram_bytes: int, gpus: tuple[GpuInfo, ...]
) -> str:
    """A hash over the hardware alone, so that an update of the system leaves it as it is."""
    devices = [[gpu.name, gpu.memory_bytes] for gpu in gpus]
    ram_steps = round(ram_bytes / _RAM_STEP_BYTES)
    hardware = [cpu_name, platform.machine(), physical, logical, ram_steps, devices]
    return hashlib.sha256(json.dumps(hardware).encode()).hexdigest()


def _cpu_name() -> str | None:
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string")
    if sys.platform == "win32":
        return _registry_cpu_name()
    return linux_cpu_name(Path("/")) or platform.processor() or None


def linux_cpu_name(root: Path) -> str | None:
    """The processor's name as the kernel under `root` tells it; ARM boards name the board instead."""
    for line in (root / "proc/cpuinfo").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return " ".join(value.split())
    board = root / "proc/device-tree/model"
    return board.read_text(errors="replace").strip("\0 \n") or None if board.exists() else None


def _registry_cpu_name() -> str | None:
    import winreg  # noqa: PLC0415 - exists on Windows alone

    with winreg.OpenKey(  # type: ignore[attr-defined,unused-ignore]
        winreg.HKEY_LOCAL_MACHINE,  # type: ignore[attr-defined,unused-ignore]
        r"HARDWARE\DESCRIPTION\System\CentralProcessor\0",
    ) as key:
        value, _ = winreg.QueryValueEx(key, "ProcessorNameString")  # type: ignore[attr-defined,unused-ignore]
    return " ".join(str(value).split())


def _sysctl(name: str) -> str | None:
    done = subprocess.run(
        ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False
    )
    return done.stdout.strip() or None


def _is_virtual() -> bool | None:
    if sys.platform == "darwin":
        answer = _sysctl("kern.hv_vmm_present")
        return None if answer is None else answer == "1"
    return linux_is_virtual(Path("/")) if sys.platform.startswith("linux") else None


def linux_is_virtual(root: Path) -> bool | None:
    """Whether a hypervisor is below the kernel under `root`; None where ARM firmware does not tell."""
    for line in (root / "proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("flags"):
            return "hypervisor" in line.split()
    return True if (root / "sys/hypervisor/type").exists() else None


def _os_version() -> str:
    """The distribution and kernel number, or what the system calls its version."""
    if not sys.platform.startswith("linux"):
        return platform.mac_ver()[0] or platform.version()
    # What follows the number is free text of whoever built the kernel.
    kernel = f"kernel {platform.release().split('-')[0]}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError):
        return kernel


def _power_source(*, is_virtual: bool | None) -> str | None:
    """`ac` or `battery`; a machine without a battery runs from the mains, unless it is virtual."""
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is None:
        return None if is_virtual else "ac"
    if battery.power_plugged is None:
        return None
    return "ac" if battery.power_plugged else "battery"


def linux_cpu_governor(root: Path) -> str | None:
    """The frequency governor of all cores, joined by commas where they differ."""
    found = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return ",".join(sorted({path.read_text().strip() for path in found})) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A busy program: its name, and its CPU time as a share of one core."""

    name: str
    cpu_share: float


def busy_neighbours(over_s: float = 0.5) -> list[Neighbour]:
    """Programs that use more than a quarter of a core, busiest first; this process is not one.

    Looks at every process twice, `over_s` seconds apart, so it belongs before a run, never in one.
    """
    before = {process.pid: (process, _process_cpu_s(process)) for process in psutil.process_iter()}
    for pid in (0, psutil.Process().pid):  # on Windows, 0 is the time nobody used
        before.pop(pid, None)
    start_s = time.monotonic()
    time.sleep(over_s)
    passed_s = time.monotonic() - start_s
    found: list[Neighbour] = []
    for process, first_s in before.values():
        last_s = _process_cpu_s(process)
        if first_s is None or last_s is None:
            continue
        cpu_share = (last_s - first_s) / passed_s
        if cpu_share > BUSY_CORE_SHARE:
            found.append(Neighbour(name=_process_name(process), cpu_share=cpu_share))
    return sorted(found, key=lambda neighbour: neighbour.cpu_share, reverse=True)


def thread_warning(threads: int, n_cores: int | None = None) -> str | None:
    """One sentence where the engine wants every core, else None. `n_cores` are the real cores it may use."""
    n_cores = n_cores or _usable_cores()
    if threads < n_cores:
        return None
    if threads > n_cores:
        return (
            f"{threads} threads on {n_cores} cores wait for each other: "
            f"use at most {max(1, n_cores - 1)} for speed and steady results."
        )
    if n_cores == 1:
        return "There is one core here, so any other program slows the engine: close what you can."
    return (
        f"{threads} threads on {n_cores} cores leave none for other programs, and one busy program can make "
        f"the engine many times slower: use {n_cores - 1} for steady results, or close what you can."
    )


def _usable_cores() -> int:
    """Real cores, or fewer where a container allows fewer."""
    n_cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    limit = read_cpu_limit()
    return n_cores if limit is None else max(1, min(n_cores, int(limit)))


def _process_cpu_s(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except (psutil.Error, OSError):
        return None
    return float(times.user + times.system)


def _process_name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except (psutil.Error, OSError):
        return "a program that has ended"
