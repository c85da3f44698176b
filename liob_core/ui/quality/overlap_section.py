"""How much of a reference text the answers share, where a suite asks for it."""

from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.analysis.overlaps import NAMES
from liob_core.ui.run_view import RunView
from liob_core.ui.table import Cell, Column, Note, show_table

_HINTS = {
    "rouge_l": "F-measure of the longest common subsequence of words, 0 to 1",
    "bleu": "Sentence BLEU as sacreBLEU computes it, 0 to 1",
    "token_f1": "F1 over words as SQuAD defines it, 0 to 1",
}


def show_overlaps(view: RunView) -> None:
    """The mean of each measure per variant; nothing where no check compares with a reference text."""
    table = view.frame("overlaps")
    if table.empty:
        return
    st.subheader("Overlap with reference answers", anchor=False)
    columns = [Column(label="Variant", is_number=False)]
    kinds = list(dict.fromkeys(table["kind"]))
    columns += [Column(label=NAMES[kind], hint=_HINTS[kind]) for kind in kinds]
    rows = []
    for variant, group in table.groupby("variant", sort=False):
        by_kind = {row["kind"]: row for row in group.to_dict("records")}
        note = (Note("reference"),) if bool(group["is_reference"].iloc[0]) else ()
        rows.append([Cell(text=str(variant), notes=note), *(_cell(by_kind.get(kind)) for kind in kinds)])
    show_table(columns, rows, caption="Overlap with reference answers per variant")
    st.caption(
        "Means over prompts with 95 % intervals. Overlap is with one wording of a right answer: another "
        "right wording scores low, so no verdict is drawn from it."
    )


def _cell(row: dict[Any, Any] | None) -> Cell:
    if row is None:
        return Cell(text=words.UNKNOWN, hint="no answer was scored")
    lines = [_interval(row["ci_low"], row["ci_high"], ".3f", row["n"])]
    if not pd.isna(row["delta"]):
        ends = _interval(row["delta_low"], row["delta_high"], "+.3f", row["n_pairs"])
        lines.append(f"{row['delta']:+.3f} against the reference ({ends})")
    return Cell(text=f"{row['mean_score']:.3f}", notes=tuple(Note(line) for line in lines))


def _interval(low: float | None, high: float | None, digits: str, n: int) -> str:
    if low is None or high is None or pd.isna(low):
        return f"n = {n}, no interval"
    return f"{low:{digits}} to {high:{digits}}, n = {n}"
