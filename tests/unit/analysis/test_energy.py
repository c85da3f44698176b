"""Energy of an output token: which scope speaks, what limits it meets, how it is shown."""

import json

import numpy as np
import pytest

from liob_core.analysis.limits import MET, MISSED, UNKNOWN, Limits
from liob_core.analysis.recommend import recommend
from liob_core.analysis.results import results_table
from liob_core.analysis.tradeoff import axes_of, tradeoff
from liob_core.charts.theme import LIGHT
from liob_core.rendering.results_table import results_columns, results_rows
from tests.unit.analysis.conftest import RUN

TOKENS = 512


def window(writer, variant, block, joules, **changes):
    """A tg128 window of 512 tokens that took so many joules, by the processor."""
    row = {
        "run_id": RUN,
        "load_id": f"load-{variant}-{block}",
        "variant": variant,
        "block": block,
        "shape": "tg128",
        "scope": "package",
        "source": "rapl",
        "window_s": 10.0,
        "n_requests": 4,
        "output_tokens": TOKENS,
        "energy_j": joules,
        "idle_before_w": 10.0,
        "idle_after_w": 10.0,
        "contended": False,
    }
    writer.insert("energy", **(row | changes))


def two_variants(writer):
    """Of F16 and Q8_0 the latter loses nothing on 120 prompts."""
    writer.run()
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw)
        writer.load(label)
        for block in range(3):
            writer.speed(label, block)
        for prompt in range(120):
            writer.answer(label, f"p{prompt}", "pass")


def finished(writer):
    writer.summarize()
    return writer.close(), RUN


@pytest.fixture
def measured(writer):
    """512, 500 and 524 J, thus 1 J a token, sd 12/512; F16 takes twice as much."""
    two_variants(writer)
    for block, joules in enumerate((512.0, 500.0, 524.0)):
        window(writer, "Q8_0", block, joules)
        window(writer, "F16", block, 2 * joules)
        window(writer, "Q8_0", block, 9000.0, shape="chat512")
        window(writer, "Q8_0", block, 50.0, scope="dram")
    return finished(writer)


def row(db, variant):
    table = results_table(*db)
    return next(one for one in table.to_dict("records") if one["variant"] == variant)


def evidence(db, limits, variant="Q8_0"):
    return next(one for one in recommend(*db, limits).of(variant).evidence if one.limit == "energy")


HALF = 4.30265 * 12 / TOKENS / 3**0.5


def test_the_interval_is_over_blocks_and_the_net_beside_it(measured):
    own = row(measured, "Q8_0")
    assert own["j_per_output_token"] == pytest.approx(1.0)
    assert own["j_per_output_token_ci_low"] == pytest.approx(1 - HALF, abs=1e-5)
    assert own["j_per_output_token_ci_high"] == pytest.approx(1 + HALF, abs=1e-5)
    assert own["net_j_per_output_token"] == pytest.approx((512 - 100) / TOKENS)
    assert (own["energy_scope"], own["energy_source"], own["energy_n_blocks"]) == ("package", "rapl", 3)


def test_the_device_speaks_for_all_variants_where_the_run_has_it(writer):
    two_variants(writer)
    for block in range(2):
        for label in ("F16", "Q8_0"):
            window(writer, label, block, 512.0)
        window(writer, "Q8_0", block, 1024.0, scope="gpu", source="nvml counter")
        window(writer, "F16", block, None, scope="gpu", source="nvml counter", reason="it died\nlog")
    db = finished(writer)
    own, other = row(db, "Q8_0"), row(db, "F16")
    assert (own["energy_scope"], own["j_per_output_token"]) == ("gpu", 2.0)
    assert other["energy_scope"] == "gpu"
    assert np.isnan(other["j_per_output_token"]), "another scope is no substitute"
    assert json.loads(other["unknown"])["j_per_output_token"] == "it died"


def test_devices_that_were_at_rest_leave_the_word_to_the_processor(writer):
    two_variants(writer)
    for block in range(2):
        for label in ("F16", "Q8_0"):
            window(writer, label, block, 512.0)
            window(writer, label, block, None, scope="gpu", source="nvml counter", reason="at rest")
    assert row(finished(writer), "F16")["energy_scope"] == "package"


def test_a_window_beside_a_busy_neighbour_is_in_no_mean(writer):
    two_variants(writer)
    for block, is_busy in enumerate((False, True)):
        window(writer, "Q8_0", block, 512.0 * (1 + 9 * is_busy), contended=is_busy)
        window(writer, "F16", block, 512.0, contended=True)
    db = finished(writer)
    own = row(db, "Q8_0")
    assert (own["j_per_output_token"], own["energy_n_blocks"]) == (1.0, 1)
    assert "busy neighbour" in json.loads(row(db, "F16")["unknown"])["j_per_output_token"]


def test_a_net_is_not_known_where_the_rests_disagree(writer):
    two_variants(writer)
    window(writer, "Q8_0", 0, 512.0, idle_after_w=16.0)  # 6 W of 51.2 W
    own = row(finished(writer), "Q8_0")
    assert np.isnan(own["net_j_per_output_token"])
    assert "more than 10 %" in json.loads(own["unknown"])["net_j_per_output_token"]


def test_a_limit_is_met_by_the_upper_end(measured):
    met, missed = (evidence(measured, Limits(max_joules=1 + HALF + by)) for by in (1e-4, -1e-4))
    assert (met.verdict, missed.verdict) == (MET, MISSED)
    assert met.bound == met.high == pytest.approx(1 + HALF, abs=1e-5)
    assert missed.excess == pytest.approx(1e-4 / (1 + HALF), rel=0.1)
    assert missed.sentence == (
        "energy of at most 1.06 J a token: 1.00 J/token by the processor (0.942 to 1.06 J/token)"
    )
    assert recommend(*measured, Limits(max_joules=1.1)).pick == "Q8_0"
    assert recommend(*measured, Limits(max_joules=0.9)).pick is None


def test_one_block_and_no_counter_meet_no_limit(writer):
    two_variants(writer)
    window(writer, "Q8_0", 0, 1.0)
    writer.insert(
        "events",
        run_id=RUN,
        journal_offset=1,
        event="energy not measured",
        detail="no energy counter that LIOB can read",
    )
    db = finished(writer)
    own, other = (evidence(db, Limits(max_joules=1000), name) for name in ("Q8_0", "F16"))
    assert (own.verdict, own.sentence.rpartition("(")[2]) == (UNKNOWN, "one block, no interval)")
    assert (other.verdict, other.value) == (UNKNOWN, None)
    assert other.sentence == ("energy of at most 1,000 J a token: no energy counter that LIOB can read")


def test_an_axis_where_it_was_measured_and_who_is_beaten_on_it(measured):
    frame = tradeoff(*measured, "file_bytes", "j_per_output_token")
    assert "j_per_output_token" in axes_of(frame)
    standing = dict(
        zip(frame["variant"], zip(frame["standing"], frame["beaten_by"], strict=True), strict=True)
    )
    # Half the energy in each of three blocks, and a smaller file.
    assert standing == {"F16": ("dominated", "Q8_0"), "Q8_0": ("front", "")}


def test_the_table_has_the_column_only_where_there_is_something_to_say(writer):
    two_variants(writer)
    for block, joules in enumerate((512.0, 500.0)):
        window(writer, "Q8_0", block, joules)
        window(writer, "F16", block, None, reason="the counter could not be read")
    table = results_table(*finished(writer))
    place = [column.label for column in results_columns(table)].index("J/token")
    failed, own = (cells[place] for cells in results_rows(table, table, LIGHT))
    assert (failed.text, failed.hint) == ("—", "the counter could not be read")
    assert own.text == "0.988"
    assert [note.text for note in own.notes] == ["0.839 to 1.14", "processor, rapl", "net 0.793"]
    without = table.assign(energy_scope=None, j_per_output_token=None)
    assert "J/token" not in [column.label for column in results_columns(without)]
