"""One opinion from a judge: the question, its retries, and both orders of a pair."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from liob_core.errors import EngineFailure
from liob_core.quality.judge.parse import Verdict, read_verdict
from liob_core.quality.judge.questions import Question, Task, pair_question, single_question
from liob_core.types import JudgeState, Outcome, Sampling

MAX_TRANSPORT_RETRIES = 2
MAX_UNUSABLE_RETRIES = 1
TURNS_PER_WORDING = 1 + MAX_UNUSABLE_RETRIES
ROOM_TOKENS = 400
MORE_ROOM_TOKENS = 1200
SEED = 1
SAME_LENGTH_RATIO = 1.2

# Asking the very same again would end alike.
_FINAL_FAILURES = frozenset({Outcome.CONTEXT_EXCEEDED, Outcome.REFUSED_REMOTE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back from a judge: text, maybe cut off, and the failure that ended it, if any did."""

    text: str = ""
    is_cut_off: bool = False
    failure: EngineFailure | None = None


class JudgeModel(Protocol):
    """A model that can be asked."""

    def ask(self, text: str, sampling: Sampling) -> Reply:
        """The reply to one user turn."""
        ...

    def is_one_token(self, piece: str) -> bool:
        """Whether its tokenizer reads `piece` as a single token; True where that cannot be told."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """The last verdict on one question and all that was said on the way; `score` is 1 to 10."""

    verdict: Verdict
    raw_reply: str
    attempts: int
    earlier_replies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOpinion:
    """The variant against the reference in both orders; `result` (win, tie, loss) only where both are scored.

    `preferred_first` and `preferred_second` are variant, reference or tie, the variant shown first and
    second.
    """

    state: JudgeState
    reason: str | None
    result: str | None
    preferred_first: str | None
    preferred_second: str | None
    first: Opinion | None
    second: Opinion | None

    @property
    def attempts(self) -> int:
        """Requests sent for both orders."""
        return sum(opinion.attempts for opinion in (self.first, self.second) if opinion)


def score(model: JudgeModel, task: Task, answer: str, *, wording: int = 0) -> Opinion:
    """The judge's score of one answer, or why there is none; another `wording` only changes the marker."""
    first_turn = wording * TURNS_PER_WORDING
    return _ask(model, lambda turn: single_question(task, answer, model.is_one_token, first_turn + turn))


def compare(model: JudgeModel, task: Task, answer: str, reference: str) -> PairOpinion:
    """Whether a variant's answer beats the reference's; the same text is a tie without asking."""
    if answer == reference:
        return PairOpinion(
            state=JudgeState.SCORED,
            reason="the two answers are the same text, so the judge was not asked",
            result="tie",
            preferred_first=None,
            preferred_second=None,
            first=None,
            second=None,
        )
    return ask_both_orders(model, task, answer, reference)


def ask_both_orders(model: JudgeModel, task: Task, answer: str, reference: str) -> PairOpinion:
    """The judge's preference in both orders: a win or a loss needs both, else it is a tie."""
    first = _ask(model, lambda turn: pair_question(task, answer, reference, model.is_one_token, turn))
    second = _ask(
        model,
        # Another wording, so that the same text twice is not the very same question twice.
        lambda turn: pair_question(task, reference, answer, model.is_one_token, TURNS_PER_WORDING + turn),
    )
    return _both_orders(first, second)


def lengths_differ(answer: str, reference: str) -> bool:
    """Whether the longer text has more than 1.2 times the characters of the shorter."""
    short, long = sorted((len(answer), len(reference)))
    return long > SAME_LENGTH_RATIO * short


def _both_orders(first: Opinion, second: Opinion) -> PairOpinion:
    preferred_first = _preferred(first.verdict, {"A": "variant", "B": "reference"})
    preferred_second = _preferred(second.verdict, {"A": "reference", "B": "variant"})
    unscored = [o for o in (first, second) if o.verdict.state is not JudgeState.SCORED]
    result = None
    if not unscored:
        agreed = preferred_first if preferred_first == preferred_second else "tie"
        result = {"variant": "win", "reference": "loss"}.get(agreed or "", "tie")
    told = unscored[0] if unscored else first
    return PairOpinion(
        state=told.verdict.state,
        reason=told.verdict.reason,
        result=result,
        preferred_first=preferred_first,
        preferred_second=preferred_second,
        first=first,
        second=second,
    )


def _preferred(verdict: Verdict, names: dict[str, str]) -> str | None:
    return None if verdict.winner is None else names.get(verdict.winner, "tie")


def _ask(model: JudgeModel, make_question: Callable[[int], Question]) -> Opinion:
    """The opinion after at most two retries of transport and one of an unusable reply."""
    n_failures, n_unusable, replies = 0, 0, list[str]()
    while True:
        question = make_question(n_unusable)
        sampling = Sampling(
            max_tokens=MORE_ROOM_TOKENS if n_unusable else ROOM_TOKENS,
            seed=SEED + n_unusable,
            json_schema=question.schema,
        )
        reply = model.ask(question.text, sampling)
        verdict = _verdict(reply, question)
        replies.append(reply.text)
        if verdict.state is JudgeState.JUDGE_ERROR:
            n_failures += 1
            is_final = reply.failure is not None and reply.failure.outcome in _FINAL_FAILURES
            is_over = is_final or n_failures > MAX_TRANSPORT_RETRIES
        else:
            is_usable = verdict.state is JudgeState.SCORED
            n_unusable += not is_usable
            is_over = is_usable or n_unusable > MAX_UNUSABLE_RETRIES
        if is_over:
            return Opinion(
                verdict=verdict,
                raw_reply=reply.text,
                attempts=len(replies),
                earlier_replies=tuple(replies[:-1]),
            )


def _verdict(reply: Reply, question: Question) -> Verdict:
    failure = reply.failure
    if failure is None:
        return read_verdict(reply.text, question, is_cut_off=reply.is_cut_off)
    if failure.outcome is Outcome.REPETITION:
        return Verdict(state=JudgeState.TRUNCATED_JUDGE, reason=str(failure))
    if failure.outcome is Outcome.BAD_REPLY and not failure.needs_reload:
        # The engine itself found the text not to follow the schema: that is the judge's doing.
        verdict = read_verdict(reply.text, question, is_cut_off=False)
        if verdict.state is not JudgeState.SCORED:
            return verdict
    return Verdict(state=JudgeState.JUDGE_ERROR, reason=str(failure))
