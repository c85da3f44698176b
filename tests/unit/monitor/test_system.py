import os
import sys

import psutil
import pytest

from liob_core.monitor.system import (
    CpuMark,
    CpuTimes,
    LinuxSystem,
    PsutilSystem,
    make_system_probe,
    shares_between,
)

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def write_proc(proc, stat="cpu  100 10 50 800 20 3 2 15 60 5\ncpu0 1 2 3\n"):
    (proc / "stat").write_text(stat)
    (proc / "meminfo").write_text("MemTotal:       1000 kB\nMemFree:  100 kB\nMemAvailable:   400 kB\n")
    return LinuxSystem(proc)


@linux
def test_linux_cpu_times_guest_is_not_counted_twice(tmp_path):
    times = write_proc(tmp_path).read_cpu_times()

    assert times.busy_s == pytest.approx(165 / TICKS)
    assert times.steal_s == pytest.approx(15 / TICKS)
    assert times.total_s == pytest.approx(1000 / TICKS)


@linux
def test_linux_ram_used_is_what_is_not_available(tmp_path):
    assert write_proc(tmp_path).read_ram_used_bytes() == 600 * 1024


@linux
def test_linux_agrees_with_psutil():
    ours, theirs = LinuxSystem(), PsutilSystem()
    times = psutil.cpu_times()
    idle_s = times.idle + times.iowait
    seen = ours.read_cpu_times()

    assert seen.total_s - seen.busy_s - seen.steal_s == pytest.approx(idle_s, rel=0.01, abs=1)
    assert ours.read_ram_used_bytes() == pytest.approx(theirs.read_ram_used_bytes(), rel=0.2)
    ours.close()


def test_make_system_probe_counts_forward():
    probe = make_system_probe()
    first = probe.read_cpu_times()
    sum(range(10**6))
    last = probe.read_cpu_times()

    assert last.total_s >= first.total_s > 0
    assert 0 < probe.read_ram_used_bytes() < psutil.virtual_memory().total
    probe.close()


def mark(total_s, busy_s, steal_s=0.0, engine_s=0.0, own_s=0.0):
    times = CpuTimes(total_s=total_s, busy_s=busy_s, steal_s=steal_s)
    return CpuMark(utc_ns=int(total_s * 1e9), machine=times, engine_s=engine_s, own_s=own_s)


def test_shares_between_splits_busy_time():
    # Ten CPU seconds: 6 busy, of which the engine had 4 and LIOB 0.5; 1 was stolen.
    shares = shares_between(mark(100, 50, 3, 7, 1), mark(110, 56, 4, 11, 1.5))

    assert shares.busy == pytest.approx(0.6)
    assert shares.engine == pytest.approx(0.4)
    assert shares.other == pytest.approx(0.15)
    assert shares.steal == pytest.approx(0.1)


def test_shares_between_ticks_counted_apart_never_give_a_negative_neighbour():
    assert shares_between(mark(0, 0), mark(1, 0.5, engine_s=0.52)).other == 0.0


def test_shares_between_no_tick_is_unknown():
    assert shares_between(mark(5, 1), mark(5, 1)) is None


def test_shares_between_no_steal_on_this_system_is_unknown():
    assert shares_between(mark(0, 0, None), mark(1, 0.5, None)).steal is None
