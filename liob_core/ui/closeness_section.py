"""How close each variant is to the reference: the ladder, the table, and what limits both."""

import pandas as pd
import streamlit as st

from liob_core.rendering.closeness_table import TWO_ERRORS, closeness_columns, closeness_rows
from liob_core.ui import reads
from liob_core.ui.blocks import show_unknown, show_warnings
from liob_core.ui.pictures import draw, show_picture
from liob_core.ui.run_view import RunView
from liob_core.ui.style import current_look
from liob_core.ui.table import show_table
from liob_core.ui.text import literal


def show_closeness(view: RunView) -> None:
    """The ladder and the table; nothing measured says so."""
    table = view.frame("closeness")
    facts = reads.closeness(view.database, view.run_id)
    if facts is None:
        show_unknown("Closeness to the reference", _why_missing(table))
        return
    if table["kld_mean"].notna().any():
        (picture,) = draw(view, "closeness")
        show_picture(picture, file_stem=view.file_stem)
    columns, rows = closeness_columns(table), closeness_rows(table, current_look())
    show_table(columns, rows, caption="Closeness per variant")
    st.caption(literal(f"{facts['basis']}. {facts['build']}. {TWO_ERRORS}"))
    show_warnings(facts["notes"])


def _why_missing(table: pd.DataFrame) -> str:
    if table.empty:
        return "not measured in this run; add the task Closeness to a new benchmark"
    failed = table.to_dict("records")[0]
    return f"{failed['variant']} ended as {failed['ending']}: {failed['reason']}"
