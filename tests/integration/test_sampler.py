"""The sampler at work beside real processes. Assertions allow for a machine that others use too."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from liob_core.monitor import clock, sampler
from liob_core.monitor.nvml import NullGpuProbe
from liob_core.monitor.process import ProcessTree
from liob_core.monitor.sampler import Sampler
from liob_core.types import GpuReading

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the kernel's high-water mark")
MIB = 1 << 20
# Takes lines: a number holds so many MiB for a moment, "spin" works for ever on another thread.
ENGINE = """
import sys, threading
def spin():
    while True: pass
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "spin":
        threading.Thread(target=spin, daemon=True).start()
    else:
        held = b"x" * (int(line) << 20)
        del held
    print("done", flush=True)
"""


class Engine:
    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", ENGINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process.stdout.readline()
        self.pid = self.process.pid

    def do(self, command):
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def engine():
    process = Engine()
    yield process
    process.kill()


class ScriptedGpu(NullGpuProbe):
    """One device whose used memory the test sets."""

    def __init__(self):
        self.reason, self.missing = None, {}
        self.used_bytes = 1000
        self.is_broken = False

    def read(self, pids):
        if self.is_broken:
            raise RuntimeError("driver bug")
        process = self.used_bytes - 1000 if pids else None
        rest = dict.fromkeys(("power_w", "energy_mj", "temperature_c", "sm_clock_mhz", "mem_clock_mhz"))
        return (
            GpuReading(
                device=0, used_bytes=self.used_bytes, process_bytes=process, utilization_pct=50.0, **rest
            ),
        )


@pytest.fixture
def make_sampler(tmp_path):
    made = []

    def make(hz=50.0, gpu=None, path=None):
        made.append(Sampler(hz, path or tmp_path / "readings.jsonl", gpu_probe=gpu or NullGpuProbe("none")))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.stop()


def wait_until(is_true, what):
    deadline = time.monotonic() + 20
    while not is_true():
        if time.monotonic() > deadline:
            pytest.fail(f"never happened: {what}")
        time.sleep(0.01)


def wait_readings(watcher, n):
    """Wait for `n` more readings."""
    first = watcher.latest()
    seen = {first.utc_ns if first else None}

    def have_enough():
        latest = watcher.latest()
        seen.add(latest.utc_ns if latest else None)
        return len(seen) > n

    wait_until(have_enough, f"{n} readings")


def lines(tmp_path):
    return [json.loads(line) for line in (tmp_path / "readings.jsonl").read_bytes().splitlines()]


def test_readings_first_cpu_value_is_discarded_and_the_rest_stored(make_sampler, tmp_path, engine):
    watcher = make_sampler()
    watcher.watch((engine.pid,), 0)
    wait_readings(watcher, 5)
    watcher.stop()

    stored = lines(tmp_path)
    assert len(stored) >= 5
    assert stored[0]["system_cpu_pct"] is None
    assert all(0 <= row["system_cpu_pct"] <= 100 for row in stored[1:] if row["system_cpu_pct"] is not None)
    assert stored[-1]["rss_bytes"] == pytest.approx(ProcessTree((engine.pid,)).read().rss_bytes, rel=0.1)
    stamps = [row["utc_ns"] for row in stored]
    assert stamps == sorted(set(stamps))


@linux
def test_peaks_between_readings_are_seen_and_load_and_run_are_apart(make_sampler, engine):
    watcher = make_sampler(hz=1.0)  # far too slow to see either peak by itself
    base = ProcessTree((engine.pid,)).read().rss_bytes
    engine.do(120)
    watcher.watch((engine.pid,), base)
    watcher.mark_loaded()
    engine.do(40)
    peaks = watcher.peaks()

    assert peaks.peak_rss_load_bytes - base == pytest.approx(120 * MIB, abs=6 * MIB)
    if "high_water_reset" not in watcher.missing:
        assert peaks.peak_rss_run_bytes - base == pytest.approx(40 * MIB, abs=6 * MIB)
    assert peaks.peak_memory_bytes == pytest.approx(120 * MIB, abs=6 * MIB)
    assert peaks.peak_memory_reason is None
    assert peaks.peak_vram_bytes is None
    assert peaks.peak_vram_reason == "none"


def test_window_engine_at_work_is_not_a_neighbour(make_sampler, engine):
    watcher = make_sampler()
    watcher.watch((engine.pid,), 0)
    engine.do("spin")
    start = clock.utc_ns()
    time.sleep(1.5)
    seen = watcher.window(start, clock.utc_ns())

    # The engine had some of the machine, however busy others are; that part is in the mean alone.
    assert seen.cpu_mean_pct / 100 - seen.cpu_other_share > 0.1 / os.cpu_count()
    assert seen.cpu_peak_pct >= seen.cpu_mean_pct
    assert seen.n_readings > 5
    assert seen.peak_rss_bytes > 0
    assert seen.peak_system_ram_bytes > seen.peak_rss_bytes


@pytest.mark.skipif((os.cpu_count() or 1) > 4, reason="one busy process is no tenth of this machine")
def test_window_busy_neighbour_is_flagged(make_sampler, engine):
    watcher = make_sampler()
    engine.do("spin")  # nobody watches it, so it is somebody else
    wait_readings(watcher, 2)
    start = clock.utc_ns()
    time.sleep(1.5)
    seen = watcher.window(start, clock.utc_ns())

    assert seen.cpu_other_share > 0.1
    assert seen.contended is True


def test_window_asked_at_once_answers_for_a_short_sample(make_sampler, engine):
    watcher = make_sampler(hz=10.0)
    watcher.watch((engine.pid,), 0)
    wait_readings(watcher, 10)
    start = clock.utc_ns()
    seen = watcher.window(start, clock.utc_ns())

    assert seen.contended is not None
    assert seen.peak_rss_bytes is not None


def test_engine_that_dies_is_unknown_from_then_on(make_sampler, engine):
    watcher = make_sampler()
    watcher.watch((engine.pid,), 0)
    wait_readings(watcher, 2)
    before = watcher.peaks()
    engine.kill()
    wait_until(lambda: watcher.latest().rss_bytes is None, "the end of the engine is seen")

    assert watcher.peaks().peak_rss_load_bytes >= before.peak_rss_load_bytes > 0
    watcher.mark_loaded()
    watcher.watch(())
    assert watcher.peaks().peak_memory_bytes is None


def test_gpu_memory_is_part_of_the_peak(make_sampler, engine):
    gpu = ScriptedGpu()
    watcher = make_sampler(gpu=gpu)
    watcher.watch((engine.pid,), 0)
    gpu.used_bytes = 1000 + 500 * MIB
    start = clock.utc_ns()
    wait_readings(watcher, 5)
    gpu.used_bytes = 1000
    wait_readings(watcher, 5)
    seen = watcher.window(start, clock.utc_ns())
    peaks = watcher.peaks()

    assert seen.peak_vram_bytes == 500 * MIB
    assert peaks.peak_vram_bytes == 500 * MIB
    assert peaks.peak_memory_bytes > 500 * MIB


def test_probe_that_breaks_gives_none_and_one_line_in_the_log(make_sampler, engine, caplog):
    gpu = ScriptedGpu()
    watcher = make_sampler(gpu=gpu)
    watcher.watch((engine.pid,), 0)
    wait_readings(watcher, 2)
    gpu.is_broken = True
    wait_readings(watcher, 5)

    assert watcher.latest().gpus == ()
    assert watcher.latest().rss_bytes > 0
    assert watcher.missing["gpu"] == "RuntimeError: driver bug"
    assert len([record for record in caplog.records if "gpu" in record.getMessage()]) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_full_disk_does_not_end_the_sampler(make_sampler, engine):
    watcher = make_sampler(path=Path("/dev/full"))
    watcher.watch((engine.pid,), 0)
    wait_readings(watcher, 3)
    watcher.stop()

    assert watcher.lost_readings >= 3
    assert "readings" in watcher.missing
    assert watcher.peaks().peak_rss_load_bytes > 0


def test_runner_may_ask_from_other_threads_at_any_time(make_sampler, engine):
    watcher = make_sampler(hz=100.0)
    errors = []

    def ask():
        try:
            for _ in range(40):
                watcher.watch((engine.pid,), 0)
                watcher.window(clock.utc_ns() - 10**9, clock.utc_ns())
                watcher.mark_loaded()
                watcher.peaks()
                watcher.latest()
                _ = watcher.missing
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert set(watcher.missing) <= {"gpu", "high_water_reset"}


def test_memory_of_the_past_is_bounded(make_sampler, monkeypatch):
    monkeypatch.setattr(sampler, "MAX_TICKS", 5)
    watcher = make_sampler(hz=100.0)
    start = clock.utc_ns()
    wait_readings(watcher, 20)

    assert 0 < watcher.window(start, clock.utc_ns()).n_readings <= 5


def test_reading_slowly_is_once_a_second(make_sampler):
    watcher = make_sampler(hz=50)
    wait_readings(watcher, 1)
    watcher.read_slowly()
    wait_readings(watcher, 1)  # the wait that was under way when it was asked
    first = watcher.latest().utc_ns
    wait_readings(watcher, 2)
    assert watcher.latest().utc_ns - first >= 1.5e9


def test_cost_is_measured_and_stop_is_prompt(make_sampler):
    watcher = make_sampler(hz=0.2)  # one reading in five seconds
    wait_readings(watcher, 1)
    wait_until(lambda: watcher.cpu_share() is not None, "a cost")
    assert 0 < watcher.cpu_share() < 1

    before = time.monotonic()
    watcher.stop()
    watcher.stop()
    assert time.monotonic() - before < 3


def test_stop_before_start_and_files_are_freed(tmp_path):
    n_open = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else None
    for _ in range(3):
        Sampler(10.0, tmp_path / "readings.jsonl", gpu_probe=NullGpuProbe("none")).stop()

    if n_open is not None:
        assert len(os.listdir("/proc/self/fd")) == n_open


@linux
def test_process_that_takes_over_is_watched_and_the_peaks_go_on(make_sampler, engine):
    watcher = make_sampler()
    watcher.watch((engine.pid,), 0)
    watcher.mark_loaded()
    engine.do("80")
    wait_readings(watcher, 3)
    first = watcher.peaks().peak_rss_run_bytes
    other = Engine()
    try:
        engine.kill()
        watcher.follow((other.pid,))
        wait_readings(watcher, 3)
        assert watcher.latest().rss_bytes is not None
        assert watcher.peaks().peak_rss_run_bytes >= first, "what the first one took is not forgotten"
        other.do("200")
        wait_readings(watcher, 3)
        assert watcher.peaks().peak_rss_run_bytes >= 200 * MIB
    finally:
        other.kill()
