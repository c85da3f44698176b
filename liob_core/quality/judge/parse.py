"""A judge's reply read strictly: a verdict or why it holds none. Nothing is clamped, guessed or defaulted."""

import json
import re
from dataclasses import dataclass
from typing import Any

from liob_core.quality.judge.questions import Question
from liob_core.quality.judge.rubric import HIGHEST_SCORE, LOWEST_SCORE
from liob_core.types import JsonValue, JudgeMode, JudgeState

WINNERS = ("A", "B", "tie")

_FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:no|')t|will not|won't|must decline)|as an AI\b)",
    re.IGNORECASE,
)
_REFUSAL_CHARS = 200  # a refusal says so at its beginning
_REASONS = re.compile(r'"reason"\s*:\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one reply says; `score` or `winner` only where the state is scored."""

    state: JudgeState
    reason: str | None
    score: int | None = None
    winner: str | None = None  # A, B or tie


class _RepeatedKeyError(ValueError):
    """An object names a key twice, so which value is meant cannot be told."""


def read_verdict(reply: str, question: Question, *, is_cut_off: bool) -> Verdict:
    """The verdict of a reply, or the state and the reason why it holds none.

    The reply as a whole must be one JSON object with this question's marker: a verdict further inside it
    may be quoted from the text that is judged.
    """
    try:
        value = _whole_object(reply)
    except (ValueError, RecursionError) as error:
        return _unreadable(reply, str(error), is_cut_off=is_cut_off)
    if value.get("id") != question.marker:
        return _none(JudgeState.PARSE_ERROR, "the reply does not carry this question's marker")
    reason = value.get("reason")
    if not isinstance(reason, str):
        return _none(JudgeState.PARSE_ERROR, "the reply gives no reason")
    if reason and any(_holds_reason(text, reason) for text in question.judged):
        return _none(JudgeState.PARSE_ERROR, "the reply repeats a verdict that the judged text holds")
    if question.mode is JudgeMode.SINGLE:
        return _score(value, reason)
    return _winner(value, reason)


def _whole_object(reply: str) -> dict[str, JsonValue]:
    text = reply.strip()
    fenced = _FENCED.match(text)
    value = json.loads(
        fenced[1] if fenced else text, object_pairs_hook=_distinct, parse_constant=_refuse_constant
    )
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 - text of a model, not a bug
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _RepeatedKeyError("a key stands in it twice")
    return value


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


def _unreadable(reply: str, why: str, *, is_cut_off: bool) -> Verdict:
    if is_cut_off:
        return _none(JudgeState.TRUNCATED_JUDGE, "the reply was cut off before its verdict")
    if "{" not in reply and _REFUSAL.search(reply[:_REFUSAL_CHARS]):
        return _none(JudgeState.REFUSED, "the judge declined")
    return _none(JudgeState.PARSE_ERROR, f"the reply is not one JSON object: {why[:120]}")


def _score(value: dict[str, JsonValue], reason: str) -> Verdict:
    score = value.get("score")
    if score is None and "score" in value:
        return _none(JudgeState.REFUSED, reason or "the judge gave no score")
    if isinstance(score, float) and score.is_integer():
        score = int(score)  # 7.0 is the same JSON number as 7
    if isinstance(score, bool) or not isinstance(score, int):
        return _none(JudgeState.PARSE_ERROR, "the score is not a whole number")
    if not LOWEST_SCORE <= score <= HIGHEST_SCORE:
        return _none(
            JudgeState.OUT_OF_RANGE,
            f"the score {str(score)[:20]} is not between {LOWEST_SCORE} and {HIGHEST_SCORE}",
        )
    return Verdict(state=JudgeState.SCORED, reason=reason, score=score)


def _winner(value: dict[str, JsonValue], reason: str) -> Verdict:
    winner = value.get("winner")
    if winner is None and "winner" in value:
        return _none(JudgeState.REFUSED, reason or "the judge did not decide")
    if not isinstance(winner, str):
        return _none(JudgeState.PARSE_ERROR, "the reply names no winner")
    if winner not in WINNERS:
        return _none(JudgeState.OUT_OF_RANGE, f"the winner {winner[:20]!r} is none of {', '.join(WINNERS)}")
    return Verdict(state=JudgeState.SCORED, reason=reason, winner=winner)


def _holds_reason(text: str, reason: str) -> bool:
    """Whether a verdict inside the text gives that very reason, however it is escaped there."""
    for found in _REASONS.finditer(text):
        try:
            if json.loads(found[1], strict=False).strip() == reason.strip():
                return True
        except ValueError:
            continue
    return False


def _none(state: JudgeState, reason: str) -> Verdict:
    return Verdict(state=state, reason=reason)
