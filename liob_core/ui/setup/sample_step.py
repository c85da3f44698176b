"""The shortest way to a first result: a small real model, and a ladder of variants made from it."""

from pathlib import Path

import streamlit as st

from liob_core.config import Settings
from liob_core.models.quantize import LadderProgress, make_ladder
from liob_core.models.sample import fetch_sample
from liob_core.ui.text import literal

_NOTE_KEY = "liob_new_ladder_note"
LADDER_TYPES = ("Q8_0", "Q5_0", "Q4_0")


def offer_sample(settings: Settings, paths_key: str) -> None:
    """Two buttons; what they bring is written into the text field under `paths_key`."""
    with st.container(horizontal=True):
        take = st.button("Take the sample model", icon=":material/download:", help="SmolLM2-135M, 93 MB")
        ladder = st.button(
            "Make a ladder of 4 from it",
            icon=":material/stairs:",
            help="The sample and three more variants made from it: " + ", ".join(LADDER_TYPES),
        )
    if not (take or ladder):
        if st.session_state.get(_NOTE_KEY):
            st.caption(f":material/warning: {literal(st.session_state[_NOTE_KEY])}")
        return
    with st.status("Fetching the sample model (93 MB)", expanded=True) as status:
        line = st.empty()

        def tell_fetch(sentence: str) -> None:
            line.text(sentence)

        def tell_ladder(progress: LadderProgress) -> None:
            if progress.event == "warning":
                st.session_state[_NOTE_KEY] = progress.message
            status.update(label=f"Making variant {progress.n_file} of {progress.n_files}")
            line.progress(progress.share, text=progress.message or progress.type_name)

        source = fetch_sample(settings.models_dir, on_progress=tell_fetch)
        files = [source]
        if ladder:
            files += make_ladder(source, LADDER_TYPES, settings.models_dir, on_progress=tell_ladder)
        status.update(label="Ready", state="complete")
    st.session_state[paths_key] = "\n".join(_unique(files, str(st.session_state.get(paths_key, ""))))
    st.rerun()


def _unique(files: list[Path], before: str) -> list[str]:
    """The new files after the lines that were there, none twice; a folder that holds them goes."""
    names = [str(file) for file in files]
    folders = {str(file.parent) for file in files}
    kept = [
        line for line in before.splitlines() if line.strip() and line not in folders and line not in names
    ]
    return kept + names
