"""The same weights on several engines, side by side, with the proof that they were asked the same."""

from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.metrics import METRICS
from liob_core.ui.table import Cell, Column, Note, show_table

Row = dict[Any, Any]
_MEASURES = (
    ("decode_tps", "Decode, tok/s"),
    ("prefill_tps", "Prefill, tok/s"),
    ("ttft_ms_p50", "TTFT"),
    ("load_ms", "Load"),
    ("peak_memory_bytes", "Memory"),
)


def show_engines(frame: pd.DataFrame) -> None:
    """The table; nothing where no weights ran on more than one engine."""
    if frame.empty:
        return
    st.subheader("The same weights on several engines", anchor=False)
    columns = [Column(label="Variant", is_number=False)]
    columns += [Column(label=label, hint=METRICS[metric].explanation) for metric, label in _MEASURES]
    columns += [
        Column(label="Same prompt", hint="prompts whose bytes were the same, and those of the same tokens"),
        Column(label="Same answer", hint="answers equal to the last character, of those that both gave"),
    ]
    show_table(columns, [_row(row) for row in frame.to_dict("records")], caption="The same weights")
    st.caption(
        "One file, or one that the engine wrote anew: the weights are the same to the byte. A difference is "
        "the engine's: its build, its settings, what it does around a request."
    )


def _row(row: Row) -> list[Cell]:
    version = row["engine_version"]
    first = Cell(text=row["variant"], notes=(Note(version if isinstance(version, str) else row["engine"]),))
    cells = [_cell(row, metric) for metric, _ in _MEASURES]
    return [first, *cells, _prompts(row), _share(row, "n_same_answers")]


def _cell(row: Row, metric: str) -> Cell:
    value = row[metric]
    if pd.isna(value):
        return Cell(text=words.UNKNOWN, hint="not measured in this run")
    return Cell(text=words.value(metric, value).removesuffix(" tok/s"), hint=f"{value!r} ({metric})")


def _prompts(row: Row) -> Cell:
    cell = _share(row, "n_same_bytes")
    if pd.isna(row["n_prompts"]) or row["n_same_tokens"] == row["n_prompts"]:
        return cell
    counted = f"tokens: {row['n_same_tokens']:.0f} of {row['n_prompts']:.0f}"
    return Cell(text=cell.text, notes=(Note(counted, "worse"),), hint=cell.hint)


def _share(row: Row, name: str) -> Cell:
    if row["variant"] == row["compared_with"]:
        return Cell(text="", hint="the others are compared with it")
    if pd.isna(row["n_prompts"]):
        return Cell(text=words.UNKNOWN, hint="no prompt was answered by both")
    return Cell(
        text=f"{row[name]:.0f} of {row['n_prompts']:.0f}", hint=f"compared with {row['compared_with']}"
    )
