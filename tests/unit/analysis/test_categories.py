"""Differences by category: n, intervals and what is clear, computed by hand."""

import pytest

from liob_core.analysis.categories import ALL, check_categories, not_comparable, score_categories
from tests.unit.analysis.judged_run import calibrated, opinion, suite_run

VARIANTS = {"F16": 16.0, "Q8_0": 8.5, "Q2_K": 3.0}


def checked_run(writer):
    """Q2_K loses all four of math and one of three of facts; Q8_0 was not checked on facts at all."""
    writer.run(tasks=["suite"])
    prompts = {f"m{number}": "math" for number in range(4)} | {f"f{number}": "facts" for number in range(3)}
    for position, (prompt, category) in enumerate(prompts.items()):
        writer.prompt(prompt, position, category=category)
    writer.prompt("w0", 9, category="writing")
    for label, bpw in VARIANTS.items():
        writer.variant(label, bpw)
        for prompt, category in prompts.items():
            is_lost = label == "Q2_K" and (category == "math" or prompt == "f0")
            result = "fail" if is_lost else "pass"
            if label == "Q8_0" and category == "facts":
                result = "unchecked"
            writer.answer(label, prompt, result, category=category)
        writer.answer(label, "w0", None, category="writing")
    writer.summarize()
    return writer.close()


def test_each_category_has_its_own_paired_difference(writer):
    cells = check_categories(checked_run(writer), writer.run_id).set_index(["category", "variant"])
    # A category without any check is no row; the order is the suite's, with all prompts last.
    assert list(dict.fromkeys(cells.index.get_level_values(0))) == ["math", "facts", ALL]
    math = cells.loc[("math", "Q2_K")]
    assert (math["delta"], math["n"], math["n_gained"], math["n_lost"]) == (-1.0, 4, 0, 4)
    # Four flips of four: the score test's z is 4 / sqrt(4) = 2.0 > 1.96, so the interval leaves 0 out.
    assert math["is_clear"]
    assert math["delta_high"] < 0
    facts = cells.loc[("facts", "Q2_K")]
    assert (facts["delta"], facts["n"], facts["is_clear"]) == (pytest.approx(-1 / 3), 3, False)
    same = cells.loc[("math", "Q8_0")]
    assert (same["delta"], same["is_clear"]) == (0.0, False)


def test_what_was_not_checked_for_both_has_a_reason_and_no_number(writer):
    cells = check_categories(checked_run(writer), writer.run_id).set_index(["category", "variant"])
    missing = cells.loc[("facts", "Q8_0")]
    assert (missing["n"], missing["reason"]) == (0, "no prompt was checked for both")
    assert missing[["delta", "delta_low", "delta_high"]].isna().all()
    assert not missing["is_clear"]


def test_all_prompts_together_are_those_of_every_category(writer):
    cells = check_categories(checked_run(writer), writer.run_id).set_index(["category", "variant"])
    everything = cells.loc[(ALL, "Q2_K")]
    assert (everything["n"], everything["n_lost"], everything["delta"]) == (7, 5, pytest.approx(-5 / 7))


def test_variants_that_must_not_be_ranked_are_named(writer):
    checked_run(writer)
    assert not_comparable(writer.path, writer.run_id, "pass_rate") == []


PROMPTS = {"e0": "email", "e1": "email", "e2": "email", "s0": "story"}


def judged_run(writer, n_right):
    suite_run(writer, {"F16": 16.0, "Q2_K": 3.0}, PROMPTS)
    calibrated(writer, n_right)
    for prompt, score in zip(PROMPTS, (5, 4, 3, 6), strict=True):
        opinion(writer, "F16", prompt, score=8)
        opinion(writer, "Q2_K", prompt, score=score)
    writer.summarize()
    return writer.close()


def test_scores_by_category_need_a_judge_that_gives_verdicts(writer):
    assert score_categories(judged_run(writer, 7), writer.run_id, "judge").empty


def test_scores_by_category_are_paired_by_prompt(writer):
    cells = score_categories(judged_run(writer, 8), writer.run_id, "judge").set_index("category")
    # -3, -4, -5: mean -4, sd 1, t(2) = 4.3027, so -4 +- 2.484.
    email = cells.loc["email"]
    assert (email["delta"], email["n"], email["is_clear"]) == (-4.0, 3, True)
    assert email["delta_high"] == pytest.approx(-1.516, abs=1e-3)
    story = cells.loc["story"]
    assert (story["delta"], story["n"], story["is_clear"]) == (-2.0, 1, False)


def test_equal_differences_have_no_spread_and_so_no_interval(writer):
    suite_run(writer, {"F16": 16.0, "Q2_K": 3.0}, {"e0": "email", "e1": "email"})
    calibrated(writer, 10)
    for prompt in ("e0", "e1"):
        opinion(writer, "F16", prompt, score=8)
        opinion(writer, "Q2_K", prompt, score=7)
    writer.summarize()
    (cell,) = score_categories(writer.close(), writer.run_id, "judge").to_dict("records")
    assert (cell["delta"], cell["is_clear"]) == (-1.0, False)
