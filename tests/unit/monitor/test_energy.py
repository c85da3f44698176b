"""Energy counters against figures computed by hand, on a made-up powercap tree and scripted devices."""

import time
from pathlib import Path

import pytest

from liob_core.monitor import energy
from liob_core.monitor.energy import RAPL_FIX, EnergyMeter, Mark, Spent, make_meter
from liob_core.monitor.nvml import NullGpuProbe
from liob_core.types import GpuReading

NO_GPU = NullGpuProbe("no driver answers")


class Devices:
    """A probe whose readings the test sets: (energy in mJ, power in W) of each device."""

    reason = None

    def __init__(self, *devices: tuple[int | None, float | None]) -> None:
        self.missing: dict[str, str] = {}
        self.now = list(devices)
        self.n_reads = 0
        self.is_closed = False

    def devices(self) -> tuple[()]:
        return ()

    def read(self, pids: object) -> tuple[GpuReading, ...]:
        self.n_reads += 1
        values = dict.fromkeys(GpuReading.__dataclass_fields__)
        return tuple(
            GpuReading(**{**values, "device": number, "energy_mj": energy_mj, "power_w": power_w})
            for number, (energy_mj, power_w) in enumerate(self.now)
        )

    def close(self) -> None:
        self.is_closed = True


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def zone(root: Path, folder: str, name: str, uj: int = 0, range_uj: int = 1_000_000_000) -> Path:
    path = root / folder
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "energy_uj").write_text(f"{uj}\n")
    (path / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return path / "energy_uj"


def clocked(meter: EnergyMeter, clock: Clock) -> EnergyMeter:
    meter._now_s = clock
    return meter


def test_two_packages_and_their_memory_are_two_scopes_and_nothing_else_is_counted(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 999_000_000)
    memory = zone(tmp_path, "intel-rapl:0:1", "dram", 10)
    # A part of the package, the whole platform, and the same package counted a second time.
    for folder, name in (
        ("intel-rapl:0:0", "core"),
        ("intel-rapl:2", "psys"),
        ("intel-rapl-mmio:0", "package-0"),
    ):
        zone(tmp_path, folder, name).write_text("77777777\n")
    meter = make_meter(NO_GPU, tmp_path)
    assert dict(meter.sources) == {"package": "rapl", "dram": "rapl"}
    assert (meter.reason, meter.fix, meter.missing) == (None, "", {"gpu": "no driver answers"})
    with meter.running():
        before = meter.mark()
        first.write_text("35000000")  # 30 J
        second.write_text("11000000")  # from 999 to 1000 J, and 11 J after starting again: 12 J
        memory.write_text("2500010")
        after = meter.mark()
        assert meter.spent("package", before, after) == Spent(pytest.approx(42.0))
        assert meter.spent("dram", before, after) == Spent(pytest.approx(2.5))


def test_a_counter_that_stands_still_is_no_zero(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = make_meter(NO_GPU, tmp_path)
    with meter.running():
        spent = meter.spent("package", meter.mark(), meter.mark())
    assert spent == Spent(None, "the energy counter did not move")


def test_a_counter_that_vanishes_loses_the_time_in_which_it_was_gone_and_no_more(tmp_path: Path) -> None:
    clock = Clock()
    zone(tmp_path, "intel-rapl:0", "package-0")
    file = zone(tmp_path, "intel-rapl:1", "package-1")
    meter = clocked(make_meter(NO_GPU, tmp_path), clock)
    with meter.running():
        marks = []
        for joules in (1, None, 3, 5):
            if joules is None:
                file.rename(file.with_name("gone"))
            else:
                file.write_text(f"{joules}000000")
            clock.now_s += 1
            marks.append(meter.mark())
    lost = meter.spent("package", marks[0], marks[2])
    assert lost.joules is None
    assert lost.reason is not None
    assert lost.reason == "the energy counter cannot be read any more (No such file or directory)"
    assert meter.power_w("package", marks[0], marks[1]) is None
    assert meter.power_w("package", marks[2], marks[3]) == pytest.approx(2.0)


def test_counters_for_root_alone_are_told_with_what_opens_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0")
    real = Path.read_text

    def refuse(path: Path, *args: object, **kwargs: object) -> str:  # tests may run as root, who may read all
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "read_text", refuse)
    meter = make_meter(NO_GPU, tmp_path)
    assert (dict(meter.sources), meter.fix) == ({}, RAPL_FIX)
    assert meter.reason is not None
    assert "only root" in meter.reason
    assert RAPL_FIX in meter.reason


def test_a_package_that_cannot_be_read_is_not_left_out_of_a_sum(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:1", "package-1").write_text("no number")
    assert "package" not in make_meter(NO_GPU, tmp_path).sources


def test_a_machine_without_any_says_so(tmp_path: Path) -> None:
    meter = make_meter(NO_GPU, tmp_path / "none")
    assert meter.reason == (
        "no energy counter that LIOB can read: no driver answers; this system shows none of its processor"
    )


def test_devices_counters_are_added_in_joules(tmp_path: Path) -> None:
    devices = Devices((1_000, 50.0), (500_000, 60.0))
    meter = make_meter(devices, tmp_path)
    assert dict(meter.sources) == {"gpu": "nvml counter"}
    with meter.running():
        before = meter.mark()
        devices.now = [(4_000, 50.0), (510_500, 60.0)]
        after = meter.mark()
        devices.now = [(None, 50.0), (511_000, 60.0)]
        lost = meter.mark()
    assert meter.spent("gpu", before, after) == Spent(pytest.approx(13.5))
    assert meter.spent("gpu", after, lost) == Spent(None, "graphics device 0 stopped telling it")
    assert not devices.is_closed, "it was lent"


def test_without_a_counter_power_is_integrated_over_time(tmp_path: Path) -> None:
    # One of two devices has no counter: both are read by power, so that one source speaks for the scope.
    devices, clock = Devices((1_000, 100.0), (None, 20.0)), Clock()
    meter = clocked(make_meter(devices, tmp_path), clock)
    assert dict(meter.sources) == {"gpu": "nvml power"}
    marks: list[Mark] = []
    counter = meter._counters["gpu"]
    counter.begin()
    for at_s, power_w in ((0.0, 100.0), (0.2, 200.0), (0.4, 200.0), (1.5, 0.0), (1.6, 300.0), (1.7, 300.0)):
        clock.now_s, devices.now[0] = at_s, (None, power_w)
        marks.append(meter.mark())
    # (120 + 220) / 2 W for 0.2 s, then 220 W for 0.2 s.
    assert meter.spent("gpu", marks[0], marks[2]) == Spent(pytest.approx(34.0 + 44.0))
    assert meter.spent("gpu", marks[0], marks[3]) == Spent(None, "readings of the power were 1.1 s apart")
    assert meter.power_w("gpu", marks[4], marks[5]) == pytest.approx(320.0)


def test_power_is_read_by_itself_ten_times_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "MOST_GAP_S", 60.0)  # a loaded machine may pause a thread
    devices = Devices((None, 40.0))
    meter = make_meter(devices, tmp_path)
    with meter.running():
        before, n_before = meter.mark(), devices.n_reads
        time.sleep(0.7)
        n_reads, after = devices.n_reads - n_before, meter.mark()
    assert 3 <= n_reads <= 7
    assert meter.power_w("gpu", before, after) == pytest.approx(40.0)


def test_a_device_that_tells_neither_is_told(tmp_path: Path) -> None:
    meter = make_meter(Devices((None, None)), tmp_path)
    assert meter.missing["gpu"] == "graphics device 0 tells neither its energy nor its power"


def test_a_probe_that_breaks_gives_no_figure_and_raises_nothing(tmp_path: Path) -> None:
    devices = Devices((1_000, 50.0))
    meter = make_meter(devices, tmp_path)
    with meter.running():
        before = meter.mark()
        devices.read = None  # type: ignore[assignment,method-assign]
        spent = meter.spent("gpu", before, meter.mark())
    assert spent.joules is None
    assert spent.reason is not None
    assert spent.reason.startswith("TypeError")
