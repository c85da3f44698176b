"""The memory-bandwidth ceiling by hand, and every reason for which it is not known."""

import json

import pytest

from liob_core.analysis.results import results_table
from liob_core.analysis.roofline import BELOW_THE_RATE, NOT_MEASURED

MEASURED = {"read_bytes_per_s": 40e9, "read_threads": 2, "cache_bytes": 32_000_000}


def results(writer, *, run=MEASURED, variant=(), load=()):
    """The results of one variant that ran on the processor and reads 400 MB a token."""
    writer.run(**dict(run))
    writer.variant("F16", 16.0, **({"token_read_bytes": 400_000_000, "threads": 2} | dict(variant)))
    writer.load("F16", **({"effective": json.dumps({"gpu_layers": 0})} | dict(load)))
    writer.speed("F16", 0, chat_ms=1587.5)  # 127 tokens: 80 tok/s
    writer.summarize()
    return results_table(writer.close(), writer.run_id).iloc[0]


def test_the_ceiling_is_bytes_a_second_over_bytes_a_token(writer) -> None:
    found = results(writer)
    assert found["ceiling_tps"] == pytest.approx(100.0)
    assert found["roofline_share"] == pytest.approx(0.8)


def test_a_ceiling_without_a_rate_has_no_share(writer) -> None:
    writer.run(**MEASURED)
    writer.variant("F16", 16.0, token_read_bytes=400_000_000, threads=2)
    writer.load("F16", effective=json.dumps({"gpu_layers": 0}))
    writer.summarize()
    found = results_table(writer.close(), writer.run_id).iloc[0]
    assert found["ceiling_tps"] == pytest.approx(100.0)
    assert json.loads(found["unknown"])["roofline_share"] == "no usable request of the shape chat512"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": {}}, NOT_MEASURED),
        ({"run": {**MEASURED, "read_bytes_per_s": 30e9}}, BELOW_THE_RATE),
        ({"run": {"read_reason": "the size of the last-level cache is not known"}}, "the size of the last"),
        ({"load": {"effective": json.dumps({"gpu_layers": 12})}}, "12 layers on the GPU"),
        ({"load": {"effective": "{}"}, "variant": {"gpu_layers": None}}, "offload not known"),
        ({"load": {"peak_rss_load_bytes": None, "peak_rss_run_bytes": None}}, "no process of the engine"),
        ({"variant": {"threads": 1}}, "memory was read with 2 threads"),
        ({"variant": {"token_read_bytes": None}}, "what a token reads of this model is not known"),
        (
            {"variant": {"token_read_bytes": 60_000_000}},
            "what a token reads (60 MB) nearly fits the last-level cache (32 MB)",
        ),
    ],
)
def test_unknown_has_its_reason(writer, changes, reason) -> None:
    found = results(writer, **changes)
    unknown = json.loads(found["unknown"])
    for name in ("ceiling_tps", "roofline_share"):
        assert found[name] != found[name] or found[name] is None, "NULL, not 0"
        assert reason in unknown[name]
