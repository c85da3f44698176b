"""Overlap with reference answers per variant; means and t intervals by hand."""

import pytest

from liob_core.analysis.overlaps import overlaps


def test_means_and_differences_are_over_prompts(writer):
    writer.run(tasks=["suite"])
    for number in range(3):
        writer.prompt(f"r{number}", number, check_kind="rouge_l")
    writer.prompt("x", 9, check_kind="number")
    for label, bpw, scores in (("F16", 16.0, (0.5, 0.6, 0.7)), ("Q4", 4.5, (0.4, 0.6, 0.5))):
        writer.variant(label, bpw)
        for number, score in enumerate(scores):
            writer.answer(label, f"r{number}", "pass", check_score=score)
        writer.answer(label, "x", "pass")
    writer.summarize()
    reference, other = overlaps(writer.close(), writer.run_id).to_dict("records")
    # sd 0.1, t(2) = 4.3027: 0.6 +- 0.2484.
    assert (reference["kind"], reference["mean_score"], reference["n"]) == ("rouge_l", pytest.approx(0.6), 3)
    assert (reference["ci_low"], reference["ci_high"]) == (
        pytest.approx(0.3516, abs=1e-4),
        pytest.approx(0.8484, abs=1e-4),
    )
    # -0.1, 0, -0.2: mean -0.1, sd 0.1.
    assert (other["delta"], other["n_pairs"]) == (pytest.approx(-0.1), 3)
    assert other["delta_low"] == pytest.approx(-0.3484, abs=1e-4)


def test_a_suite_without_such_checks_has_none(writer):
    writer.run(tasks=["suite"])
    writer.variant("F16", 16.0)
    writer.prompt("x")
    writer.answer("F16", "x", "pass")
    writer.summarize()
    assert overlaps(writer.close(), writer.run_id).empty
