"""What judges put into `paired_deltas`; scores whose differences are computed by hand."""

import pytest

from liob_core.analysis.deltas import NOT_COMPARABLE, SAME, WORSE
from liob_core.analysis.results import results_table
from liob_core.analysis.words import UNKNOWN
from liob_core.charts.theme import LIGHT
from liob_core.rendering.results_table import results_columns, results_rows
from tests.unit.analysis.judged_run import calibrated, opinion, suite_run

PROMPTS = {f"p{number}": "writing" for number in range(5)}
# The original study's: differences 0, 0, -1, -3, -1; mean -1.0, sd 1.2247, t(4) 2.776.
REFERENCE, LOWER = (8, 7, 8, 9, 9), (8, 7, 7, 6, 8)


def scored(writer, judge="judge", *, minute=1, lower=LOWER):
    for variant, values in (("F16", REFERENCE), ("Q4", lower)):
        for prompt, score in zip(PROMPTS, values, strict=True):
            opinion(writer, variant, prompt, judge, score=score, minute=minute)


def test_scores_of_a_calibrated_judge_are_a_paired_delta(writer):
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, PROMPTS)
    calibrated(writer, 8)
    scored(writer)
    writer.summarize()
    row = writer.row("paired_deltas", metric="judge_score")
    assert (row["estimate"], row["n"], row["verdict"], row["reason"]) == (pytest.approx(-1.0), 5, SAME, None)
    assert (row["ci_low"], row["ci_high"]) == (
        pytest.approx(-2.5207, abs=1e-4),
        pytest.approx(0.5207, abs=1e-4),
    )
    assert row["p_holm"] == row["p_value"]
    assert row["method"].endswith("judge: judge")


def test_a_judge_that_failed_its_calibration_has_a_row_without_a_number(writer):
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, PROMPTS)
    calibrated(writer, 7)
    scored(writer)
    writer.summarize()
    row = writer.row("paired_deltas", metric="judge_score")
    assert (row["estimate"], row["ci_low"], row["p_value"], row["verdict"]) == (
        None,
        None,
        None,
        NOT_COMPARABLE,
    )
    assert row["reason"].startswith("judge: 7 of 10 calibration questions right, below 80 %")


def test_the_latest_judge_that_passed_counts(writer):
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, PROMPTS)
    for judge, n_right in (("old", 10), ("trusted", 9), ("weak", 2)):
        calibrated(writer, n_right, judge)
    scored(writer, "old", minute=1)
    scored(writer, "trusted", minute=2, lower=REFERENCE)
    scored(writer, "weak", minute=3)
    writer.summarize()
    row = writer.row("paired_deltas", metric="judge_score")
    assert row["method"].endswith("judge: trusted")
    assert row["estimate"] == 0.0


def test_holm_is_over_the_variants_of_the_judge(writer):
    suite_run(writer, {"F16": 16.0, "Q8": 8.5, "Q4": 4.5}, PROMPTS)
    calibrated(writer, 10)
    scored(writer)
    for prompt, score in zip(PROMPTS, (7, 6, 7, 8, 7), strict=True):
        opinion(writer, "Q8", prompt, score=score)
    writer.summarize()
    row = writer.row("paired_deltas", metric="judge_score", variant="Q8")
    # -1, -1, -1, -1, -2: mean -1.2, sd 0.4472, t = -6, p = 0.0039; Holm doubles the smaller of two.
    assert row["p_value"] == pytest.approx(0.00388, abs=1e-5)
    assert row["p_holm"] == pytest.approx(2 * row["p_value"])
    assert row["verdict"] == WORSE


def test_low_coverage_is_not_comparable_and_says_why(writer):
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, PROMPTS)
    calibrated(writer, 10)
    scored(writer)
    opinion(writer, "Q4", "p0", minute=2, state="parse_error", score=None)
    writer.summarize()
    row = writer.row("paired_deltas", metric="judge_score")
    assert (row["verdict"], row["reason"]) == (NOT_COMPARABLE, "only 4 of 5 answers were scored")


def test_pairs_give_the_share_of_wins_less_losses(writer):
    prompts = {f"p{number}": "writing" for number in range(16)}
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, prompts)
    calibrated(writer, 10, mode="pairwise")
    for number, prompt in enumerate(prompts):
        result, word = ("loss", "reference") if number < 6 else ("tie", "tie")
        changes = {"result": result, "preferred_first": word, "preferred_second": word}
        opinion(writer, "Q4", prompt, mode="pairwise", **changes)
    writer.summarize()
    row = writer.row("paired_deltas", metric="judge_win_share")
    # Six losses and no win: 2 x 0.5^6.
    assert (row["estimate"], row["p_value"]) == (pytest.approx(-6 / 16), pytest.approx(0.03125))
    assert (row["n_gained"], row["n_lost"], row["n"], row["verdict"]) == (0, 6, 16, WORSE)


def judge_cells(writer):
    """What the table of results shows of the judge, by variant."""
    table = results_table(writer.close(), writer.run_id)
    column = [column.label for column in results_columns(table)].index("Judge")
    rows = results_rows(table, table, LIGHT)
    return {row[0].text: row[column] for row in rows}


def test_the_table_of_results_shows_a_calibrated_judge_with_its_verdict(writer):
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, PROMPTS)
    calibrated(writer, 10)
    scored(writer)
    writer.summarize()
    cells = judge_cells(writer)
    # 8, 7, 8, 9, 9: sd 0.8367, t(4) 2.776, so 8.2 +- 1.039.
    assert (cells["F16"].text, [note.text for note in cells["F16"].notes]) == ("8.20", ["7.16 to 9.24"])
    assert [note.text for note in cells["Q4"].notes][-1] == "not distinguishable"


def test_the_table_of_results_shows_no_figure_of_a_judge_that_failed(writer):
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, PROMPTS)
    calibrated(writer, 3)
    scored(writer)
    writer.summarize()
    cell = judge_cells(writer)["Q4"]
    assert (cell.text, cell.notes) == (UNKNOWN, ())
    assert cell.hint.startswith("judge: 3 of 10 calibration questions right")


def test_a_run_without_a_judge_has_no_such_rows(writer):
    suite_run(writer, {"F16": 16.0, "Q4": 4.5}, PROMPTS)
    writer.summarize()
    metrics = writer.con.execute("SELECT DISTINCT metric FROM paired_deltas").fetchall()
    assert not {"judge_score", "judge_win_share"} & {metric for (metric,) in metrics}
