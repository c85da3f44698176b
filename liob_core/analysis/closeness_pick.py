"""How far down the ladder a user may go by the ln PPL ratio, and by the checks where they can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liob_core import stats
from liob_core.analysis import words
from liob_core.analysis.closeness import MARGIN, at_most_higher
from liob_core.analysis.deltas import NOT_COMPARABLE, WORSE

Row = dict[str, Any]
Deltas = Mapping[tuple[str, str], Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """The last variant that holds every margin, a line for each tried, and why the next one did not."""

    pick: Row | None
    evidence: tuple[str, ...]
    stopped_by: str | None


def is_bounded(deltas: Deltas) -> bool:
    """Whether the ln PPL ratio of any variant has a bound."""
    return any(
        row.get("loss_bound") is not None for (_, metric), row in deltas.items() if metric == "ln_ratio"
    )


def closeness_note(deltas: Deltas) -> str:
    """What is known of closeness where it gives no bound."""
    windows = [row["n"] for (_, metric), row in deltas.items() if metric == "ln_ratio" and row.get("n")]
    if not windows:
        return "Closeness not measured"
    return f"Closeness measured on {max(windows)} windows, too few for a verdict"


def descend(ladder: Sequence[Row], deltas: Deltas, margin: float) -> Descent:
    """Down the ladder until a variant may lose too much; `margin` is that of the pass rate, a share.

    Checks stop it where they are many enough to bound a loss, or where they show one.
    """
    pick, evidence = None, []
    for row in ladder:
        ratio = deltas.get((row["variant"], "ln_ratio"), {})
        bound = ratio.get("loss_bound")
        if bound is None:
            evidence.append(f"{row['variant']}: {ratio.get('reason') or 'closeness was not measured'}")
            return Descent(pick=pick, evidence=tuple(evidence), stopped_by=evidence[-1])
        checks = checks_loss(deltas.get((row["variant"], "pass_rate"), {}), margin)
        told = f"{row['variant']}: {at_most_higher(bound)} on {ratio['n']} windows (95 %)"
        evidence.append(f"{told}; {checks}" if checks else told)
        if bound > MARGIN or checks:
            return Descent(pick=pick, evidence=tuple(evidence), stopped_by=evidence[-1])
        pick = row
    return Descent(pick=pick, evidence=tuple(evidence), stopped_by=None)


def checks_loss(check: Row, margin: float) -> str | None:
    """The loss that the checks leave open or show, where it is a reason to stop; else None."""
    bound = check.get("loss_bound")
    if bound is None or check.get("verdict") == NOT_COMPARABLE or bound <= margin:
        return None
    if check.get("verdict") == WORSE or stats.no_flip_bound(check["n"]) <= margin:
        return f"may lose {words.at_most_points(bound)} on {check['n']} prompts (95 %)"
    return None


def checks_note(check: Row, margin: float) -> str:
    """What the checks say of the pick, or that they are too few to say it."""
    if check.get("loss_bound") is None:
        return "answers not checked"
    told = f"checks: loses at most {words.at_most_points(check['loss_bound'])} on {check['n']} prompts (95 %)"
    return told if stats.no_flip_bound(check["n"]) <= margin else f"{told}, too few prompts to count"
