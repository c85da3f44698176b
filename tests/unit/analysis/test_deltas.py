"""Paired effects and verdicts against hand computation; never a winner inside the noise."""

import math

import pytest

LABELS = ("F16", "Q8_0", "Q2_K")


def ladder(writer, **changes):
    writer.run()
    for label, bpw in zip(LABELS, (16.0, 8.5, 3.0), strict=True):
        writer.variant(label, bpw, **(changes if label != "F16" else {}))


def delta(writer, variant, metric):
    return writer.row("paired_deltas", variant=variant, metric=metric)


def test_speed_is_a_paired_ratio_over_blocks(writer):
    ladder(writer)
    for block, (base, fast) in enumerate(((1000.0, 500.0), (1100.0, 560.0), (900.0, 445.0))):
        writer.speed("F16", block, chat_ms=base)
        writer.speed("Q8_0", block, chat_ms=fast)
        writer.speed("Q2_K", block, chat_ms=base * (1.02 if block else 0.9))
    writer.summarize()
    row = delta(writer, "Q8_0", "decode_tps")
    # ln(2), ln(1.964286), ln(2.022472): mean 0.690865, sd 0.014729; t(2) = 4.30265.
    assert (row["kind"], row["n"], row["verdict"]) == ("ratio", 3, "better")
    assert math.log(row["estimate"]) == pytest.approx(0.690865, abs=1e-5)
    assert math.log(row["ci_low"]) == pytest.approx(0.690865 - 4.30265 * 0.014729 / 3**0.5, abs=1e-4)
    assert math.log(row["ci_high"]) == pytest.approx(0.690865 + 4.30265 * 0.014729 / 3**0.5, abs=1e-4)
    assert delta(writer, "Q2_K", "decode_tps")["verdict"] == "not distinguishable"


def test_a_block_that_only_one_of_them_has_pairs_with_nothing(writer):
    ladder(writer)
    writer.speed("F16", 0)
    writer.speed("F16", 1)
    writer.speed("Q8_0", 1, chat_ms=635.0)
    writer.speed("Q8_0", 2, chat_ms=1.0)
    writer.summarize()
    row = delta(writer, "Q8_0", "decode_tps")
    assert (row["n"], row["estimate"]) == (1, pytest.approx(2.0))
    assert (row["ci_low"], row["p_value"], row["verdict"]) == (None, None, None)
    assert row["reason"] == "one block, no interval"
    assert delta(writer, "Q2_K", "decode_tps")["reason"] == "no block was measured for both"


def test_holm_counts_the_variants_of_one_metric(writer):
    ladder(writer)
    for block, noise in enumerate((1.0, 1.025, 0.975)):
        writer.speed("F16", block, chat_ms=1000.0)
        writer.speed("Q8_0", block, chat_ms=930.0 * noise)
        writer.speed("Q2_K", block, chat_ms=935.0 * noise)
    writer.summarize()
    first, second = (delta(writer, label, "decode_tps") for label in ("Q8_0", "Q2_K"))
    low = min(first["p_value"], second["p_value"])
    assert low < 0.05
    assert sorted((first["p_holm"], second["p_holm"])) == pytest.approx([2 * low, 2 * low])
    assert {first["verdict"], second["verdict"]} == {"not distinguishable"}


def test_pass_rate_counts_flips_of_the_first_block(writer):
    ladder(writer)
    results = ["pass"] * 12 + ["fail"] * 8
    for number, base in enumerate(results):
        worse = "fail" if number < 9 else base
        writer.answer("F16", f"p{number}", base)
        writer.answer("Q8_0", f"p{number}", base)
        writer.answer("Q2_K", f"p{number}", "pass" if number == 19 else worse)
        writer.answer("Q2_K", f"p{number}", "pass", block=1)
    writer.answer("F16", "only", "pass")
    writer.answer("F16", "not checked", "pass")
    writer.answer("Q2_K", "not checked", "unchecked")
    writer.summarize()
    row = delta(writer, "Q2_K", "pass_rate")
    # 9 lost and 1 gained of 20: exact McNemar 2 x (1 + 10) / 1024, Holm times 2.
    assert (row["n"], row["n_lost"], row["n_gained"]) == (20, 9, 1)
    assert row["estimate"] == pytest.approx(-0.4)
    assert row["p_value"] == pytest.approx(22 / 1024)
    assert row["p_holm"] == pytest.approx(44 / 1024)
    assert row["verdict"] == "worse"
    assert row["ci_low"] < -0.4 < row["ci_high"] < 0
    same = delta(writer, "Q8_0", "pass_rate")
    assert same["verdict"] == "not distinguishable"
    assert same["loss_bound"] == pytest.approx(1 - 0.05 ** (1 / 20))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n_ctx": 2048}, "other context length (2048 against 4096)"),
        ({"threads": 1}, "other number of threads (1 against 2)"),
        ({"engine": "ollama"}, "other engine (ollama against fake)"),
    ],
)
def test_other_settings_are_not_comparable(writer, changes, reason):
    ladder(writer, **changes)
    for block in range(3):
        writer.speed("F16", block, chat_ms=1000.0 + block)
        writer.speed("Q8_0", block, chat_ms=500.0 + 2 * block)
    writer.summarize()
    row = delta(writer, "Q8_0", "decode_tps")
    assert (row["verdict"], row["reason"], row["p_holm"]) == ("not comparable", reason, None)
    assert row["estimate"] == pytest.approx(2.0, abs=0.05)


def test_threads_do_not_make_quality_incomparable(writer):
    ladder(writer, threads=1)
    writer.answer("F16", "p1", "pass")
    writer.answer("Q8_0", "p1", "pass")
    writer.summarize()
    assert delta(writer, "Q8_0", "pass_rate")["verdict"] == "not distinguishable"


def test_quality_is_not_comparable_where_answers_are_cut_off_clearly_more_often(writer):
    ladder(writer)
    for number in range(20):
        writer.answer("F16", f"p{number}", "pass")
        writer.answer("Q8_0", f"p{number}", "pass", outcome="length" if number < 6 else "ok")
        writer.answer("Q2_K", f"p{number}", "pass", outcome="length" if number < 5 else "ok")
    writer.summarize()
    row = delta(writer, "Q8_0", "pass_rate")  # 6 of 20, McNemar p = 2/64 = .031
    assert (row["verdict"], row["reason"]) == (
        "not comparable",
        "answers cut off differ clearly (30 % against 0 %)",
    )
    assert delta(writer, "Q2_K", "pass_rate")["verdict"] == "not distinguishable"  # 5 of 20: p = .0625


def test_memory_is_a_difference_without_a_verdict(writer):
    ladder(writer)
    writer.load("F16", peak_memory_bytes=3 * 2**30)
    writer.load("Q8_0", peak_memory_bytes=2 * 2**30)
    writer.summarize()
    row = delta(writer, "Q8_0", "peak_memory_bytes")
    assert (row["estimate"], row["verdict"], row["reason"]) == (-(2**30), None, "a maximum has no interval")
    assert delta(writer, "Q2_K", "peak_memory_bytes")["estimate"] is None


def test_answer_time_is_paired_by_prompt_and_needs_two_blocks(writer):
    ladder(writer)
    for number, seconds in enumerate((1.0, 2.0, 6.0)):
        for block in (0, 1):
            writer.answer("F16", f"p{number}", e2e_ms=seconds * 1e3, block=block)
            writer.answer("Q8_0", f"p{number}", e2e_ms=seconds * 1e3 + 500 + 200 * block, block=block)
        writer.answer("Q2_K", f"p{number}", e2e_ms=seconds * 500)
    writer.summarize()
    row = delta(writer, "Q8_0", "answer_s")
    assert (row["n"], row["estimate"], row["verdict"]) == (3, pytest.approx(0.6), "worse")
    one_block = delta(writer, "Q2_K", "answer_s")
    assert (one_block["verdict"], one_block["reason"]) == (None, "one block, so no verdict on time")


def test_load_time_is_a_ratio_over_blocks(writer):
    ladder(writer)
    for block in range(3):
        writer.load("F16", block, 200.0 + block)
        writer.load("Q8_0", block, 100.0 + block)
    writer.summarize()
    row = delta(writer, "Q8_0", "load_ms")
    assert (row["n"], row["verdict"]) == (3, "better")
    assert row["estimate"] == pytest.approx(0.5025, abs=1e-3)


def test_one_variant_alone_has_no_deltas(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.speed("F16", 0)
    writer.summarize()
    assert writer.con.execute("SELECT count(*) FROM paired_deltas").fetchone() == (0,)
