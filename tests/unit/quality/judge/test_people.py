import json

import pytest

from liob_core.quality.judge.people import PEOPLE, BlindPair, Choice, of_vote
from liob_core.types import JudgeMode, JudgeState


def vote(choice: Choice, *, is_base_left: bool = True):  # type: ignore[no-untyped-def]
    pair = BlindPair(
        run_id="r",
        prompt_id="p",
        variant="Q4",
        sample_id="s-q4",
        base="F16",
        base_sample_id="s-f16",
        is_base_left=is_base_left,
    )
    known = {"judgement_id": "j", "utc": "2026-01-01T00:00:00Z"}
    return of_vote(pair, choice, answer="123456", base_answer="12345", **known)


@pytest.mark.parametrize(
    ("choice", "is_base_left", "result"),
    [
        (Choice.LEFT, True, "loss"),
        (Choice.RIGHT, True, "win"),
        (Choice.LEFT, False, "win"),
        (Choice.RIGHT, False, "loss"),
        (Choice.TIE, True, "tie"),
        (Choice.BOTH_BAD, False, "tie"),
    ],
)
def test_a_vote_for_a_side_is_for_who_stood_there(choice: Choice, is_base_left: bool, result: str) -> None:
    made = vote(choice, is_base_left=is_base_left)
    assert (made.state, made.result, made.variant) == (JudgeState.SCORED, result, "Q4")
    assert json.loads(made.raw_reply) == {"vote": choice.value, "left": "F16" if is_base_left else "Q4"}


def test_a_skip_is_no_opinion() -> None:
    made = vote(Choice.SKIP)
    assert (made.state, made.result, made.reason) == (JudgeState.REFUSED, None, "skipped")


def test_people_are_a_judge_of_their_own_that_is_not_calibrated() -> None:
    made = vote(Choice.BOTH_BAD)
    assert (made.judge, made.judge_key, made.mode) == (PEOPLE, PEOPLE, JudgeMode.PAIRWISE)
    assert (made.calibration_share, made.is_self, made.reason) == (None, False, "both are bad")
    # One order alone was shown, so neither order has an opinion of its own.
    assert (made.preferred_first, made.preferred_second) == (None, None)
    assert (made.reference_sample_id, made.length_ratio, made.lengths_differ) == ("s-f16", 1.2, False)
