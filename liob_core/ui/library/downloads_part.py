"""Downloads, pulls and registrations under way and those that are over, read from their status files."""

import streamlit as st

from liob_core.analysis.words import memory
from liob_core.bench import downloads
from liob_core.bench.downloads import DownloadStatus
from liob_core.config import Settings
from liob_core.ui.guard import guarded
from liob_core.ui.nav import open_page
from liob_core.ui.setup.variants_step import PATHS_KEY
from liob_core.ui.text import literal

REFRESH_S = 1


def show_downloads(settings: Settings) -> None:
    """Every download with what can be done about it, refreshed while one is at work."""
    found = downloads.list_downloads(settings)
    if not found:
        return
    is_live = any(status.is_live for status in found)
    st.subheader("Downloads", anchor=False)
    st.fragment(guarded(_show), run_every=REFRESH_S if is_live else None)(settings, is_live)


def _show(settings: Settings, was_live: bool) -> None:
    found = downloads.list_downloads(settings)
    if was_live and not any(status.is_live for status in found):
        st.rerun()  # the whole page: what came is in its list now
    for status in found:
        with st.container(border=True):
            _show_one(status, settings)


def _show_one(status: DownloadStatus, settings: Settings) -> None:
    name = literal(f"{status.repo_id} {status.label}")
    share = min(1.0, status.done_bytes / status.total_bytes) if status.total_bytes else 0.0
    text, action = st.columns([5, 2], vertical_alignment="center")
    key = status.download_id
    with text:
        if status.is_live:
            st.progress(share, text=f"{name}: {memory(status.done_bytes)} of {memory(status.total_bytes)}")
        elif status.state == "finished":
            named = f" It is **{literal(status.ollama_name)}** on Ollama." if status.ollama_name else ""
            st.markdown(f":material/check_circle: {name}, {memory(status.total_bytes)}.{named}")
        else:
            st.markdown(f":material/info: {name}: {literal(status.reason or status.state)}")
    with action, st.container(horizontal=True, horizontal_alignment="right"):
        if status.is_live:
            if st.button("Cancel", icon=":material/stop_circle:", key=f"liob_get_cancel_{key}"):
                downloads.cancel(key, settings)
                st.toast("Cancelling; what came is kept for the next time.")
            return
        if status.state == "finished" and st.button("Benchmark it", key=f"liob_get_use_{key}"):
            if status.paths:  # what Ollama pulled stands there among its models
                st.session_state[PATHS_KEY] = status.paths[0]
            open_page("new")
        if st.button("Clear", key=f"liob_get_clear_{key}", help="Takes it off this list; files stay."):
            downloads.forget(key, settings)
            st.rerun()
