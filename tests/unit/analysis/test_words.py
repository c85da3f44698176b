"""Words that a person reads in a table."""

import math

import pytest

from liob_core.analysis import words


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "—"),
        (math.nan, "—"),
        (0.0, "0"),
        (0.01234, "0.0123"),
        (9.996, "10.0"),
        (99.97, "100"),
        (22.14, "22.1"),
        (187.96, "188"),
        (12345.6, "12,300"),
        (-3.14159, "-3.14"),
    ],
)
def test_three_significant_digits(value, shown):
    assert words.three_digits(value) == shown


@pytest.mark.parametrize(
    ("metric", "stored", "shown"),
    [
        ("decode_tps", 22.14, "22.1 tok/s"),
        ("peak_memory_bytes", 1.9 * 2**30, "1.90 GiB"),
        ("file_bytes", 98_362_432, "93.8 MiB"),
        ("ttft_ms_p50", 301.4, "301 ms"),
        ("load_ms", 1500.0, "1.50 s"),
        ("answer_s", 150.0, "2.50 min"),
        ("pass_rate", 0.58, "58 %"),
        ("truncated_share", 0.025, "2.5 %"),
        ("bpw", 6.17, "6.17 bits"),
        ("decode_tps", None, "—"),
    ],
)
def test_a_value_in_the_unit_people_say(metric, stored, shown):
    assert words.value(metric, stored) == shown


def test_an_interval_names_its_unit_once_where_both_ends_share_it():
    assert words.interval("decode_tps", 12.1, 13.44) == "12.1 to 13.4 tok/s"
    assert words.interval("load_ms", 900.0, 1100.0) == "900 ms to 1.10 s"
    assert words.interval("decode_tps", None, 1.0) is None


@pytest.mark.parametrize(
    ("metric", "estimate", "shown"),
    [
        ("decode_tps", 1.18, "18 % faster"),
        ("decode_tps", 2.1, "2.1 times as fast"),
        ("decode_tps", 0.88, "12 % slower"),
        ("decode_tps", 1.018, "1.8 % faster"),
        ("ttft_ms", 0.5, "50 % shorter"),
        ("answer_s", -3.2, "3.20 s shorter per prompt on average"),
        ("peak_memory_bytes", -1.9 * 2**30, "1.90 GiB less"),
        ("peak_memory_bytes", 0, "the same"),
        ("pass_rate", -0.04, "4 points lower"),
        ("pass_rate", 0.01, "1 point higher"),
    ],
)
def test_an_effect_in_words(metric, estimate, shown):
    assert words.effect(metric, estimate) == shown


def test_a_verdict_hides_the_size_of_what_cannot_be_told_apart():
    assert words.verdict("decode_tps", 1.18, "better", None) == "18 % faster"
    assert words.verdict("decode_tps", 1.18, "not distinguishable", None) == "not distinguishable"
    assert (
        words.verdict("decode_tps", 1.18, "not comparable", "other context length (2048 against 4096)")
        == "not comparable: other context length (2048 against 4096)"
    )
    assert words.verdict("decode_tps", 1.18, None, "one block", 1) == "18 % faster (n = 1, no verdict)"
    assert words.verdict("peak_memory_bytes", -(2**30), None, None, 1) == "1.00 GiB less"
    assert words.verdict("decode_tps", None, None, "no block") == "—"


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0901, "10 points"), (0.09, "9 points"), (0.0721, "8 points"), (0.01, "1 point")]
)
def test_a_bound_is_rounded_up(share, shown):
    assert words.at_most_points(share) == shown
