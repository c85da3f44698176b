"""Which one, and why: the recommendation of a run where no limits on speed and memory are set."""

from dataclasses import dataclass, field
from pathlib import Path

from liob_core.analysis.limits import NOT_TRIED, PASS_MARGIN
from liob_core.analysis.recommend import Recommendation, recommend


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The answer of a run. `kind`: pick, nothing meets it, too few prompts, not checked, nothing to compare.

    `loss_bound` and `margin` are shares (0 to 1); `command` runs the pick in llama.cpp's own server.
    """

    kind: str
    sentence: str
    detail: str
    pick: str | None = None
    reference: str | None = None
    loss_bound: float | None = None
    ln_ratio_bound: float | None = None  # in nats, where closeness decided
    margin: float = PASS_MARGIN
    command: str | None = None
    evidence: tuple[str, ...] = field(default=())


def headline(db: Path, run_id: str) -> Headline:
    """The pick of a run by the rule of `recommend`, without limits on speed and memory."""
    found = recommend(db, run_id)
    pick = found.of(found.pick)
    bounds = {one.metric: one.bound for one in pick.evidence} if pick else {}
    return Headline(
        kind=found.kind,
        sentence=found.sentence,
        detail=found.detail,
        pick=found.pick,
        reference=found.reference,
        loss_bound=bounds.get("pass_rate"),
        ln_ratio_bound=bounds.get("ln_ratio"),
        command=found.command,
        evidence=(*_evidence(found), *found.notes),
    )


def _evidence(found: Recommendation) -> list[str]:
    """A line for each variant that was tried for what it may lose."""
    return [
        f"{one.variant}: {each.sentence}"
        for one in found.candidates
        if not one.is_reference
        for each in one.evidence
        if each.verdict != NOT_TRIED
    ]
