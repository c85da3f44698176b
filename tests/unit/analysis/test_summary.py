"""The summary of a run against figures computed by hand."""

import json

import pytest

from liob_core.analysis.summary import summarize


def reasons(row):
    return json.loads(row["unknown"])


def test_speed_headline_comes_from_chat512_and_prefill_from_pp512(writer):
    writer.run()
    writer.variant("F16", 16.0)
    for block, chat_ms in enumerate((1270.0, 1000.0, 2000.0)):
        writer.speed("F16", block, chat_ms=chat_ms, prefill_ms=256.0, ttft_ms=300.0 + block)
    writer.answer("F16", "p1", decode_tps=999.0, ttft_ms=1.0)
    writer.summarize()
    row = writer.row("results", variant="F16")
    # 127 tokens in 1.27, 1 and 2 s: 100, 127 and 63.5 tokens/s; mean 96.83, sd 31.87, t(2) 4.3027.
    assert row["timing_task"] == "speed"
    assert row["decode_tps"] == pytest.approx(96.8333, abs=1e-3)
    assert row["decode_tps_ci_low"] == pytest.approx(96.8333 - 4.30265 * 31.8682 / 3**0.5, abs=1e-2)
    assert row["decode_tps_ci_high"] == pytest.approx(96.8333 + 4.30265 * 31.8682 / 3**0.5, abs=1e-2)
    assert row["decode_tps_cv"] == pytest.approx(0.3291, abs=1e-4)
    assert row["prefill_tps"] == pytest.approx(2000.0)
    assert row["ttft_ms_p50"] == pytest.approx(301.0)
    assert row["n_blocks"] == 3
    assert row["chat512_decode_tps"] == row["decode_tps"]
    assert row["tg128_decode_tps"] is None


def test_an_interval_never_reaches_below_zero(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.speed("F16", 0, chat_ms=1270.0)
    writer.speed("F16", 1, chat_ms=2540.0)
    writer.summarize()
    assert writer.row("results", variant="F16")["decode_tps_ci_low"] == 0.0


def test_suite_timing_is_weighted_by_tokens_and_one_block_has_no_interval(writer):
    writer.run(tasks=["suite"])
    writer.variant("F16", 16.0)
    writer.answer("F16", "p1", engine_eval_ms=1000.0, decode_tps=100.0, ttft_ms=10.0)
    writer.answer("F16", "p2", engine_eval_ms=3000.0, decode_tps=20.0, ttft_ms=30.0)
    writer.summarize()
    row = writer.row("results", variant="F16")
    assert row["timing_task"] == "suite"
    assert row["decode_tps"] == pytest.approx(40.0)  # 100 + 60 tokens in 4 s, not the mean rate 60
    assert row["decode_tps_ci_low"] is None
    assert reasons(row)["decode_tps_ci_low"] == "one block, no interval"
    assert row["ttft_ms_p50"] == pytest.approx(20.0)


def test_warmups_failures_and_contended_samples_are_counted_but_never_averaged(writer):
    writer.run(tasks=["suite"])
    writer.variant("F16", 16.0)
    writer.answer("F16", "p1")
    writer.answer("F16", "p2", warmup=True, decode_tps=1.0, e2e_ms=9e9)
    writer.answer("F16", "p3", outcome="timeout", decode_tps=1.0, e2e_ms=None)
    writer.answer("F16", "p4", outcome="repetition", decode_tps=1.0, e2e_ms=9e9)
    writer.answer("F16", "p5", contended=True, decode_tps=1.0, e2e_ms=9e9)
    writer.answer("F16", "p6", contended=None)
    writer.summarize()
    row = writer.row("results", variant="F16")
    assert (row["n_samples"], row["n_ok"], row["n_failed"], row["n_contended"]) == (5, 3, 2, 1)
    assert row["decode_tps"] == pytest.approx(100.0)
    assert row["answer_s"] == pytest.approx(0.5)


def test_where_all_are_contended_the_rate_is_null_and_says_so(writer):
    writer.run(tasks=["suite"])
    writer.variant("F16", 16.0)
    for prompt in ("p1", "p2"):
        writer.answer("F16", prompt, "pass", contended=True)
    writer.summarize()
    row = writer.row("results", variant="F16")
    assert row["decode_tps"] is None
    assert reasons(row)["decode_tps"] == "all 2 samples ran beside a busy neighbour"
    assert row["pass_rate"] == 1.0


def test_answer_columns_and_pass_rate_take_the_first_block_only(writer):
    writer.run(tasks=["suite"], suite_repeats=2)
    writer.variant("F16", 16.0)
    writer.answer("F16", "p1", "pass", output_tokens=10, e2e_ms=1000.0)
    writer.answer("F16", "p2", "fail", output_tokens=64, e2e_ms=3000.0, outcome="length")
    writer.answer("F16", "p3", "unchecked", output_tokens=20, e2e_ms=2000.0)
    writer.answer("F16", "p4", outcome="engine_died", e2e_ms=None, output_tokens=None)
    for prompt in ("p1", "p2", "p3"):
        writer.answer("F16", prompt, "fail", block=1, output_tokens=99, e2e_ms=9e6, outcome="length")
    writer.summarize()
    row = writer.row("results", variant="F16")
    assert row["answer_tokens"] == 20
    assert row["answer_s"] == pytest.approx(2.0)
    assert row["truncated_share"] == pytest.approx(1 / 3)
    assert (row["n_passed"], row["n_checked"], row["n_unchecked"]) == (1, 2, 1)
    assert row["pass_rate"] == 0.5
    # Wilson, 1 of 2: (1/2 + z2/4 -+ z sqrt(1/8 + z2/16)) / (1 + z2/2) with z2 = 3.8415.
    assert row["pass_rate_ci_low"] == pytest.approx(0.0945, abs=1e-4)
    assert row["pass_rate_ci_high"] == pytest.approx(0.9055, abs=1e-4)


def test_peaks_are_maxima_and_load_time_is_a_median(writer):
    writer.run(tasks=["suite"])
    writer.variant("F16", 16.0)
    writer.load("F16", 0, 100.0, peak_memory_bytes=10, peak_rss_load_bytes=50, peak_rss_run_bytes=40)
    writer.load("F16", 1, 300.0, peak_memory_bytes=30, peak_rss_load_bytes=None, peak_rss_run_bytes=45)
    nothing = {"peak_memory_bytes": None, "peak_rss_load_bytes": None, "peak_rss_run_bytes": None}
    writer.load("F16", 2, 200.0, **nothing)
    writer.load("F16", 3, 9e9, outcome="timeout", **nothing)
    writer.answer("F16", "p1", peak_system_ram_bytes=7, cpu_peak_pct=50.0)
    writer.answer("F16", "p1", peak_system_ram_bytes=9, cpu_peak_pct=70.0, block=1)
    writer.answer("F16", "p2", peak_system_ram_bytes=8, cpu_peak_pct=90.0)
    writer.summarize()
    row = writer.row("results", variant="F16")
    assert row["load_ms"] == pytest.approx(200.0)
    assert (row["peak_memory_bytes"], row["peak_rss_bytes"]) == (30, 50)
    assert row["peak_system_ram_bytes"] == 9
    assert row["cpu_peak_pct_mean"] == pytest.approx(75.0)  # p1 is 60 on average, p2 is 90
    assert row["peak_vram_bytes"] is None
    assert reasons(row)["peak_vram_bytes"] == "no GPU"


def test_a_variant_that_never_loaded_has_a_row_of_reasons(writer):
    writer.run(tasks=["speed"])
    writer.variant("F16", 16.0)
    writer.variant("Q8_0", 8.5)
    writer.speed("F16", 0)
    writer.summarize()
    row = writer.row("results", variant="Q8_0")
    assert (row["n_samples"], row["n_checked"], row["n_blocks"]) == (0, 0, 0)
    assert row["decode_tps"] is None
    assert reasons(row)["decode_tps"] == "no sample was timed"
    assert reasons(row)["pass_rate"] == "no sample of a suite"


def test_a_rate_the_engine_does_not_report_keeps_the_samples_reason(writer):
    writer.run(tasks=["suite"])
    writer.variant("F16", 16.0)
    writer.answer("F16", "p1", prefill_tps=None, unknown=json.dumps({"prefill_tps": "cache unknown"}))
    writer.summarize()
    row = writer.row("results", variant="F16")
    assert row["prefill_tps"] is None
    assert reasons(row)["prefill_tps"] == "cache unknown"


def test_summarizing_twice_changes_nothing(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.variant("Q8_0", 8.5)
    for label in ("F16", "Q8_0"):
        writer.speed(label, 0)
        writer.answer(label, "p1", "pass")
    writer.summarize()
    before = [writer.con.execute(f"SELECT * FROM main.{v}").fetchall() for v in ("results", "paired_deltas")]
    summarize(writer.con, writer.run_id)
    after = [writer.con.execute(f"SELECT * FROM main.{v}").fetchall() for v in ("results", "paired_deltas")]
    assert before == after
    assert len(before[1]) == 8
