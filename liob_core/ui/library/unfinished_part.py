"""Downloads from the Hub that never came to their end: what they take, and their removal."""

import streamlit as st

from liob_core.analysis.words import memory
from liob_core.errors import LiobError
from liob_core.models.hub_unfinished import Unfinished, remove_unfinished, unfinished_downloads
from liob_core.ui.guard import show_error
from liob_core.ui.text import literal


def show_unfinished() -> None:
    """Every first part in the Hub's cache, with its size and a button; nothing where there is none."""
    parts = unfinished_downloads()
    if not parts:
        return
    total = sum(part.n_bytes for part in parts)
    with st.expander(f"Unfinished downloads, {memory(total)}", icon=":material/downloading:"):
        st.caption("A new download of the same file goes on from here. What is removed begins anew.")
        for part in parts:
            _show(part)


def _show(part: Unfinished) -> None:
    text, action = st.columns([5, 2], vertical_alignment="center")
    text.markdown(f"{literal(part.repo_id)}, {memory(part.n_bytes)} of `{part.digest[:12]}`")
    if action.button("Remove", icon=":material/delete:", key=f"liob_unfinished_{part.path.name}"):
        try:
            st.toast(f"{memory(remove_unfinished(part))} are free again.")
        except LiobError as error:
            show_error(error)
            return
        st.rerun()
