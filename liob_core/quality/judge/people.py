"""People as a judge: what one blind vote on two answers becomes.

They are a judge of their own that needs no calibration. Both answers are shown once, in random order; which
stood left is kept with the vote.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

from liob_core.quality.judge.judge import lengths_differ
from liob_core.types import Judgement, JudgeMode, JudgeState

PEOPLE = "people"  # the judge's name and its key


class Choice(StrEnum):
    """What a person says of two answers; a skip is no opinion."""

    LEFT = "left"
    RIGHT = "right"
    TIE = "tie"
    BOTH_BAD = "both bad"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindPair:
    """Two answers to one prompt; `base` is the reference's, else that of the variant with more bits."""

    run_id: str
    prompt_id: str
    variant: str
    sample_id: str
    base: str
    base_sample_id: str
    is_base_left: bool


def of_vote(
    pair: BlindPair, choice: Choice, *, answer: str, base_answer: str, judgement_id: str, utc: str
) -> Judgement:
    """The record of a vote: a result where there is an opinion, the state `refused` where it was skipped."""
    is_skip = choice is Choice.SKIP
    reasons = {Choice.SKIP: "skipped", Choice.BOTH_BAD: "both are bad"}
    return Judgement(
        judgement_id=judgement_id,
        run_id=pair.run_id,
        sample_id=pair.sample_id,
        variant=pair.variant,
        prompt_id=pair.prompt_id,
        judge=PEOPLE,
        judge_key=PEOPLE,
        mode=JudgeMode.PAIRWISE,
        state=JudgeState.REFUSED if is_skip else JudgeState.SCORED,
        score=None,
        reason=reasons.get(choice),
        raw_reply=json.dumps({"vote": choice, "left": pair.base if pair.is_base_left else pair.variant}),
        attempts=1,
        utc=utc,
        reference_sample_id=pair.base_sample_id,
        result=None if is_skip else _result(choice, is_base_left=pair.is_base_left),
        length_ratio=len(answer) / len(base_answer) if base_answer else None,
        lengths_differ=lengths_differ(answer, base_answer),
        is_self=False,
    )


def _result(choice: Choice, *, is_base_left: bool) -> str:
    """win, tie or loss of the variant that is not the base."""
    if choice not in {Choice.LEFT, Choice.RIGHT}:
        return "tie"
    return "loss" if (choice is Choice.LEFT) == is_base_left else "win"
