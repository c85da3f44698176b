"""Tables on a page; what a table is stands in `rendering`, since files need it too."""

from collections.abc import Sequence

import streamlit as st

from liob_core.rendering.table import Cell, Column, Note, as_markdown, note_html, table_html

__all__ = ["Cell", "Column", "Note", "as_markdown", "note_html", "show_table"]


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, caption: str) -> None:
    """The table on the page; `caption` is read out by screen readers."""
    st.html(table_html(columns, rows, caption=caption))
