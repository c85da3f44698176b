# ruff: noqa: N802 - the names are the library's

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from liob_core.monitor.nvml import NullGpuProbe, make_gpu_probe

pynvml = pytest.importorskip("pynvml")
GIB = 1 << 30


class ScriptedNvml:
    """The library's boundary: its functions answer from `devices`, its errors are the real ones.

    An answer that is an exception is raised.
    """

    def __init__(self, devices, *, init=None, driver="570.1"):
        self._devices = devices
        self._init = init
        self._driver = driver
        self.n_calls = {}
        self.is_shut = False

    def __getattr__(self, name):
        if name.startswith(("NVMLError", "NVML_")):
            return getattr(pynvml, name)
        key = name.removeprefix("nvmlDeviceGet")

        def answer(handle, *args):
            self.n_calls[key] = self.n_calls.get(key, 0) + 1
            value = handle[key]
            value = value[args[0]] if isinstance(value, dict) else value
            if isinstance(value, Exception):
                raise value
            return value

        return answer

    def nvmlInit(self):
        if self._init:
            raise self._init

    def nvmlShutdown(self):
        self.is_shut = True

    def nvmlSystemGetDriverVersion(self):
        return self._driver

    def nvmlDeviceGetCount(self):
        return len(self._devices)

    def nvmlDeviceGetHandleByIndex(self, index):
        if isinstance(self._devices[index], Exception):
            raise self._devices[index]
        return self._devices[index]


def error(code):
    return pynvml.NVMLError(code)


def process(pid, used):
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def device(**answers):
    return {
        "Name": "NVIDIA H200",
        "MigMode": error(pynvml.NVML_ERROR_NOT_SUPPORTED),
        "MemoryInfo": SimpleNamespace(total=139 * GIB, used=10 * GIB),
        "UtilizationRates": SimpleNamespace(gpu=87, memory=40),
        "PowerUsage": 412_345,
        "TotalEnergyConsumption": 9_000_123,
        "Temperature": {pynvml.NVML_TEMPERATURE_GPU: 61},
        "ClockInfo": {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201},
        "ComputeRunningProcesses": [process(os.getpid(), 8 * GIB)],
        "GraphicsRunningProcesses": [],
        **answers,
    }


ME = (os.getpid(),)


def test_read_units_and_fields():
    probe = make_gpu_probe(ScriptedNvml([device()]))

    (reading,) = probe.read(ME)

    assert reading.used_bytes == 10 * GIB
    assert reading.process_bytes == 8 * GIB
    assert reading.utilization_pct == 87.0
    assert reading.power_w == 412.345
    assert reading.energy_mj == 9_000_123
    assert reading.temperature_c == 61.0
    assert (reading.sm_clock_mhz, reading.mem_clock_mhz) == (1980, 3201)
    assert probe.reason is None
    assert probe.missing == {}


def test_devices_names_memory_and_driver():
    (info,) = make_gpu_probe(ScriptedNvml([device()])).devices()

    assert (info.index, info.name, info.memory_bytes, info.driver) == (0, "NVIDIA H200", 139 * GIB, "570.1")


@pytest.mark.parametrize(
    "code",
    [
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        pynvml.NVML_ERROR_UNKNOWN,
    ],
)
def test_make_gpu_probe_driver_does_not_answer_is_null_with_reason(code):
    probe = make_gpu_probe(ScriptedNvml([device()], init=error(code)))

    assert isinstance(probe, NullGpuProbe)
    assert str(error(code)) in probe.reason
    assert probe.missing == {"gpu": probe.reason}
    assert probe.read(ME) == ()
    assert probe.devices() == ()


def test_make_gpu_probe_library_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)

    assert "nvidia-ml-py" in make_gpu_probe().reason


@pytest.mark.parametrize("devices", [[], [error(pynvml.NVML_ERROR_NO_PERMISSION)]])
def test_make_gpu_probe_no_visible_device(devices):
    assert "no device is visible" in make_gpu_probe(ScriptedNvml(devices)).reason


def test_import_loads_no_library():
    code = "import sys, liob_core.monitor.sampler, liob_core.monitor.machine; print('pynvml' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_read_what_a_device_does_not_support_is_none_and_asked_once():
    nvml = ScriptedNvml([device(PowerUsage=error(pynvml.NVML_ERROR_NOT_SUPPORTED))])
    probe = make_gpu_probe(nvml)

    readings = [probe.read(ME)[0] for _ in range(3)]

    assert {reading.power_w for reading in readings} == {None}
    assert {reading.utilization_pct for reading in readings} == {87.0}
    assert nvml.n_calls["PowerUsage"] == 1
    assert list(probe.missing) == ["gpu0.power"]


def test_read_passing_error_is_asked_again():
    card = device(PowerUsage=error(pynvml.NVML_ERROR_TIMEOUT))
    probe = make_gpu_probe(ScriptedNvml([card]))
    assert probe.read(ME)[0].power_w is None

    card["PowerUsage"] = 100_000

    assert probe.read(ME)[0].power_w == 100.0


def test_read_device_lost_in_the_middle_is_none_and_left_alone():
    lost, well = device(), device()
    nvml = ScriptedNvml([lost, well])
    probe = make_gpu_probe(nvml)
    probe.read(ME)

    lost["MemoryInfo"] = error(pynvml.NVML_ERROR_GPU_IS_LOST)
    first, second = probe.read(ME)
    n_calls = dict(nvml.n_calls)
    probe.read(ME)

    values = (first.used_bytes, first.process_bytes, first.utilization_pct, first.power_w, first.energy_mj)
    assert values == (None,) * 5
    assert second.used_bytes == 10 * GIB
    assert "gpu0.device" in probe.missing
    assert nvml.n_calls["PowerUsage"] == n_calls["PowerUsage"] + 1  # the other device alone


@pytest.mark.parametrize(
    ("compute", "graphics", "expected"),
    [
        # In both lists with one figure: the work of one process, not of two.
        ([process(os.getpid(), 5)], [process(os.getpid(), 5)], 5),
        ([process(os.getpid(), None)], [], None),  # Windows desktop drivers do not tell
        ([process(os.getppid(), 7)], [], 0),  # others are listed, the engine is not: it holds nothing
        ([], [], None),  # a container sees an empty list
        ([process(2**22 + 7, 7)], [], None),  # or pids of its host
        (error(pynvml.NVML_ERROR_NOT_SUPPORTED), [], None),
        ([process(os.getpid(), 5)], error(pynvml.NVML_ERROR_NOT_SUPPORTED), 5),
    ],
)
def test_read_process_bytes(compute, graphics, expected):
    card = device(ComputeRunningProcesses=compute, GraphicsRunningProcesses=graphics)

    assert make_gpu_probe(ScriptedNvml([card])).read(ME)[0].process_bytes == expected


def test_read_watching_nothing_lists_no_processes():
    nvml = ScriptedNvml([device()])

    assert make_gpu_probe(nvml).read(())[0].process_bytes is None
    assert "ComputeRunningProcesses" not in nvml.n_calls


def test_mig_device_is_its_visible_parts():
    unsupported = error(pynvml.NVML_ERROR_NOT_SUPPORTED)
    part = device(
        Name="NVIDIA H200 MIG 1g.18gb",
        MemoryInfo=SimpleNamespace(total=18 * GIB, used=2 * GIB),
        UtilizationRates=unsupported,
        PowerUsage=unsupported,
    )
    card = device(
        MigMode=[pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE],
        MaxMigDeviceCount=3,
        MigDeviceHandleByIndex={0: part, 1: error(pynvml.NVML_ERROR_NOT_FOUND), 2: part},
    )
    probe = make_gpu_probe(ScriptedNvml([card]))

    readings = probe.read(ME)

    assert [reading.device for reading in readings] == [0, 1]
    assert {reading.used_bytes for reading in readings} == {2 * GIB}
    assert {reading.power_w for reading in readings} == {None}  # the whole card's, so not this part's
    assert [info.memory_bytes for info in probe.devices()] == [18 * GIB, 18 * GIB]


def test_close_lets_go_of_the_driver():
    nvml = ScriptedNvml([device()])
    make_gpu_probe(nvml).close()

    assert nvml.is_shut
