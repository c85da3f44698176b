"""What each variant may lose, tried down its model's ladder until the first that may lose too much.

A loss is the ln PPL ratio where closeness was measured, else the paired difference of the pass rate, each by
its one-sided 95 % bound. Perplexity says nothing across models, so another model's variants are held against
the run's reference by checks, and against their own model's reference by closeness.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from liob_core import stats
from liob_core.analysis import words
from liob_core.analysis.closeness import at_most_higher
from liob_core.analysis.deltas import NOT_COMPARABLE, WORSE
from liob_core.analysis.limits import MET, MISSED, NOT_TRIED, UNKNOWN, Evidence, Limits
from liob_core.models.family import is_same_model

Row = Mapping[str, Any]
Deltas = Mapping[tuple[str, str], Row]  # by variant and metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The variants of one model and one type of KV cache below the reference, many bits first.

    Unknown bits come last. Of another model than the run's (`is_own` is False), its own reference is the
    first rung.
    """

    reference: Row
    rungs: tuple[Row, ...]
    is_own: bool


def ladders(rows: Sequence[Row]) -> list[Ladder]:
    """The ladders of a run, that of its reference first; `rows` come by bits.

    A cache of fewer bits is another way down than weights of fewer bits, so it has a ladder of its own.
    """
    base = next(row for row in rows if row["is_reference"])
    limit = base["bpw"]
    own = [row for row in rows if not row["is_reference"] and is_same_model(base, row)]
    below = [row for row in own if limit is None or row["bpw"] is None or row["bpw"] <= limit]
    caches = list(dict.fromkeys([_cache(base), *(_cache(row) for row in below)]))
    found = [
        Ladder(reference=base, rungs=tuple(row for row in below if _cache(row) == cache), is_own=True)
        for cache in caches
    ]
    others = [row for row in rows if not is_same_model(base, row)]
    while others:
        head = others[0]
        mates = tuple(row for row in others if is_same_model(head, row))
        found.append(Ladder(reference=head, rungs=mates, is_own=False))
        others = [row for row in others if not is_same_model(head, row)]
    return found


def _cache(row: Row) -> tuple[str, str]:
    return row["kv_type_k"] or "f16", row["kv_type_v"] or "f16"


def is_by_closeness(ladder: Ladder, deltas: Deltas) -> bool:
    """Whether closeness decides on this ladder: the ln PPL ratio of one of its rungs has a bound."""
    bounds = [deltas.get((row["variant"], "ln_ratio"), {}).get("loss_bound") for row in ladder.rungs]
    return ladder.is_own and any(bound is not None for bound in bounds)


def losses(ladder: Ladder, deltas: Deltas, limits: Limits) -> list[tuple[Evidence, ...]]:
    """The evidence on the loss of each rung, in their order; below the first failure nothing is tried."""
    found: list[tuple[Evidence, ...]] = []
    stopped_by: str | None = None
    by_closeness = is_by_closeness(ladder, deltas)
    for row in ladder.rungs:
        if not ladder.is_own:
            tried = _across(row, ladder, deltas, limits)
        elif by_closeness:
            tried = (_by_closeness(row, deltas, limits),)
        else:
            tried = (_by_checks(row, deltas, limits),)
        if stopped_by is not None:
            why = f"not tried, since the ladder ends at {stopped_by}"
            tried = (replace(tried[0], verdict=NOT_TRIED, sentence=why, excess=1.0),)
        elif any(one.verdict != MET for one in tried):
            stopped_by = str(row["variant"])
        found.append(tried)
    return found


def no_loss(limits: Limits) -> Evidence:
    """The evidence of the reference, which loses nothing against itself."""
    return Evidence(
        limit="loss",
        metric="pass_rate",
        verdict=MET,
        sentence="it is the reference",
        allowed=limits.max_loss,
    )


def loses_at_most(check: Row) -> str:
    """The bound of the checks in words: "loses at most 4 points on 120 prompts (95 %)"."""
    bound = check["loss_bound"]
    loss = f"at most {words.at_most_points(bound)}" if bound > 0 else "nothing"
    return f"loses {loss} on {check['n']} prompts (95 %)"


def _may_lose(check: Row) -> str:
    return f"may lose up to {words.at_most_points(check['loss_bound'])} on {check['n']} prompts (95 %)"


def _by_closeness(row: Row, deltas: Deltas, limits: Limits) -> Evidence:
    """By the ln PPL ratio; checks count too where they are many enough, or where they show a loss."""
    found = _ln_ratio(row, deltas, limits)
    check = deltas.get((row["variant"], "pass_rate"), {})
    if found.bound is None or not (told := _shown_loss(check, limits.max_loss)):
        return found
    return replace(
        found,
        verdict=MISSED,
        sentence=f"{found.sentence}; {told}",
        excess=max(found.excess, check["loss_bound"] / limits.max_loss - 1),
    )


def _ln_ratio(row: Row, deltas: Deltas, limits: Limits) -> Evidence:
    ratio = deltas.get((row["variant"], "ln_ratio"), {})
    bound, allowed = ratio.get("loss_bound"), limits.max_ln_ratio
    found = Evidence(
        limit="loss",
        metric="ln_ratio",
        verdict=UNKNOWN,
        sentence=ratio.get("reason") or "closeness was not measured",
        allowed=allowed,
        value=ratio.get("estimate"),
        low=ratio.get("ci_low"),
        high=ratio.get("ci_high"),
        n=ratio.get("n") or None,
        excess=1.0,
    )
    if bound is None:
        return found
    return replace(
        found,
        verdict=MET if bound <= allowed else MISSED,
        sentence=f"{at_most_higher(bound)} on {ratio['n']} windows (95 %)",
        bound=bound,
        excess=max(0.0, bound / allowed - 1),
    )


def _shown_loss(check: Row, margin: float) -> str | None:
    """The loss that the checks leave open or show, where it is a reason to stop; else None."""
    bound = check.get("loss_bound")
    if bound is None or check.get("verdict") == NOT_COMPARABLE or bound <= margin:
        return None
    if check.get("verdict") == WORSE or stats.no_flip_bound(check["n"]) <= margin:
        return _may_lose(check)
    return None


def _by_checks(row: Row, deltas: Deltas, limits: Limits) -> Evidence:
    check, margin = deltas.get((row["variant"], "pass_rate"), {}), limits.max_loss
    bound = check.get("loss_bound")
    found = Evidence(
        limit="loss",
        metric="pass_rate",
        verdict=UNKNOWN,
        sentence=f"not comparable, {check.get('reason') or 'not checked'}",
        allowed=margin,
        value=check.get("estimate"),
        low=check.get("ci_low"),
        high=check.get("ci_high"),
        n=check.get("n") or None,
        excess=1.0,
    )
    if bound is None or check.get("verdict") == NOT_COMPARABLE:
        return found
    told = replace(found, sentence=loses_at_most(check), bound=bound)
    if stats.no_flip_bound(check["n"]) > margin:
        return replace(told, sentence=f"{told.sentence}, too few prompts")
    if bound <= margin:
        return replace(told, verdict=MET, excess=0.0)
    allowed = words.at_most_points(margin)
    return replace(
        told,
        verdict=MISSED,
        sentence=f"{_may_lose(check)}, where {allowed} are allowed",
        excess=bound / margin - 1,
    )


def _across(row: Row, ladder: Ladder, deltas: Deltas, limits: Limits) -> tuple[Evidence, ...]:
    """Of another model: by checks against the run's reference, and closeness to its own where measured."""
    checks = _by_checks(row, deltas, limits)
    if row is ladder.reference:
        return (checks,)
    ratio = _ln_ratio(row, deltas, limits)
    if ratio.bound is None:
        return (checks,)
    than = f"{ratio.sentence} than {ladder.reference['variant']}'s"
    return checks, replace(ratio, sentence=than)
