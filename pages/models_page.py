"""Models: what can run here, and where to get more."""

import streamlit as st

from liob_core.config import load_settings
from liob_core.ui.blocks import show_heading
from liob_core.ui.library.downloads_part import show_downloads
from liob_core.ui.library.hub_part import show_hub
from liob_core.ui.library.local_part import show_local
from liob_core.ui.library.unfinished_part import show_unfinished


def show() -> None:
    """The Hub's offer, downloads, and what is on disk."""
    settings = load_settings()
    show_heading("What can I run here?", "Models")
    with st.container(border=True):
        show_hub(settings)
    show_downloads(settings)
    show_unfinished()
    st.subheader("On this machine", anchor=False)
    show_local(settings)
