"""Blind votes: which pairs there are, and what the votes say; figures computed by hand."""

import json

import pytest

from liob_core.analysis.judged import judges, pairs
from liob_core.analysis.votes import vote_pairs, vote_results
from tests.unit.analysis.conftest import RUN, START

LABELS = (("F16", 16.0), ("Q8_0", 8.5), ("Q2_K", 2.6))


def fill(writer, n_prompts=8, **texts):
    """A run of three variants; `texts` maps `variant_prompt` to another text than the plain one."""
    writer.run()
    writer.machine()
    for label, bits in LABELS:
        writer.variant(label, bits)
        for number in range(n_prompts):
            text = texts.get(f"{label}_{number}", f"{label} says {number}")
            writer.answer(label, f"p{number}", response=text, sample_id=f"{label}-{number}")


def vote(writer, number, result, *, variant="Q2_K", base="F16", chosen="left", state="scored", at=0):
    writer.insert(
        "judgements",
        judgement_id=f"v{len(writer.rows.get('judgements', [])):03}",
        run_id=RUN,
        sample_id=f"{variant}-{number}",
        variant=variant,
        prompt_id=f"p{number}",
        judge="people",
        judge_key="people",
        mode="pairwise",
        state=state,
        result=result,
        raw_reply=json.dumps({"vote": chosen}),
        judged_utc=START,
        reference_sample_id=f"{base}-{number}",
    )


def test_a_pair_is_two_answers_that_ended_by_themselves_the_reference_first(writer):
    fill(writer, n_prompts=2, F16_1="the same", Q8_0_1="the same")
    writer.rows["samples"][-1]["outcome"] = "length"  # Q2_K's answer to p1
    writer.flush()
    pairs = vote_pairs(writer.close(), RUN)
    assert [(row.prompt_id, row.base, row.variant) for row in pairs.itertuples()] == [
        ("p0", "F16", "Q8_0"),
        ("p1", "F16", "Q8_0"),
        ("p0", "F16", "Q2_K"),
        ("p0", "Q8_0", "Q2_K"),
    ]
    assert list(pairs["is_same_text"]) == [False, True, False, False]
    assert list(pairs["has_reference"]) == [True, True, True, False]


def test_the_share_of_wins_is_of_decided_votes_and_a_few_votes_decide_nothing(writer):
    """4 wins, 1 loss, 2 ties: share 0.8, Wilson 0.3755 to 0.9638, sign test 2 x 6/32 = 0.375."""
    fill(writer)
    for number, result in enumerate(["win", "win", "win", "win", "loss", "tie", "tie"]):
        vote(writer, number, result, chosen="both bad" if number == 6 else "tie" if number == 5 else "left")
    writer.flush()
    [row] = vote_results(writer.close(), RUN).to_dict("records")
    assert (row["variant"], row["base"], row["n_votes"], row["n_ties"], row["n_both_bad"]) == (
        "Q2_K", "F16", 7, 2, 1,
    )  # fmt: skip
    assert row["win_share"] == 0.8
    assert (row["ci_low"], row["ci_high"]) == (
        pytest.approx(0.3755, abs=1e-4),
        pytest.approx(0.9638, abs=1e-4),
    )
    assert row["p_holm"] == pytest.approx(0.375)
    assert (row["verdict"], row["words"], row["n_left"]) == ("not distinguishable", "not distinguishable", 5)


@pytest.mark.parametrize(
    ("result", "words"), [("loss", "F16 is preferred to Q2_K"), ("win", "Q2_K is preferred to F16")]
)
def test_votes_that_chance_does_not_explain_are_a_verdict(writer, result, words):
    fill(writer)
    for number in range(6):  # 2 x 0.5^6 = 0.03125
        vote(writer, number, result)
    writer.flush()
    [row] = vote_results(writer.close(), RUN).to_dict("records")
    assert (row["p_holm"], row["words"]) == (0.03125, words)


@pytest.mark.parametrize(
    ("comes_back", "words"),
    [(False, "not comparable: 1 of 7 pairs shown were skipped"), (True, "Q2_K is preferred to F16")],
)
def test_skipping_what_is_hard_forbids_a_verdict_until_it_is_voted_on(writer, comes_back, words):
    fill(writer)
    for number in range(6):
        vote(writer, number, "win")
    vote(writer, 6, None, state="refused", chosen="skip")
    if comes_back:
        vote(writer, 6, "tie", chosen="tie")
    writer.flush()
    [row] = vote_results(writer.close(), RUN).to_dict("records")
    assert row["words"] == words


def test_pairs_of_other_variants_are_a_row_of_their_own_and_share_the_level(writer):
    fill(writer)
    for number in range(6):
        vote(writer, number, "win")
        vote(writer, number, "loss", base="Q8_0")
    writer.rows["judgements"] = [
        row | {"judgement_id": f"v{place:03}"} for place, row in enumerate(writer.rows["judgements"])
    ]
    writer.flush()
    rows = vote_results(writer.close(), RUN).to_dict("records")
    assert [(row["base"], row["n_wins"], row["n_losses"]) for row in rows] == [("F16", 6, 0), ("Q8_0", 0, 6)]
    assert [row["p_holm"] for row in rows] == [0.0625, 0.0625]
    assert {row["verdict"] for row in rows} == {"not distinguishable"}


def test_only_ties_decide_nothing(writer):
    fill(writer)
    vote(writer, 0, "tie", chosen="tie")
    writer.flush()
    [row] = vote_results(writer.close(), RUN).to_dict("records")
    assert (row["win_share"], row["ci_low"], row["p_value"]) == (None, None, None)
    assert row["words"] == "no vote decides between them"


def test_among_the_judges_people_need_no_calibration_and_only_pairs_with_the_reference_count(writer):
    """6 of 8 prompts were shown: what was not is missing by chance, so there is a verdict."""
    fill(writer)
    for number in range(6):
        vote(writer, number, "loss")
        vote(writer, number, "win", base="Q8_0")
    writer.flush()
    path = writer.close()
    [judge] = judges(path, RUN).to_dict("records")
    assert (judge["judge"], judge["n_judged"], judge["gives_verdict"]) == ("people", 6, True)
    rows = {row["variant"]: row for row in pairs(path, RUN, "people").to_dict("records")}
    assert (rows["Q2_K"]["n_losses"], rows["Q2_K"]["n_wins"], rows["Q2_K"]["n_judgeable"]) == (6, 0, 6)
    assert rows["Q2_K"]["verdict"] == "worse"
    assert (rows["Q8_0"]["n_scored"], rows["Q8_0"]["words"]) == (
        0,
        "not comparable: no answer could be judged",
    )
