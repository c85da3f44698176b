"""The tables and the words of a judge: what it got right beforehand, and what it says per variant."""

from typing import Any

import pandas as pd

from liob_core.analysis import words
from liob_core.charts.theme import Look, variant_colours
from liob_core.quality.judge.people import PEOPLE
from liob_core.rendering.table import Cell, Column, Note
from liob_core.store.study_rows import JUDGE_KEY
from liob_core.types import JudgeMode, JudgeState

Row = dict[Any, Any]
_LOOKS = {"better": "better", "worse": "worse", "not distinguishable": "same"}
_KINDS = {
    "gold": ("Good and bad answers", "A good one scores 7 or more and wins, a bad one 4 or less and loses"),
    "identical": ("The same text twice", "Must get the same score, and be called a tie"),
    "damaged": ("A planted fault", "The damaged answer must score lower, and lose"),
}
_STATES = {
    JudgeState.JUDGE_ERROR: "could not be asked",
    JudgeState.PARSE_ERROR: "not readable",
    JudgeState.OUT_OF_RANGE: "out of range",
    JudgeState.REFUSED: "refused",
    JudgeState.TRUNCATED_JUDGE: "cut off",
}
_COVERED = Column(
    label="Scored",
    hint="Answers with a score of those that ended by themselves; below 95 % there is no ranking",
)
_OWN = Column(
    label="Failed itself",
    hint="Answers that were empty, cut off or a loop: the variant's doing, never judged",
)
_AGAINST = Column(label="Against the reference", hint="Over the prompts that were scored for both")


MODES = {JudgeMode.SINGLE: "scores from 1 to 10", JudgeMode.PAIRWISE: "pairs against the reference"}

Table = tuple[list[Column], list[list[Cell]]]  # the headings and the rows


def calibration_words(judge: Row) -> str:
    """Whether its verdicts count, before anything that it says; `judge` is a row of `judged.judges`."""
    if judge["gives_verdict"]:
        return f"{judge['sentence'].capitalize()}."
    if judge["judge_key"] == JUDGE_KEY:
        return (
            "Published scores of a judge that was never calibrated: that two variants cannot be told apart "
            "may be said, that one is better may not."
        )
    if judge["n_items"]:
        return f"This judge gives no verdict because it failed its calibration: {judge['sentence']}."
    return f"This judge gives no verdict: {judge['sentence'].split(',', maxsplit=1)[0]}."


def reliability(judge: Row, table: pd.DataFrame) -> str:
    """The judge's own failures and, of pairs, how often the order decided."""
    n_failed = judge["n_judged"] - judge["n_scored"]
    if judge["judge_key"] == PEOPLE:
        return f"People skipped {n_failed} of {judge['n_judged']} pairs; each vote is on two unnamed answers."
    if judge["judge_key"] == JUDGE_KEY:
        return "Scores as they were published; answers that were cut off are among them."
    parts = [f"The judge failed on {n_failed} of {judge['n_judged']} answers; such an answer has no score"]
    if judge["mode"] == JudgeMode.PAIRWISE:
        n_asked, n_same = int(table["n_asked"].sum()), int(table["n_same_order"].sum())
        if n_asked:
            parts.append(f"it said the same in both orders on {n_same} of {n_asked} pairs")
    parts.append("answers that failed by themselves (empty, cut off, a loop) were not shown to it")
    return "; ".join(parts) + "."


def calibration_table(items: pd.DataFrame) -> Table:
    """How many questions with a known answer were right, by kind."""
    columns = [
        Column(label="Calibration", is_number=False, hint="Questions whose right answer is known"),
        Column(label="Right"),
        Column(label="No usable reply", hint="The judge's own error rate on these questions"),
    ]
    rows = []
    for kind, group in items.groupby("item_kind", sort=False):
        name, hint = _KINDS.get(str(kind), (str(kind), ""))
        n, n_right = len(group), int(group["is_right"].sum())
        n_failed = int((group["state"] != JudgeState.SCORED).sum())
        right = Cell(text=f"{n_right} of {n}", bar=(n_right / n, 1 - n_right / n))
        rows.append([Cell(text=name, hint=hint, notes=(Note(hint),)), right, Cell(text=str(n_failed))])
    return columns, rows


def scores_table(table: pd.DataFrame, look: Look) -> Table:
    """One row a variant, the reference first: mean score, coverage, difference with its verdict."""
    columns = [
        Column(label="Variant", is_number=False),
        Column(label="Mean score", hint="Of the scored answers, from 1 to 10, with its 95 % interval"),
        _COVERED,
        _OWN,
        _AGAINST,
    ]
    colours = _colours(table, look)
    rows = [
        [
            _variant(row, colours),
            _mean(row),
            _coverage(row),
            Cell(text=str(row["n_own_failures"])),
            _against(row, "", 1.0, 2),
        ]
        for row in table.to_dict("records")
    ]
    return columns, rows


def pairs_table(table: pd.DataFrame, look: Look) -> Table:
    """One row a variant but the reference: wins, ties, losses, coverage, order, lengths, verdict."""
    columns = [
        Column(label="Variant", is_number=False),
        Column(label="Win / tie / loss", hint="A win and a loss need the same preference in both orders"),
        _COVERED,
        Column(
            label="Same in both orders", hint="Of the pairs asked about; the same text twice is not asked"
        ),
        Column(label="Other length", hint="Pairs whose lengths differ by more than 20 %: judges like length"),
        _OWN,
        _AGAINST,
    ]
    colours = _colours(table, look)
    rows = [
        [
            _variant(row, colours),
            Cell(text=f"{row['n_wins']} / {row['n_ties']} / {row['n_losses']}"),
            _coverage(row),
            _order(row),
            Cell(text=f"{row['n_lengths_differ']} of {row['n_judgeable']}"),
            Cell(text=str(row["n_own_failures"])),
            _against(row, " points", 100.0, 0),
        ]
        for row in table.to_dict("records")
    ]
    return columns, rows


def _colours(table: pd.DataFrame, look: Look) -> dict[str, str]:
    ladder = table.sort_values("bpw", ascending=False, kind="stable", na_position="last")
    labels = [str(label) for label in ladder["variant"]]
    reference = next((str(row.variant) for row in ladder.itertuples() if row.is_reference), None)
    return variant_colours(labels, reference, look)


def _variant(row: Row, colours: dict[str, str]) -> Cell:
    notes = []
    if row["is_reference"]:
        notes.append(Note("reference"))
    if row["is_self"]:
        notes.append(Note("judged by itself", "worse"))
    return Cell(
        text=row["variant"],
        notes=tuple(notes),
        swatch=colours[row["variant"]],
        diamond=bool(row["is_reference"]),
        hint="The judge is this very model, maybe in another quantization" if row["is_self"] else "",
    )


def _mean(row: Row) -> Cell:
    if pd.isna(row["mean_score"]):
        return Cell(text=words.UNKNOWN, hint="no answer was scored")
    has_interval = not pd.isna(row["ci_low"])
    note = f"{row['ci_low']:.1f} to {row['ci_high']:.1f}" if has_interval else "n = 1, no interval"
    return Cell(text=f"{row['mean_score']:.2f}", notes=(Note(note),), hint=f"{row['mean_score']!r}")


def _coverage(row: Row) -> Cell:
    failed = [f"{row[f'n_{state}']} {name}" for state, name in _STATES.items() if row[f"n_{state}"]]
    n_missing = row["n_judgeable"] - row["n_scored"] - sum(row[f"n_{state}"] for state in _STATES)
    if n_missing:
        failed.append(f"{n_missing} not judged yet")
    notes = tuple(Note(text, "worse") for text in failed)
    hint = f"{row['n_total']} prompts, {row['n_judgeable']} could be judged"
    return Cell(text=f"{row['n_scored']} of {row['n_judgeable']}", notes=notes, hint=hint)


def _order(row: Row) -> Cell:
    if not row["n_asked"]:
        return Cell(text=words.UNKNOWN, hint="no pair was asked about in both orders")
    decided = row["n_order_decided"]
    notes = (Note(f"{decided} decided by the order"),) if decided else ()
    return Cell(text=f"{row['n_same_order']} of {row['n_asked']}", notes=notes)


def _against(row: Row, unit: str, factor: float, digits: int) -> Cell:
    """The difference, its interval, and what may be said of it."""
    if row["is_reference"]:
        return Cell(text="reference")
    if pd.isna(row["delta"]):
        reason = row["reason"] if isinstance(row["reason"], str) else "no prompt was scored for both"
        return Cell(text=words.UNKNOWN, notes=(Note(reason),))
    shown = f"{row['delta'] * factor:+.{digits}f}{unit}"
    notes = []
    if not pd.isna(row["delta_low"]):
        low, high = row["delta_low"] * factor, row["delta_high"] * factor
        notes.append(Note(f"{low:+.{digits}f} to {high:+.{digits}f}"))
    if row["verdict"] in _LOOKS:
        notes.append(Note(row["verdict"], _LOOKS[row["verdict"]]))
    elif isinstance(row["verdict"], str):
        notes.append(Note(f"{row['verdict']}: {row['reason']}", "unknown"))
    else:  # why this judge gives none stands above the table
        notes.append(Note("no verdict", "unknown"))
    return Cell(text=shown, notes=tuple(notes))
