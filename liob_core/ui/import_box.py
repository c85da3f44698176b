"""Results of other machines into the user's own: one upload, and what became of it."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from liob_core.bench.import_file import import_upload
from liob_core.config import Settings
from liob_core.errors import LiobError
from liob_core.ui.guard import show_error
from liob_core.ui.nav import button_to
from liob_core.ui.source import OWN

MOST_MIB = 200
_DONE = "liob_import_done"
_TYPES = ("duckdb", "zip", "json", "csv")


def show_import(settings: Settings) -> None:
    """The choice of a file, the button that merges it, and what the last one brought."""
    st.markdown(
        "A file that *Take a run along* or `export` made on any machine: DuckDB, JSON, or the ZIP of CSV or "
        "Parquet files. Runs are added to yours and keep their machine; the same file again adds nothing; a "
        "file with anything in it that LIOB does not write is refused whole."
    )
    with st.form("liob_import_form", border=False, clear_on_submit=True):
        file = st.file_uploader(
            "Results to import",
            type=list(_TYPES),
            max_upload_size=MOST_MIB,
            help=f"At most {MOST_MIB} MiB; for more: `python -m liob_core import FILE`.",
        )
        machine = st.text_input(
            "Machine it was measured on",
            placeholder="only for a table of the original study, which does not name it",
            max_chars=200,
        )
        if st.form_submit_button("Import", icon=":material/upload:"):
            _import(settings, file, machine.strip() or None)
    done = st.session_state.get(_DONE)
    if done:
        _show_done(done)


def _import(settings: Settings, file: Any, machine: str | None) -> None:
    """Merge the file and draw the page anew, so that every list has its runs; a refusal is a sentence."""
    st.session_state.pop(_DONE, None)
    if file is None:
        st.warning("Choose a file first.", icon=":material/upload_file:")
        return
    try:
        with st.spinner("Checking and merging"):
            found = import_upload(settings, file.name, file.getvalue(), machine=machine)
    except LiobError as error:
        show_error(error)
        return
    st.session_state[_DONE] = found
    st.rerun()


def _show_done(found: Mapping[str, Any]) -> None:
    """How many runs came, and the way to the first of them."""
    new = [*found["added"], *found["updated"]]
    if not new:
        st.info("Everything in that file is here already; nothing was added.", icon=":material/check:")
        return
    runs = f"{len(new)} run{'s' if len(new) != 1 else ''}"
    st.success(f"{runs} with {found['n_samples']:,} new samples came in.", icon=":material/check:")
    button_to("results", "See the imported results", icon=":material/speed:", source=OWN, run=str(new[0]))
