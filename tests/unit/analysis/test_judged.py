"""Verdicts of judges: coverage, failures, calibration; figures computed by hand."""

import pytest

from liob_core.analysis.judge_verdicts import Cell, JudgeFacts, pair_row, score_row, with_verdicts

TRUSTED = JudgeFacts(judge="j", judge_key="k", mode="single", n_judged=0, n_scored=0, n_right=20, n_items=24)
FAILED = JudgeFacts(judge="j", judge_key="k", mode="single", n_judged=0, n_scored=0, n_right=19, n_items=24)


def cell(**changes: object) -> Cell:
    values: dict[str, object] = dict.fromkeys(Cell.__dataclass_fields__)
    return Cell(**{**values, "outcome": "ok", "state": "scored", **changes})  # type: ignore[arg-type]


def scored(*scores: int) -> dict[str, Cell]:
    return {f"p{number:03d}": cell(score=score) for number, score in enumerate(scores)}


def rows(mine: dict[str, Cell], base: dict[str, Cell], facts: JudgeFacts = TRUSTED):  # type: ignore[no-untyped-def]
    made = [
        {"variant": "F16", "is_reference": True, **score_row(base, base)},
        {"variant": "Q4", "is_reference": False, **score_row(mine, base)},
    ]
    return with_verdicts(made, facts)


def test_difference_of_the_original_study_is_not_distinguishable() -> None:
    """Differences 0, 0, -1, -3, -1: mean -1.0, sd 1.2247, t(4) 2.776, so -2.52 to +0.52."""
    reference, mine = rows(scored(8, 7, 7, 6, 8), scored(8, 7, 8, 9, 9))
    assert (reference["mean_score"], reference["words"]) == (8.2, "reference")
    assert mine["mean_score"] == pytest.approx(7.2)
    assert mine["delta"] == pytest.approx(-1.0)
    assert (mine["delta_low"], mine["delta_high"]) == (
        pytest.approx(-2.5207, abs=1e-4),
        pytest.approx(0.5207, abs=1e-4),
    )
    assert (mine["n_pairs"], mine["verdict"]) == (5, "not distinguishable")


def test_clear_loss_is_worse_and_the_other_way_round_better() -> None:
    low, high = scored(*[5, 6] * 10), scored(*[8, 8] * 10)
    assert rows(low, high)[1]["verdict"] == "worse"
    assert rows(high, low)[1]["verdict"] == "better"


def test_judge_that_failed_its_calibration_gives_numbers_but_no_verdict() -> None:
    _, mine = rows(scored(*[5, 6] * 10), scored(*[8, 8] * 10), FAILED)
    assert mine["delta"] == pytest.approx(-2.5)
    assert (mine["verdict"], mine["p_value"], mine["p_holm"]) == (None, None, None)
    assert mine["words"].endswith("no verdict")
    assert "19 of 24" in mine["reason"]


@pytest.mark.parametrize(
    "state", ["judge_error", "parse_error", "out_of_range", "refused", "truncated_judge", None]
)
def test_below_95_percent_coverage_there_is_no_ranking(state: str | None) -> None:
    """18 of 20 is 90 %; 19 of 20 is just enough. None: the judging was cancelled before it."""
    base = scored(*[8] * 20)
    for n_missing, verdict in ((1, "worse"), (2, "not comparable")):
        mine = scored(*[5, 6] * 10)
        for number in range(n_missing):
            mine[f"p{number:03d}"] = cell(state=state)
        row = rows(mine, base)[1]
        assert (row["verdict"], row["n_scored"], row["n_pairs"]) == (verdict, 20 - n_missing, 20 - n_missing)
        if state is not None:
            assert row[f"n_{state}"] == n_missing
    assert row["reason"] == "only 18 of 20 answers were scored"
    worse_reference = rows(base, mine)[1]
    assert worse_reference["reason"] == "only 18 of 20 answers of the reference were scored"


def test_candidates_failures_count_as_its_own_and_forbid_a_ranking_where_they_differ_clearly() -> None:
    base = scored(*[8] * 20)
    mine = scored(*[9, 8] * 10)
    for number in range(8):
        mine[f"p{number:03d}"] = cell(outcome="length", state=None)
    row = rows(mine, base)[1]
    assert (row["n_own_failures"], row["n_scored"], row["n_judgeable"], row["coverage"]) == (8, 12, 12, 1.0)
    assert row["mean_score"] == 8.5, "a failure is no low score"
    # 8 flips one way, none the other: exact p = 2 x 0.5^8 = 0.0078.
    assert row["verdict"] == "not comparable"
    assert row["reason"] == "answers without a score differ clearly (40 % against 0 %)"


def test_an_interval_of_a_mean_ends_where_the_scale_does() -> None:
    # 9, 10, 10: mean 9.67, sd 0.577, t(2) 4.303, so +- 1.434.
    row = score_row(scored(9, 10, 10), scored(9, 10, 10))
    assert (row["ci_low"], row["ci_high"]) == (pytest.approx(8.2324, abs=1e-4), 10.0)


def test_one_prompt_has_no_interval_and_no_verdict() -> None:
    _, mine = rows(scored(5), scored(8))
    assert (mine["delta"], mine["delta_low"], mine["verdict"]) == (-3.0, None, None)


def test_nothing_scored_is_no_number() -> None:
    none = {"p000": cell(state="parse_error")}
    reference, mine = rows(none, none)
    assert (mine["mean_score"], mine["delta"], mine["verdict"]) == (None, None, "not comparable")
    assert reference["mean_score"] is None


def test_holm_counts_the_variants_of_one_judge() -> None:
    base = scored(*[8] * 20)
    made = [{"variant": "F16", "is_reference": True, **score_row(base, base)}]
    for name in ("Q8", "Q4"):
        row = score_row(scored(*[7, 8] * 10), base)
        made.append({"variant": name, "is_reference": False, **row})
    _, first, second = with_verdicts(made, TRUSTED)
    assert first["p_holm"] == pytest.approx(2 * first["p_value"])
    assert second["p_holm"] == first["p_holm"]


def paired(wins: int, ties: int, losses: int) -> dict[str, Cell]:
    results = ["win"] * wins + ["tie"] * ties + ["loss"] * losses
    return {f"p{number:03d}": cell(result=result) for number, result in enumerate(results)}


def pair_verdict(cells: dict[str, Cell], base: dict[str, Cell] | None = None):  # type: ignore[no-untyped-def]
    base = base or {prompt: cell(state=None) for prompt in cells}
    [row] = with_verdicts([{"variant": "Q4", "is_reference": False, **pair_row(cells, base)}], TRUSTED)
    return row


@pytest.mark.parametrize(
    ("wins", "ties", "losses", "p_value", "verdict"),
    [
        # Two-sided binomial: 2 x 0.5^6, 2 x 0.5^5, none decided.
        (0, 10, 6, 0.03125, "worse"),
        (6, 0, 0, 0.03125, "better"),
        (0, 10, 5, 0.0625, "not distinguishable"),
        (0, 8, 0, 1.0, "not distinguishable"),
    ],
)
def test_sign_test_on_wins_and_losses(
    wins: int, ties: int, losses: int, p_value: float, verdict: str
) -> None:
    row = pair_verdict(paired(wins, ties, losses))
    assert (row["n_wins"], row["n_ties"], row["n_losses"]) == (wins, ties, losses)
    assert (row["p_value"], row["verdict"]) == (pytest.approx(p_value), verdict)
    assert row["delta"] == pytest.approx((wins - losses) / (wins + ties + losses))


def test_pairs_without_the_references_answer_are_not_counted_as_missing() -> None:
    cells = paired(0, 4, 0)
    base = {prompt: cell(state=None, outcome="length" if prompt == "p000" else "ok") for prompt in cells}
    row = pair_verdict(cells, base)
    assert (row["n_judgeable"], row["n_total"], row["coverage"]) == (3, 4, 1.0)


def test_other_lengths_and_orders_that_contradict_are_counted() -> None:
    cells = {
        "p000": cell(
            result="tie", preferred_first="variant", preferred_second="reference", lengths_differ=True
        ),
        "p001": cell(result="tie", preferred_first="tie", preferred_second="tie", lengths_differ=False),
        "p002": cell(result="win", preferred_first="variant", preferred_second="variant", is_self=True),
    }
    row = pair_verdict(cells)
    assert (row["n_lengths_differ"], row["n_order_decided"], row["is_self"]) == (1, 1, True)
    assert (row["n_asked"], row["n_same_order"]) == (3, 2)


def test_the_same_text_twice_is_no_pair_that_the_judge_was_asked_about() -> None:
    cells = {"p000": cell(result="tie"), "p001": cell(state="parse_error")}
    row = pair_verdict(cells)
    assert (row["n_ties"], row["n_asked"], row["n_same_order"]) == (1, 0, 0)


def test_people_give_verdicts_without_a_calibration() -> None:
    people = JudgeFacts(
        judge="people", judge_key="people", mode="pairwise", n_judged=6, n_scored=6, n_right=0, n_items=0
    )
    assert people.gives_verdict
    assert people.calibration_sentence == "blind votes of people, who need no calibration"
    cells = paired(0, 0, 6)
    base = {prompt: cell(state=None) for prompt in cells}
    [row] = with_verdicts([{"variant": "Q4", "is_reference": False, **pair_row(cells, base)}], people)
    assert row["verdict"] == "worse"
