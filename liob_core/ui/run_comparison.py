"""Two runs side by side: what speaks against comparing them, then each variant's figures and change."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.analysis.run_pairs import METRIC_COLUMNS, Comparison
from liob_core.metrics import METRICS
from liob_core.ui.blocks import show_warnings
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import literal

Row = Mapping[Any, Any]
_LOOKS = {"better": "better", "worse": "worse", "not distinguishable": "same"}


def show_comparison(found: Comparison, before: str, after: str) -> None:
    """The warnings and the table of `after` against `before`, both named by their titles."""
    if found.warnings:
        show_warnings(found.warnings)
    else:
        st.markdown("Same machine, engine, settings and prompts: what differs is what changed in between.")
    if found.rows.empty:
        return
    metrics = [metric for metric in METRIC_COLUMNS if (found.rows["metric"] == metric).any()]
    columns = [Column(label="Variant", is_number=False)]
    columns += [
        Column(
            label=METRICS[metric].label,
            hint=f"{METRICS[metric].explanation} Formula: {METRICS[metric].formula}",
        )
        for metric in metrics
    ]
    rows = []
    for variant, part in found.rows.groupby("variant", sort=False):
        by_metric = {row["metric"]: row for row in part.to_dict("records")}
        rows.append([Cell(text=str(variant)), *(_cell(by_metric.get(metric)) for metric in metrics)])
    show_table(columns, rows, caption=f"{after} against {before}")
    st.caption(
        literal(
            f"First line: {before} → {after}. Speed: geometric means over blocks, Welch's 95 % interval of "
            "their ratio. Checks: paired by prompt. Each interval stands by itself."
        )
    )
    for names, run in ((found.only_before, before), (found.only_after, after)):
        if names:
            st.caption(literal(f"Only in {run}: {', '.join(names)}"))


def _cell(row: Row | None) -> Cell:
    if row is None:
        return Cell(text=words.UNKNOWN, hint="measured in neither run")
    metric = str(row["metric"])
    both = f"{words.value(metric, row['before'])} → {words.value(metric, row['after'])}"
    is_unknown = bool(pd.isna(row["estimate"]))
    without = "unknown" if is_unknown else ""
    look = _LOOKS.get(str(row["verdict"]), without)
    notes = [Note(str(row["words"]), look)]
    between = _interval(row, metric)
    if between:
        notes.append(Note(between))
    elif row["n_before"] or row["n_after"]:
        notes.append(Note(f"n = {row['n_before']} and {row['n_after']}"))
    return Cell(text=both, notes=tuple(notes), hint=f"{row['before']!r} → {row['after']!r} ({metric})")


def _interval(row: Row, metric: str) -> str:
    """The 95 % interval of the change, a ratio as a factor, a difference of shares in points."""
    if pd.isna(row["ci_low"]):
        return ""
    if metric == "pass_rate":
        return f"{100 * row['ci_low']:+.0f} to {100 * row['ci_high']:+.0f} points, n = {row['n_after']}"
    return f"×{row['ci_low']:.2f} to ×{row['ci_high']:.2f}, n = {row['n_before']} and {row['n_after']}"
