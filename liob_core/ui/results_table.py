"""The results table on a page: how to order it, and its text for pasting elsewhere."""

import pandas as pd
import streamlit as st

from liob_core.charts.theme import Look
from liob_core.metrics import METRICS
from liob_core.rendering.results_table import measures_of, results_columns, results_rows
from liob_core.ui.table import as_markdown, show_table

_LADDER = "true bits, many first"


def show_results_table(table: pd.DataFrame, look: Look, *, key: str) -> None:
    """The table, how to order it, and its text for pasting elsewhere."""
    above = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        ordered = _ordered(table, key)
        copy = st.popover("Copy as Markdown", icon=":material/content_copy:")
    columns, rows = results_columns(table), results_rows(table, ordered, look)
    with above:
        show_table(columns, rows, caption="Results per variant")
    with copy:
        st.code(as_markdown(columns, rows), language="markdown")


def _ordered(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows as the reader wants them; the reference stays on top."""
    measures = measures_of(table)
    options = [_LADDER, *(measure.label for measure in measures)]
    chosen = st.selectbox("Order by", options, key=f"{key}_order", width=230)
    measure = next((m for m in measures if m.label == chosen), None)
    if measure is None:
        return table
    is_ascending = METRICS[measure.metric].direction == "lower"
    return table.sort_values(
        ["is_reference", measure.metric], ascending=[False, is_ascending], na_position="last"
    )
