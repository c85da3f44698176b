"""Results: how fast, how big?"""

import streamlit as st

from liob_core.rendering.csv import as_csv
from liob_core.ui.blocks import show_heading
from liob_core.ui.engine_table import show_engines
from liob_core.ui.pictures import draw, show_picture
from liob_core.ui.results_table import show_results_table
from liob_core.ui.run_view import RunView, open_run, show_caveats
from liob_core.ui.style import current_look


def show() -> None:
    """The table, then speed, waiting times and memory as pictures."""
    view = open_run("How fast, how big?")
    if view is None:
        return
    show_heading(view.kicker, "How fast, how big?")
    table = view.frame("results")
    show_results_table(table, current_look(), key="results")
    show_engines(view.frame("engines"))
    _show_pictures(view)
    st.download_button(
        "Download the table as CSV",
        lambda: as_csv(table),
        file_name=f"{view.file_stem}.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
    )
    show_caveats(view)


def _show_pictures(view: RunView) -> None:
    """Speed and waiting times side by side, memory below."""
    for pair in ("rates", "latencies"):
        for column, picture in zip(st.columns(2, gap="large"), draw(view, pair), strict=True):
            with column:
                show_picture(picture, file_stem=view.file_stem)
    (memory,) = draw(view, "memory")
    show_picture(memory, file_stem=view.file_stem)
