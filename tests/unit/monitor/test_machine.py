import json
import platform
import socket
import subprocess
import sys
from collections import namedtuple

import psutil
import pytest

from liob_core.monitor import machine
from liob_core.monitor.nvml import NullGpuProbe
from liob_core.types import GpuInfo, to_json

NO_GPU = NullGpuProbe("none here")


class OneGpu(NullGpuProbe):
    def __init__(self):
        self.reason, self.missing = None, {}

    def devices(self):
        return (GpuInfo(index=0, name="NVIDIA H200", memory_bytes=1, driver="570"),)


def test_read_machine_agrees_with_the_system():
    record = machine.read_machine(NO_GPU)

    assert record.logical_cores == psutil.cpu_count()
    assert record.ram_bytes == psutil.virtual_memory().total
    assert record.cpu_arch == platform.machine()
    assert record.python_version == platform.python_version()
    assert record.gpus == ()
    assert record.gpu_reason == "none here"
    assert record.missing_sources["gpu"] == "none here"


def test_read_machine_names_no_host():
    text = json.dumps(to_json(machine.read_machine(NO_GPU)))

    host = socket.gethostname()
    assert f'"{host}"' not in text
    assert host not in machine.read_machine(NO_GPU).os_version.split()


def test_machine_id_is_of_the_hardware_alone(monkeypatch):
    first = machine.read_machine(NO_GPU)
    monkeypatch.setattr(platform, "release", lambda: "99.9")
    monkeypatch.setattr(platform, "python_version", lambda: "3.99")

    assert machine.read_machine(NO_GPU).machine_id == first.machine_id
    assert machine.read_machine(NO_GPU).os_version != first.os_version
    assert machine.read_machine(OneGpu()).machine_id != first.machine_id


@pytest.mark.parametrize("broken", ["swap_memory", "sensors_battery", "cpu_count_physical"])
def test_read_machine_broken_source_is_unknown_with_a_reason(monkeypatch, broken):
    def fail(*_args, **_kwargs):
        raise OSError("sensor on fire")

    real_count = psutil.cpu_count
    if broken == "cpu_count_physical":
        monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: real_count() if logical else fail())
    else:
        monkeypatch.setattr(psutil, broken, fail)

    record = machine.read_machine(NO_GPU)

    name = {"swap_memory": "swap", "sensors_battery": "power_source", "cpu_count_physical": "physical_cores"}
    assert "sensor on fire" in record.missing_sources[name[broken]]


@pytest.mark.parametrize(
    ("plugged", "is_virtual", "expected"),
    [(True, False, "ac"), (False, True, "battery"), (None, False, None)],
)
def test_power_source_with_a_battery(monkeypatch, plugged, is_virtual, expected):
    battery = namedtuple("battery", "power_plugged")(plugged)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery)
    monkeypatch.setattr(machine, "_is_virtual", lambda: is_virtual)

    assert machine.read_machine(NO_GPU).power_source == expected


@pytest.mark.parametrize(("is_virtual", "expected"), [(False, "ac"), (True, None)])
def test_power_source_without_a_battery(monkeypatch, is_virtual, expected):
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None)
    monkeypatch.setattr(machine, "_is_virtual", lambda: is_virtual)

    assert machine.read_machine(NO_GPU).power_source == expected


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_linux_facts_x86(tmp_path):
    write(
        tmp_path,
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Fast  CPU @ 3GHz\nflags\t\t: fpu hypervisor\n",
    )
    for core, governor in enumerate(["powersave", "performance", "performance"]):
        write(tmp_path, f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", governor + "\n")

    assert machine.linux_cpu_name(tmp_path) == "Fast CPU @ 3GHz"
    assert machine.linux_is_virtual(tmp_path) is True
    assert machine.linux_cpu_governor(tmp_path) == "performance,powersave"


def test_linux_facts_bare_metal(tmp_path):
    write(tmp_path, "proc/cpuinfo", "model name\t: CPU\nflags\t\t: fpu sse\n")

    assert machine.linux_is_virtual(tmp_path) is False
    assert machine.linux_cpu_governor(tmp_path) is None


def test_linux_facts_arm_board(tmp_path):
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd0b\n")
    write(tmp_path, "proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0")

    assert machine.linux_cpu_name(tmp_path) == "Raspberry Pi 5 Model B Rev 1.0"
    assert machine.linux_is_virtual(tmp_path) is None


@pytest.mark.parametrize(
    ("threads", "n_cores", "words"),
    [(3, 4, None), (4, 4, "use 3"), (8, 4, "at most 3"), (1, 1, "one core"), (2, 1, "at most 1")],
)
def test_thread_warning(threads, n_cores, words):
    warning = machine.thread_warning(threads, n_cores)

    assert (warning is None) if words is None else (words in warning)


def test_thread_warning_knows_a_container_limit(monkeypatch):
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 16 if logical else 8)
    monkeypatch.setattr(machine, "read_cpu_limit", lambda: 2.5)

    assert machine.thread_warning(1) is None
    assert "on 2 cores" in machine.thread_warning(2)


def test_busy_neighbours_names_the_busy_alone():
    busy = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        busy.stdout.readline()
        names = [psutil.Process(busy.pid).name(), psutil.Process(idle.pid).name()]
        found = machine.busy_neighbours(over_s=1.0)
    finally:
        busy.kill()
        busy.communicate()
        idle.communicate(b"\n")

    assert names[0] in [neighbour.name for neighbour in found]
    assert all(neighbour.cpu_share > machine.BUSY_CORE_SHARE for neighbour in found)
    shares = [neighbour.cpu_share for neighbour in found]
    assert shares == sorted(shares, reverse=True)
