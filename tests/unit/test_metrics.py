"""Formulas of one sample, each against figures computed by hand."""

from dataclasses import replace

import pytest

from liob_core.metrics import METRICS, sample_metrics
from liob_core.types import Cell, Counters, Outcome, Sample, Shape, Stamps, Surroundings, Task


def make_sample(
    *,
    outcome: Outcome = Outcome.OK,
    task: Task = Task.SUITE,
    stamps: Stamps | None = None,
    counters: Counters | None = None,
) -> Sample:
    cell = Cell(
        cell_id="c",
        index=0,
        variant="F16",
        block=0,
        task=task,
        shape=Shape.CHAT512 if task is Task.SPEED else None,
        prompt_id="p",
        category="math",
        repeat=0,
        warmup=False,
        seed=1,
    )
    return Sample(
        sample_id="s",
        run_id="r",
        load_id="l",
        cell=cell,
        suite="core",
        started_utc="2026-01-01T00:00:00Z",
        outcome=outcome,
        reason=None,
        cold=False,
        prompt="",
        prompt_sha256=None,
        response="",
        thinking="",
        stamps=stamps or STAMPS,
        counters=counters or COUNTERS,
        surroundings=Surroundings(),
    )


STAMPS = Stamps(
    first_token_ns=100_000_000,
    first_text_ns=110_000_000,
    first_output_ns=150_000_000,
    last_token_ns=1_100_000_000,
    end_ns=1_110_000_000,
    first_event_tokens=1,
)
COUNTERS = Counters(
    prompt_tokens=232,
    cached_tokens=32,
    output_tokens=101,
    engine_prompt_ms=80.0,
    engine_eval_ms=1_000.0,
)


def test_every_formula_on_a_plain_reply():
    metrics = sample_metrics(make_sample())
    assert metrics.ttft_ms == pytest.approx(110.0)
    assert metrics.ttfot_ms == pytest.approx(150.0)
    assert metrics.e2e_ms == pytest.approx(1110.0)
    assert metrics.tpot_ms == pytest.approx(10.0)  # (1110 - 110) / 100
    assert metrics.prefill_tps == pytest.approx(2500.0)  # 200 uncached tokens in 80 ms
    assert metrics.decode_tps == pytest.approx(100.0)  # 100 tokens in 1 s
    assert metrics.decode_tps_client == pytest.approx(100.0)
    assert metrics.output_tps == pytest.approx(101 / 1.11)
    assert metrics.overhead_ms == pytest.approx(30.0)
    assert metrics.unknown == {}


def test_decode_counts_all_tokens_where_the_clock_includes_the_first():
    sample = make_sample(counters=replace(COUNTERS, eval_excludes_first_token=False))
    assert sample_metrics(sample).decode_tps == pytest.approx(101.0)


@pytest.mark.parametrize(
    ("changes", "metric", "reason"),
    [
        ({"cached_tokens": 201}, "prefill_tps", "fewer than 32 uncached prompt tokens"),
        ({"cached_tokens": None}, "prefill_tps", "cache unknown"),
        ({"engine_prompt_ms": None}, "prefill_tps", "prompt tokens or time not reported"),
        ({"engine_prompt_ms": 0.0}, "prefill_tps", "the engine reported no prompt time"),
        ({"output_tokens": 7}, "decode_tps", "too short"),
        ({"engine_eval_ms": 0.9}, "decode_tps", "too short"),
        ({"engine_eval_ms": None}, "decode_tps", "output tokens or time not reported"),
        ({"output_tokens": 1}, "tpot_ms", "fewer than 2 output tokens"),
        ({"output_tokens": 1}, "decode_tps_client", "too short"),
        ({"output_tokens": None}, "output_tps", "output tokens not reported"),
        ({"engine_eval_ms": None}, "overhead_ms", "the engine's times are not reported"),
    ],
)
def test_missing_counters_give_none_with_the_reason(changes, metric, reason):
    metrics = sample_metrics(make_sample(counters=replace(COUNTERS, **changes)))
    assert getattr(metrics, metric) is None
    assert metrics.unknown[metric] == reason


def test_the_limits_of_the_null_rules_are_inclusive():
    at_the_limit = replace(COUNTERS, cached_tokens=200, output_tokens=8, engine_eval_ms=1.0)
    metrics = sample_metrics(make_sample(counters=at_the_limit))
    assert metrics.prefill_tps == pytest.approx(400.0)  # 32 tokens in 80 ms
    assert metrics.decode_tps == pytest.approx(7000.0)  # 7 tokens in 1 ms


def test_speed_prompts_defeat_the_cache_so_an_unreported_count_is_none_cached():
    sample = make_sample(task=Task.SPEED, counters=replace(COUNTERS, cached_tokens=None))
    assert sample_metrics(sample).prefill_tps == pytest.approx(2900.0)  # 232 tokens in 80 ms


@pytest.mark.parametrize("first_event_tokens", [None, 2])
def test_client_rate_is_none_where_the_first_piece_may_hold_several_tokens(first_event_tokens):
    sample = make_sample(stamps=replace(STAMPS, first_event_tokens=first_event_tokens))
    metrics = sample_metrics(sample)
    assert metrics.decode_tps_client is None
    assert metrics.unknown["decode_tps_client"] == "the first piece may hold several tokens"


def test_a_reply_without_text_has_no_ttft_and_says_so():
    stamps = replace(STAMPS, first_text_ns=None, first_output_ns=None)
    metrics = sample_metrics(make_sample(outcome=Outcome.EMPTY, stamps=stamps))
    assert metrics.ttft_ms is None
    assert metrics.tpot_ms is None
    assert metrics.unknown["ttft_ms"] == "no text arrived"
    assert metrics.e2e_ms == pytest.approx(1110.0)


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.ENGINE_DIED, Outcome.CANCELLED])
def test_a_request_that_failed_on_the_way_has_only_its_first_times(outcome):
    metrics = sample_metrics(make_sample(outcome=outcome))
    assert metrics.ttft_ms == pytest.approx(110.0)
    assert metrics.e2e_ms is None
    assert metrics.decode_tps is None
    assert metrics.unknown["decode_tps"] == f"the request did not complete ({outcome.value})"


def test_negative_overhead_is_kept_as_it_is():
    sample = make_sample(counters=replace(COUNTERS, engine_load_ms=100.0))
    assert sample_metrics(sample).overhead_ms == pytest.approx(-70.0)


def test_the_table_is_keyed_by_column_name_and_complete():
    assert all(key == metric.id for key, metric in METRICS.items())
    assert {metric.direction for metric in METRICS.values()} == {"higher", "lower", None}
    for metric in METRICS.values():
        assert metric.level in {"sample", "variant", "run"}
        assert all((metric.label, metric.short_label, metric.unit, metric.shown_unit, metric.formula))
