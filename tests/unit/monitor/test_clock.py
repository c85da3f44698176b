import time

from liob_core.monitor import clock


def test_utc_ns_is_wall_time_and_never_goes_back():
    stamps = [clock.utc_ns() for _ in range(1000)]

    assert stamps == sorted(stamps)
    assert abs(stamps[-1] - time.time_ns()) < 5_000_000_000


def test_utc_ns_step_of_the_wall_clock_does_not_move_it(monkeypatch):
    before = clock.utc_ns()
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    assert clock.utc_ns() >= before


def test_utc_iso_known_stamps():
    assert clock.utc_iso(0) == "1970-01-01T00:00:00.000000Z"
    # 2001-09-09 01:46:40 is the well-known second 10^9.
    assert clock.utc_iso(1_000_000_000_123_456_789) == "2001-09-09T01:46:40.123456Z"


def test_utc_iso_sorts_as_time():
    stamps = [999_999_999, 1_000_000_000, 1_000_000_001, 60_000_000_000]

    assert sorted(map(clock.utc_iso, stamps)) == [clock.utc_iso(stamp) for stamp in stamps]
