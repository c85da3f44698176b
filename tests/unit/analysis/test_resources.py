"""Readings over time: what is kept of them, where the gaps are, and that no picture grows too large."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from liob_core.analysis import resources

RUN = "20260101-000000-test"
START = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
START_NS = round(START.replace(tzinfo=UTC).timestamp()) * 10**9


def read(writer, *, at_s, **values):
    writer.insert("readings", run_id=RUN, utc_ns=START_NS + round(at_s * 1e9), **values)


def small_run(writer, **changes):
    writer.run(monitor_hz=10.0, **changes)
    writer.machine(missing_sources=json.dumps({"steal": "not here"}), gpu_reason="no driver")
    writer.variant("F16", 16.0)


def lines_of(path, end_s):
    return resources.lines(path, RUN, START_NS, START_NS + round(end_s * 1e9), START_NS)


def test_lowest_highest_and_mean_are_kept_and_the_peak_keeps_its_moment(writer):
    small_run(writer)
    for tenth in range(100):
        used = 500 if tenth == 42 else 100 + tenth % 2
        read(writer, at_s=tenth / 10, rss_bytes=used, system_ram_bytes=1000, engine_cpu_pct=400.0)
    writer.flush()
    frame = lines_of(writer.close(), 10)

    engine = frame[(frame["panel"] == "memory") & (frame["series"] == "engine")]
    assert engine["low"].min() == 100
    assert engine.loc[engine["high"].idxmax(), "peak_s"] == pytest.approx(4.2)
    assert engine["high"].max() == 500
    # 400 % of one core on 8 logical cores is half of the machine.
    cpu = frame[(frame["panel"] == "cpu") & (frame["series"] == "engine")]
    assert set(cpu["mean"]) == {50.0}
    assert (frame["gap_s"] == 0).all()
    assert set(frame["segment"]) == {0}


def test_gap_breaks_the_line_of_the_source_that_gave_nothing(writer):
    small_run(writer)
    for tenth in range(100):
        is_silent = 30 <= tenth < 50
        rss = None if is_silent else 100
        read(writer, at_s=tenth / 10, rss_bytes=rss, system_ram_bytes=1000)
    writer.flush()
    frame = lines_of(writer.close(), 10)

    engine = frame[(frame["panel"] == "memory") & (frame["series"] == "engine")]
    assert list(engine.loc[engine["gap_s"] > 0, "gap_s"]) == pytest.approx([2.1])
    assert engine.loc[engine["gap_s"] > 0, "first_s"].iloc[0] == pytest.approx(5.0)
    assert list(engine["segment"].drop_duplicates()) == [0, 1]
    machine = frame[frame["series"] == "machine"]
    assert (machine["gap_s"] == 0).all()


def test_source_that_never_spoke_has_no_line(writer):
    small_run(writer)
    for tenth in range(20):
        read(writer, at_s=tenth / 10, system_ram_bytes=1000)
    writer.flush()
    frame = lines_of(writer.close(), 2)

    assert set(zip(frame["panel"], frame["series"], strict=True)) == {("memory", "machine")}


def test_devices_are_summed_only_where_each_told_its_part(writer):
    small_run(writer)
    read(writer, at_s=0, system_ram_bytes=1)
    for at_s, second in ((0, 20.0), (1, None)):
        for device, watts in enumerate((10.0, second)):
            writer.insert(
                "gpu_readings",
                run_id=RUN,
                utc_ns=START_NS + at_s * 10**9,
                device=device,
                power_w=watts,
                used_bytes=100,
                utilization_pct=50.0 * device,
            )
    writer.flush()
    frame = lines_of(writer.close(), 2)

    power = frame[frame["panel"] == "power"]
    assert list(power["mean"]) == [30.0]
    assert set(frame.loc[frame["panel"] == "gpu", "mean"]) == {25.0}
    assert set(frame.loc[frame["series"].eq("device") & frame["panel"].eq("memory"), "high"]) == {200.0}


def test_a_long_run_stays_below_2000_marks(writer):
    small_run(writer)
    writer.variant("Q8_0", 8.5)
    for block in range(3):
        for label in ("F16", "Q8_0"):
            writer.load(label, block)
    writer.flush()
    writer.con.execute(
        "INSERT INTO raw.readings SELECT ?, ? + i * 100000000, 100, 100, 0, 400, 50, 0, 0, 1000 "
        "FROM range(60000) AS t(i)",
        [RUN, START_NS],
    )
    writer.con.execute(
        "INSERT INTO raw.samples (sample_id, run_id, load_id, cell_id, variant, task, warmup, cold, "
        "started_utc, outcome, end_ns) SELECT 's' || i, ?, 'load-' || (i % 6), i, "
        "if(i % 2 = 0, 'F16', 'Q8_0'), 'suite', "
        "false, false, ?::TIMESTAMP + i * INTERVAL 1 second, if(i % 100 = 0, 'timeout', 'ok'), 900000000 "
        "FROM range(6000) AS t(i)",
        [RUN, START],
    )
    path = writer.close()
    frame = lines_of(path, 6000)
    bars = resources.requests(path, RUN, START_NS, START_NS + 6000 * 10**9, START_NS)

    assert len(frame) + len(bars) <= 2000
    assert len(frame) > 1000
    assert frame.loc[frame["series"] == "engine", "n"].sum() == 2 * 60000
    requests = bars[bars["kind"] == "request"]
    assert len(requests) <= resources.MAX_REQUEST_MARKS


def test_few_requests_are_single_bars_beside_their_loads(writer):
    small_run(writer)
    writer.load("F16", 0, load_ms=500.0)
    writer.sample("F16", "speed", shape="pp512", load_id="load-0", end_ns=2 * 10**9, warmup=True)
    writer.sample("F16", "suite", prompt_id="p1", load_id="load-0", end_ns=10**9, outcome="timeout")
    writer.flush()
    path = writer.close()
    bars = resources.requests(path, RUN, START_NS, START_NS + 10 * 10**9, START_NS)

    assert list(bars["kind"]) == ["request", "request", "load"]
    first, second, load = bars.to_dict("records")
    assert (first["start_s"], first["end_s"], first["is_warmup"], first["what"]) == (1.0, 3.0, True, "pp512")
    assert (second["prompt_id"], second["n_failed"], second["outcome"]) == ("p1", 1, "timeout")
    assert (load["start_s"], load["end_s"]) == (0.0, 0.5)
    parts = resources.parts(path, RUN)
    assert list(parts["variant"]) == ["F16"]
    assert parts["end_ns"].iloc[0] == START_NS + 3 * 10**9


def test_extent_covers_readings_and_requests_and_says_what_is_not_read(writer):
    small_run(writer)
    read(writer, at_s=-1, rss_bytes=1)
    writer.sample("F16", end_ns=5 * 10**9, started_utc=START + timedelta(seconds=2))
    writer.flush()
    extent = resources.extent(writer.close(), RUN)

    assert (extent.start_ns, extent.end_ns) == (START_NS - 10**9, START_NS + 7 * 10**9)
    assert extent.n_readings == 1
    assert extent.missing == {"steal": "not here", "gpu": "no driver"}


def test_run_without_readings_and_requests_has_no_extent(writer):
    small_run(writer)
    writer.flush()
    assert resources.extent(writer.close(), RUN) is None
