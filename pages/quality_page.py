"""Quality: how close, how good?"""

import streamlit as st

from liob_core.ui import reads
from liob_core.ui.blocks import show_heading
from liob_core.ui.closeness_section import show_closeness
from liob_core.ui.run_view import open_run, show_caveats


def show() -> None:
    """How far down the ladder the model stays what it was, and what that rests on."""
    view = open_run("How close, how good?")
    if view is None:
        return
    facts = reads.closeness(view.database, view.run_id)
    show_heading(view.kicker, facts["sentence"] if facts else "How close, how good?")
    st.subheader("Closeness to the reference", anchor=False)
    show_closeness(view)
    show_caveats(view)
