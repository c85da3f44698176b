"""Data: what is stored, and how can I ask or take it?"""

from functools import partial
from typing import Any

import streamlit as st

from liob_core.config import load_settings
from liob_core.ui import reads, selection
from liob_core.ui.blocks import show_heading
from liob_core.ui.downloads import FORMATS, MIME, export_bytes, export_name
from liob_core.ui.guard import guarded
from liob_core.ui.import_box import show_import
from liob_core.ui.run_view import RunView, open_run
from liob_core.ui.sql_box import show_sql_box
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import literal


def show() -> None:
    """A box for SQL, the chosen run as files, files of others, and the views with their columns."""
    settings = load_settings()
    view = open_run("What is stored?")
    if view is None:
        st.subheader("Bring results in", anchor=False)
        show_import(settings)
        return
    show_heading(view.kicker, "What is stored, and how can I use it?")
    st.subheader("Ask in SQL", anchor=False)
    guarded(show_sql_box)(view.database)
    st.subheader("Take a run along", anchor=False)
    _show_exports(view)
    st.subheader("Bring results in", anchor=False)
    show_import(settings)
    st.subheader("What the columns mean", anchor=False)
    _show_schema(view)
    st.subheader("From anywhere else", anchor=False)
    st.markdown("The file is a DuckDB database with documented views; any DuckDB from 1.4 on reads it.")
    st.code(f'duckdb -readonly "{view.database}" "FROM results"', language="bash", wrap_lines=True)


def _show_exports(view: RunView) -> None:
    """One button a format; a file is made only when its button is used."""
    st.markdown(
        f"{literal(view.facts.title or view.run_id)} as files; host names, user names and paths stay here."
    )
    with_texts = st.toggle(
        "Include prompts and answers",
        value=True,
        key="liob_export_texts",
        help="Without them, and without what judges wrote, every figure is still there.",
    )
    with st.container(horizontal=True):
        for format_, name in FORMATS.items():
            st.download_button(
                name,
                partial(export_bytes, view.database, view.run_id, format_, with_texts=with_texts),
                file_name=export_name(view.run_id, format_),
                mime=MIME[format_],
                icon=":material/download:",
                key=f"liob_export_{format_}",
                on_click="ignore",
            )


def _show_schema(view: RunView) -> None:
    """One view's columns, their types and meanings; what each view holds is in the choice's own words."""
    schema: dict[str, Any] = reads.schema(view.database)
    # The one that most people ask comes first.
    views = dict(sorted(schema["views"].items(), key=lambda item: (item[0] != "results", item[0])))
    chosen = selection.pick("view", "View", {name: f"{name}: {comment}" for name, comment in views.items()})
    columns = [Column(label="Column and meaning", is_number=False), Column(label="Type", is_number=False)]
    rows = [
        [Cell(text=name, notes=(Note(comment),)), Cell(text=type_name.lower())]
        for view_name, name, type_name, comment in schema["columns"]
        if view_name == chosen
    ]
    show_table(columns, rows, caption=f"Columns of {chosen}")
