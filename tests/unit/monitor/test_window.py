import pytest

from liob_core.monitor.system import CpuMark, CpuTimes
from liob_core.monitor.window import Cores, Tick, describe
from liob_core.types import Reading, Surroundings

S = 1_000_000_000
FOUR = Cores(logical=4, physical=4)


def make_mark(at_s, *, other, engine=0.0, steal=0.0, cores=4):
    """A mark of a machine on which `other` and `engine` cores were busy since 0."""
    times = CpuTimes(total_s=at_s * cores, busy_s=at_s * (other + engine), steal_s=at_s * steal)
    return CpuMark(utc_ns=int(at_s * S), machine=times, engine_s=at_s * engine, own_s=0.0)


def make_ticks(until_s, *, hz=10, rss=lambda at_s: 100, cpu_pct=50.0, **load):
    ticks = []
    for index in range(int(until_s * hz) + 1):
        at_s = index / hz
        reading = Reading(
            utc_ns=int(at_s * S), rss_bytes=rss(at_s), system_ram_bytes=1000 + index, system_cpu_pct=cpu_pct
        )
        ticks.append(Tick(reading, make_mark(at_s, **load), vram_bytes=None))
    return ticks


def test_describe_shares_and_peaks_of_the_window():
    ticks = make_ticks(10, other=0.2, engine=2.0, rss=lambda at_s: 500 if at_s == 4 else 100)

    seen = describe(ticks, 3 * S, 5 * S, FOUR)

    assert seen.n_readings == 21
    assert seen.cpu_mean_pct == pytest.approx(55.0)
    assert seen.cpu_peak_pct == pytest.approx(55.0)  # never below the mean
    assert seen.cpu_other_share == pytest.approx(0.05)
    assert seen.cpu_steal_share == pytest.approx(0.0)
    assert seen.peak_rss_bytes == 500
    assert seen.peak_system_ram_bytes == 1050
    assert seen.peak_vram_bytes is None
    assert seen.contended is False


def test_describe_memory_outside_the_window_does_not_count():
    ticks = make_ticks(10, other=0.0, rss=lambda at_s: 500 if at_s == 7 else 100)

    assert describe(ticks, 3 * S, 5 * S, FOUR).peak_rss_bytes == 100


@pytest.mark.parametrize(
    ("load", "cores", "contended"),
    [
        ({"other": 0.39}, 4, False),  # 9.8 % of four cores, and the engine wants none
        ({"other": 0.41}, 4, True),
        ({"other": 0.2, "steal": 0.21}, 4, True),  # stolen time is taken just as well
        ({"other": 1.0, "engine": 8.0}, 32, False),  # one busy neighbour, room for both
        ({"other": 1.0, "engine": 31.0}, 32, True),  # 3 % of the machine, but the engine wants every core
        ({"other": 0.3, "engine": 31.5}, 32, False),  # a little background work is always there
    ],
)
def test_describe_contended(load, cores, contended):
    ticks = make_ticks(4, cores=cores, **load)

    assert describe(ticks, 1 * S, 3 * S, Cores(logical=cores, physical=cores)).contended is contended


def test_describe_neighbour_before_the_sample_is_not_blamed_on_it():
    ticks = make_ticks(5, other=4.0)
    last = ticks[-1].mark
    for index in range(1, 51):
        at_s = 5 + index / 10
        times = CpuTimes(total_s=at_s * 4, busy_s=last.machine.busy_s, steal_s=0.0)
        mark = CpuMark(utc_ns=int(at_s * S), machine=times, engine_s=0.0, own_s=0.0)
        ticks.append(Tick(Reading(utc_ns=int(at_s * S)), mark))

    assert describe(ticks, 6 * S, 8 * S, FOUR).cpu_other_share == 0.0
    assert describe(ticks, 2 * S, 4 * S, FOUR).contended is True


def test_describe_short_sample_uses_the_readings_around_it():
    ticks = make_ticks(10, other=2.0)

    seen = describe(ticks, int(5.02 * S), int(5.04 * S), FOUR)

    assert seen.n_readings == 0
    assert seen.cpu_other_share == pytest.approx(0.5)
    assert seen.contended is True
    assert seen.peak_rss_bytes == 100


def test_describe_end_mark_covers_what_the_last_reading_missed():
    ticks = make_ticks(1, other=0.0)
    end = CpuMark(
        utc_ns=int(1.8 * S), machine=CpuTimes(total_s=7.2, busy_s=3.2, steal_s=0.0), engine_s=0.0, own_s=0.0
    )

    seen = describe(ticks, 1 * S, int(1.8 * S), FOUR, end)

    assert seen.cpu_other_share == pytest.approx(1.0)


@pytest.mark.parametrize("ticks", [[], make_ticks(0, other=1.0), make_ticks(0.3, other=1.0)])
def test_describe_too_little_seen_is_unknown(ticks):
    seen = describe(ticks, 0, S // 10, FOUR)

    assert seen.contended is None
    assert seen.cpu_other_share is None
    assert seen.cpu_mean_pct is None


def test_describe_nothing_near_is_unknown():
    ticks = make_ticks(5, other=1.0)

    assert describe(ticks, 600 * S, 601 * S, FOUR) == Surroundings()
    assert describe(ticks, -60 * S, -50 * S, FOUR) == Surroundings()


def test_describe_unreadable_cpu_keeps_memory():
    ticks = [Tick(Reading(utc_ns=index * S, rss_bytes=7), None) for index in range(5)]

    assert describe(ticks, S, 3 * S, FOUR) == Surroundings(peak_rss_bytes=7, n_readings=3)
