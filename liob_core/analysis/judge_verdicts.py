"""From opinions to verdicts. Pure: one judge's cells in, rows out.

A verdict needs a judge that passed its calibration, a score for at least 95 % of the answers on both sides,
and failures that do not differ clearly; what failed by itself (empty, cut off, a loop) is counted as the
candidate's own and never as a low score.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liob_core import stats
from liob_core.analysis.deltas import (
    ALPHA,
    BETTER,
    BOOTSTRAP_SEED,
    CLEAR_CUT_OFF_DIFFERENCE,
    NOT_COMPARABLE,
    SAME,
    WORSE,
)
from liob_core.quality.judge.calibration import passed
from liob_core.quality.judge.people import PEOPLE
from liob_core.quality.judge.rubric import HIGHEST_SCORE, LOWEST_SCORE
from liob_core.store.study_rows import JUDGE_KEY
from liob_core.types import JudgeState

MIN_COVERAGE = 0.95
OWN_FAILURES = ("length", "empty", "thinking_only", "truncated_thinking", "repetition")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """One judge in one mode: how many answers it judged and scored, and how its calibration went."""

    judge: str
    judge_key: str
    mode: str
    n_judged: int
    n_scored: int
    n_right: int
    n_items: int

    @property
    def is_people(self) -> bool:
        """Whether it is people who voted blind."""
        return self.judge_key == PEOPLE

    @property
    def gives_verdict(self) -> bool:
        """Whether it got at least 80 % of its calibration right; people are not calibrated."""
        return self.is_people or passed(self.n_right, self.n_items)

    @property
    def is_published(self) -> bool:
        """Whether its scores were published by others, who did not calibrate it.

        That it saw no difference may be said of it; that one of two answers is better may not.
        """
        return self.judge_key == JUDGE_KEY

    @property
    def calibration_sentence(self) -> str:
        """How the calibration went, and what that means."""
        if self.is_published:
            return "published scores of a judge that was never calibrated, so it finds no winner"
        if self.is_people:
            return "blind votes of people, who need no calibration"
        if not self.n_items:
            return "not calibrated, so it gives no verdict"
        share = f"{self.n_right} of {self.n_items} calibration questions right"
        return share if self.gives_verdict else f"{share}, below 80 %: scores are shown, verdicts are not"


@dataclass(frozen=True, slots=True)
class Cell:
    """One variant's answer to one prompt, and the latest opinion on it."""

    outcome: str
    state: str | None
    score: int | None
    result: str | None
    lengths_differ: bool | None
    is_self: bool | None
    preferred_first: str | None
    preferred_second: str | None


Cells = Mapping[str, Cell]  # by prompt

Row = dict[str, Any]
RowMaker = Callable[[Cells, Cells], Row]


def score_row(cells: Cells, base: Cells) -> Row:
    """One variant's mean score from 1 to 10 and its paired difference to the reference's."""
    known = [float(cell.score) for cell in cells.values() if cell.score is not None]
    mean = stats.mean_interval(known) if known else None
    interval = mean.interval if mean else None
    row = {
        "mean_score": mean.mean if mean else None,
        # Beyond the scale there is no mean, so cutting the interval there loses no coverage.
        "ci_low": max(float(LOWEST_SCORE), interval.low) if interval else None,
        "ci_high": min(float(HIGHEST_SCORE), interval.high) if interval else None,
        **_coverage(cells, _judgeable(cells)),
        **_no_effect(),
    }
    differences = _differences(cells, base)
    row["n_pairs"] = len(differences)
    row["reason"] = _why_not_comparable(row, cells, base)
    if differences and cells is not base:
        paired = stats.paired_difference(differences, seed=BOOTSTRAP_SEED)
        row |= _effect(paired.estimate, paired.interval, paired.p_value)
    return row


def _judgeable(cells: Cells) -> list[Cell]:
    """The answers that ended by themselves, and others that a judge of another study scored all the same."""
    return [cell for cell in cells.values() if cell.outcome == "ok" or cell.score is not None]


def _differences(cells: Cells, base: Cells) -> list[float]:
    """The differences of the prompts that were scored for both."""
    shared = [(cells[prompt].score, base[prompt].score) for prompt in sorted(cells.keys() & base.keys())]
    return [float(mine - other) for mine, other in shared if mine is not None and other is not None]


def pair_row(cells: Cells, base: Cells) -> Row:
    """One variant's wins, ties and losses against the reference, and their sign test."""
    compared = [
        cell
        for prompt, cell in cells.items()
        if cell.outcome == "ok" and prompt in base and base[prompt].outcome == "ok"
    ]
    # The same text twice is a tie that no judge was asked about.
    asked = [cell for cell in compared if cell.result is not None and cell.preferred_first is not None]
    results = Counter(cell.result for cell in compared)
    wins, losses = results["win"], results["loss"]
    row = {
        "n_wins": wins,
        "n_ties": results["tie"],
        "n_losses": losses,
        **_coverage(cells, compared),
        "n_lengths_differ": sum(bool(cell.lengths_differ) for cell in compared),
        "n_order_decided": sum(
            {cell.preferred_first, cell.preferred_second} == {"variant", "reference"} for cell in compared
        ),
        "n_asked": len(asked),
        "n_same_order": sum(cell.preferred_first == cell.preferred_second for cell in asked),
        **_no_effect(),
    }
    n_scored = row["n_scored"]
    row["reason"] = _low_coverage(row) or _other_failures(cells, base, lambda cell: cell.outcome != "ok")
    if n_scored:
        interval = stats.paired_share_interval(wins, losses, n_scored)
        row |= _effect((wins - losses) / n_scored, interval, stats.mcnemar_exact(losses, wins))
    return row


def _coverage(cells: Cells, judgeable: Sequence[Cell]) -> Row:
    states = Counter(cell.state for cell in judgeable)
    n_scored = states[JudgeState.SCORED]
    return {
        "n_scored": n_scored,
        "n_judgeable": len(judgeable),
        "n_total": len(cells),
        "n_own_failures": sum(cell.outcome in OWN_FAILURES for cell in cells.values()),
        **{f"n_{state}": states[state] for state in JudgeState if state is not JudgeState.SCORED},
        "coverage": n_scored / len(judgeable) if judgeable else None,
        "is_self": any(cell.is_self for cell in judgeable),
    }


def _no_effect() -> Row:
    return dict.fromkeys(("delta", "delta_low", "delta_high", "p_value", "p_holm", "verdict", "reason"))


def _effect(estimate: float, interval: stats.Interval | None, p_value: float | None) -> Row:
    return {
        "delta": estimate,
        "delta_low": interval.low if interval else None,
        "delta_high": interval.high if interval else None,
        "p_value": p_value,
    }


def _why_not_comparable(row: Row, cells: Cells, base: Cells) -> str | None:
    """Why the scores of a variant and of the reference are no ranking; None where they can be one."""
    base_row = _coverage(base, _judgeable(base))
    reason = _low_coverage(row) or _low_coverage(base_row, "of the reference ")
    return reason or _other_failures(cells, base, lambda cell: cell.state != JudgeState.SCORED)


def _low_coverage(row: Row, whose: str = "") -> str | None:
    if row["coverage"] is None:
        return f"no answer {whose}could be judged".replace("  ", " ")
    if row["coverage"] >= MIN_COVERAGE:
        return None
    return f"only {row['n_scored']} of {row['n_judgeable']} answers {whose}were scored"


def _other_failures(cells: Cells, base: Cells, is_failure: Callable[[Cell], bool]) -> str | None:
    """Why the prompts that count are not a fair choice: failures differ clearly between the two."""
    pairs = [(is_failure(cells[prompt]), is_failure(base[prompt])) for prompt in cells.keys() & base.keys()]
    if not pairs:
        return None
    share, base_share = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
    p_value = stats.mcnemar_exact(pairs.count((True, False)), pairs.count((False, True)))
    if p_value >= ALPHA or abs(share - base_share) < CLEAR_CUT_OFF_DIFFERENCE:
        return None
    return f"answers without a score differ clearly ({share:.0%} against {base_share:.0%})".replace("%", " %")


def with_verdicts(rows: list[Row], facts: JudgeFacts) -> list[Row]:
    """The rows with Holm's p, a verdict where one holds, and both in words."""
    for row in rows:
        if not (facts.gives_verdict or facts.is_published):
            row["p_value"], row["reason"] = None, facts.calibration_sentence
        elif row["reason"] is not None and not row["is_reference"]:
            row["p_value"], row["verdict"] = None, NOT_COMPARABLE
    tested = [row for row in rows if row["p_value"] is not None and not row["is_reference"]]
    for row, p_holm in zip(tested, stats.holm([row["p_value"] for row in tested]), strict=True):
        row["p_holm"] = p_holm
        row["verdict"] = SAME if p_holm >= ALPHA else BETTER if row["delta"] > 0 else WORSE
        if facts.is_published and row["verdict"] != SAME:
            row["verdict"], row["reason"] = None, facts.calibration_sentence
    for row in rows:
        row["words"] = _words(row)
    return rows


def _words(row: Row) -> str:
    if row["is_reference"]:
        return "reference"
    if row["verdict"] == NOT_COMPARABLE:
        return f"{NOT_COMPARABLE}: {row['reason']}"
    if row["delta"] is None:
        return row["reason"] or "no prompt was scored for both"
    interval = "" if row["delta_low"] is None else f" ({row['delta_low']:+.2f} to {row['delta_high']:+.2f})"
    return f"{row['delta']:+.2f}{interval}, {row['verdict'] or 'no verdict'}"
