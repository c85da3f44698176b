"""What a run can tell before it is made."""

import math

import pytest

from liob_core.analysis.detectable import detectable

HERE = {"engine": "fake", "machine_id": "m1"}


def earlier(writer, rates, **run):
    """A run whose Q8_0 is twice as fast, with the blocks' ln ratios off by `rates`."""
    writer.run(**run)
    for label in ("F16", "Q8_0"):
        writer.variant(label, 16.0 if label == "F16" else 8.5)
        for block, off in enumerate(rates):
            writer.speed(label, block, chat_ms=1000.0 / (2 * math.exp(off) if label == "Q8_0" else 1))
    writer.summarize()
    return writer.close()


def test_checks_say_how_many_points_and_what_was_assumed(tmp_path):
    found = detectable(tmp_path / "none.duckdb", n_checked=125, n_blocks=None, **HERE)
    # 2.8 x sqrt(0.10 / 125), rounded up.
    assert found.points == pytest.approx(0.0792, abs=1e-4)
    assert found.sentences == (
        "With 125 checked prompts this run can tell a difference of 8 points in checks passed (80 % power, "
        "if 10 % of the answers flip).",
    )


def test_speed_is_unknown_before_a_first_run_here(tmp_path):
    found = detectable(tmp_path / "none.duckdb", n_checked=0, n_blocks=5, **HERE)
    assert (found.points, found.speed) == (None, None)
    assert found.sentences == (
        "Which difference in speed 5 blocks can tell is not known before a first run here shows how much "
        "blocks vary.",
    )


def test_speed_uses_how_much_blocks_varied_in_the_last_run_here(writer):
    db = earlier(writer, (-0.02, 0.0, 0.02))
    found = detectable(db, n_checked=0, n_blocks=4, **HERE)
    assert found.speed_sd == pytest.approx(0.02)
    # (t(0.975, 3) + t(0.8, 3)) x 0.02 / sqrt(4), as a rise.
    assert found.speed == pytest.approx(math.expm1((3.182 + 0.978) * 0.01), abs=1e-4)
    assert "With 4 blocks" in found.sentences[0]
    assert "blocks vary by 2.0 % as in the last run here" in found.sentences[0]


@pytest.mark.parametrize("other", [{"engine": "ollama"}, {"machine_id": "m2"}])
def test_a_run_elsewhere_says_nothing_of_speed_here(writer, other):
    db = earlier(writer, (-0.02, 0.0, 0.02), **other)
    assert detectable(db, n_checked=0, n_blocks=4, **HERE).speed is None


def test_one_block_tells_nothing_of_speed(tmp_path):
    found = detectable(tmp_path / "none.duckdb", n_checked=0, n_blocks=1, **HERE)
    assert found.sentences == ("One block gives no interval, so that no difference in speed can be told.",)
