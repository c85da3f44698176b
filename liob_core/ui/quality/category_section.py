"""Where variants differ from the reference: checks by category."""

import streamlit as st

from liob_core.ui import reads
from liob_core.ui.blocks import show_unknown, show_warnings
from liob_core.ui.pictures import draw, show_picture
from liob_core.ui.run_view import RunView


def show_categories(view: RunView) -> None:
    """The map of differences, and which variants must not be ranked; says why where there is none."""
    st.subheader("Checks by category", anchor=False)
    if view.frame("check_categories").empty:
        show_unknown("Checks by category", _why_missing(view))
        return
    (picture,) = draw(view, "checks")
    show_picture(picture, file_stem=view.file_stem)
    show_warnings(reads.not_comparable(view.database, view.run_id, "pass_rate"))


def _why_missing(view: RunView) -> str:
    if view.facts.suite is None:
        return "this run asked no prompts; add a suite to a new benchmark"
    if view.facts.n_variants < 2:
        return "one variant alone has nothing to be compared with"
    return f"no prompt of {view.facts.suite} has a check that decided"
