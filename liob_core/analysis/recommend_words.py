"""A recommendation in sentences: what the pick costs and may lose, or why there is none."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liob_core import stats
from liob_core.analysis import words
from liob_core.analysis.closeness import at_most_higher
from liob_core.analysis.deltas import BETTER, NOT_COMPARABLE, SAME
from liob_core.analysis.limits import MET, Evidence, Limits
from liob_core.analysis.loss import Ladder, is_by_closeness, loses_at_most

PICK = "pick"
REFERENCE = "reference"  # the limits leave the reference itself, and nothing below it
NOTHING = "nothing meets it"
TOO_FEW = "too few prompts"
NOT_CHECKED = "not checked"
ALONE = "nothing to compare"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a run says of its variants: their rows, the ladder of each model, and the paired effects."""

    rows: Sequence[Row]
    ladders: Sequence[Ladder]
    deltas: Mapping[tuple[str, str], Row]
    limits: Limits

    @property
    def reference(self) -> Row:
        """The run's reference."""
        return self.ladders[0].reference

    @property
    def is_by_closeness(self) -> bool:
        """Whether closeness decides on a ladder of the reference's model."""
        return any(is_by_closeness(ladder, self.deltas) for ladder in self.ladders)

    @property
    def others(self) -> list[Row]:
        """Every variant that can be recommended instead of it."""
        return [row for ladder in self.ladders for row in ladder.rungs]

    def row(self, variant: str) -> Row:
        """The row of one variant."""
        return next(row for row in self.rows if row["variant"] == variant)

    def delta(self, variant: str, metric: str) -> Row:
        """One paired effect; empty where there is none."""
        return self.deltas.get((variant, metric), {})


def needed_prompts(margin: float) -> int:
    """The fewest checked prompts that can bound a loss by `margin` (a share) where nothing flips."""
    n = 1
    while stats.no_flip_bound(n) > margin:
        n += 1
    return n


def why_none(facts: Facts) -> str:
    """Why nothing below the reference is recommended where only a loss is limited."""
    if not facts.others:
        return ALONE
    if facts.is_by_closeness:
        return NOTHING
    n_prompts = _n_prompts(facts)
    if n_prompts == 0:
        return NOT_CHECKED
    return TOO_FEW if stats.no_flip_bound(n_prompts) > facts.limits.max_loss else NOTHING


def words_of(kind: str, facts: Facts, variant: str, evidence: Sequence[Evidence]) -> tuple[str, str]:
    """The sentence of a recommendation, and what is to be known beside it.

    `variant` is the pick; where there is none it is the nearest, whose `evidence` tells what it misses.
    """
    if kind == PICK:
        return _pick(facts, variant)
    if kind == NOTHING and facts.limits.has_resources:
        missed = "; ".join(one.sentence for one in evidence if one.verdict != MET)
        return f"Nothing is shown to meet this. {variant} comes nearest, but misses: {missed}.", _rest(facts)
    return _WITHOUT_PICK[kind](facts)


def _pick(facts: Facts, variant: str) -> tuple[str, str]:
    row, check = facts.row(variant), facts.delta(variant, "pass_rate")
    cost = _cost(row, facts)
    own = next((ladder for ladder in facts.ladders if row in ladder.rungs), facts.ladders[0])
    if not is_by_closeness(own, facts.deltas):
        detail = (
            f"{_closeness_note(facts)}; the loss is in checks passed, and "
            f"{words.at_most_points(facts.limits.max_loss)} are allowed."
        )
        return f"{variant}: {cost}; {loses_at_most(check)}.", detail
    ratio = facts.delta(variant, "ln_ratio")
    allowed = words.percent(math.expm1(facts.limits.max_ln_ratio))
    detail = f"On {ratio['n']} windows of text; {allowed} more is allowed; {_checks_note(facts, check)}."
    return f"{variant}: {cost}; {at_most_higher(ratio['loss_bound'])} (95 %).", detail


def _reference(facts: Facts) -> tuple[str, str]:
    name = facts.reference["variant"]
    if not facts.others:
        return f"{name} meets this; it is the only variant of this run.", ""
    return f"Only {name}, the reference itself, is shown to meet this.", _rest(facts)


def _alone(facts: Facts) -> tuple[str, str]:
    reference = facts.reference
    why = "every other variant has more bits" if len(facts.rows) > 1 else "it is the only variant of this run"
    shown = []
    if reference["decode_tps"]:
        shown.append(words.value("decode_tps", reference["decode_tps"]))
    if reference["peak_memory_bytes"]:
        shown.append(f"{words.memory(reference['peak_memory_bytes'])} of memory")
    told = "; ".join(part for part in (", ".join(shown), why) if part)
    return (
        f"{reference['variant']}: {told}, so there is nothing to choose from.",
        "Add a smaller variant to compare it with.",
    )


def _too_few(facts: Facts) -> tuple[str, str]:
    margin, n_prompts = facts.limits.max_loss, _n_prompts(facts)
    return (
        f"Too few prompts to pick: {n_prompts} checked ones leave a loss of "
        f"{words.at_most_points(stats.no_flip_bound(n_prompts))} open even without a flip; "
        f"{needed_prompts(margin)} can rule out {words.at_most_points(margin)}.",
        _rest(facts),
    )


def _not_checked(facts: Facts) -> tuple[str, str]:
    return (
        "No pick: no prompt was checked for the reference and a smaller variant, so what is lost is not "
        "known.",
        _rest(facts),
    )


def _nothing_below(facts: Facts) -> tuple[str, str]:
    """Why the first rung already fails, where only a loss is limited."""
    name, first = facts.reference["variant"], facts.others[0]["variant"]
    if facts.is_by_closeness:
        ratio = facts.delta(first, "ln_ratio")
        bound = ratio.get("loss_bound")
        why = (
            ratio.get("reason") or "closeness was not measured"
            if bound is None
            else f"{at_most_higher(bound)} on {ratio['n']} windows (95 %)"
        )
        allowed = words.percent(math.expm1(facts.limits.max_ln_ratio))
        sentence = f"Nothing below {name} is shown to raise perplexity by at most {allowed}: {first}: {why}."
        return sentence, _fastest(facts).strip()
    check = facts.delta(first, "pass_rate")
    if check.get("loss_bound") is None or check.get("verdict") == NOT_COMPARABLE:
        why = f"{first} is not comparable: {check.get('reason') or 'not checked'}"
    else:
        bound = words.at_most_points(check["loss_bound"])
        why = f"{first} may lose up to {bound} on {check['n']} prompts (95 %)"
    allowed = words.at_most_points(facts.limits.max_loss)
    return f"Nothing below {name} is shown to lose at most {allowed}: {why}.", _rest(facts)


def _rest(facts: Facts) -> str:
    return f"{_fastest(facts)}{_closeness_note(facts)}."


def _closeness_note(facts: Facts) -> str:
    """What is known of closeness where it does not decide."""
    if facts.is_by_closeness:
        return "Closeness decides where it was measured"
    ratios = [row for (_, metric), row in facts.deltas.items() if metric == "ln_ratio" and row.get("n")]
    if not ratios:
        return "Closeness not measured"
    if any(row.get("loss_bound") is not None for row in ratios):
        return "Closeness is to each model's own reference"
    return f"Closeness measured on {max(row['n'] for row in ratios)} windows, too few for a verdict"


def _checks_note(facts: Facts, check: Row) -> str:
    """What the checks say of the pick, or that they are too few to say it."""
    if check.get("loss_bound") is None:
        return "answers not checked"
    told = f"checks: {loses_at_most(check)}"
    is_enough = stats.no_flip_bound(check["n"]) <= facts.limits.max_loss
    return told if is_enough else f"{told}, too few prompts to count"


def _n_prompts(facts: Facts) -> int:
    counts = [facts.delta(row["variant"], "pass_rate").get("n") or 0 for row in facts.others]
    return max(counts, default=0)


def _cost(row: Row, facts: Facts) -> str:
    """Speed and memory against the reference in words: "2.1 times as fast as F16 in 39 % of its memory"."""
    delta, label = facts.delta(row["variant"], "decode_tps"), facts.reference["variant"]
    share, what = _size(row, facts.reference)
    estimate, verdict = delta.get("estimate"), delta.get("verdict")
    if verdict == SAME:
        speed = f"no difference in speed from {label} was found"
    elif estimate is None and verdict is None:
        speed = "its speed was not measured"
    elif estimate is None or verdict == NOT_COMPARABLE:
        speed = f"its speed cannot be compared with {label}'s ({delta.get('reason') or 'not measured'})"
    else:
        shown = words.effect("decode_tps", estimate)
        speed = f"{shown} {'as' if ' times as ' in shown else 'than'} {label}"
        if verdict is None:
            speed += f" (n = {delta['n']}, no verdict)"
        return f"{speed} in {share} of its {what}" if share else speed
    return f"{speed}; it takes {share} of {label}'s {what}" if share else speed


def _size(row: Row, reference: Row) -> tuple[str | None, str]:
    """The share of the reference's memory, or of its file where memory was not measured, in words."""
    for name, what in (("peak_memory_bytes", "memory"), ("file_bytes", "file size")):
        if row[name] and reference[name]:
            return words.percent(row[name] / reference[name]), what
    return None, ""


def _fastest(facts: Facts) -> str:
    """A sentence on the fastest variant that is really faster, or nothing."""
    faster = [
        row for row in facts.others if facts.delta(row["variant"], "decode_tps").get("verdict") == BETTER
    ]
    if not faster:
        return ""
    best = max(faster, key=lambda row: facts.delta(row["variant"], "decode_tps")["estimate"])
    return f"{best['variant']} is {_cost(best, facts)}. "


_WITHOUT_PICK: Mapping[str, Callable[[Facts], tuple[str, str]]] = {
    REFERENCE: _reference,
    ALONE: _alone,
    TOO_FEW: _too_few,
    NOT_CHECKED: _not_checked,
    NOTHING: _nothing_below,
}
