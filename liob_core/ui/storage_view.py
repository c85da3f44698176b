"""What LIOB keeps on disk, and how to give some of it back."""

import streamlit as st

from liob_core.analysis.words import memory
from liob_core.bench import storage
from liob_core.bench.storage import Storage
from liob_core.config import Settings
from liob_core.errors import LiobError
from liob_core.ui.guard import show_error
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import literal

_FREED = "liob_storage_freed"


def show_storage(settings: Settings) -> None:
    """Sizes by purpose, and the run folders that can go."""
    found = storage.measure(settings)
    show_table(
        [Column(label="What", is_number=False), Column(label="On disk")],
        [
            [
                Cell(text="Database", notes=(Note("every result; the record that counts"),)),
                _size(found.database_bytes),
            ],
            [Cell(text="Run folders", notes=(Note(_folders(found)),)), _size(found.runs_bytes)],
            [
                Cell(text="Models", notes=(Note("files that LIOB fetched or made"),)),
                _size(found.models_bytes),
            ],
            [
                Cell(text="Cache", notes=(Note("digests and headers; made again when needed"),)),
                _size(found.cache_bytes),
            ],
            [Cell(text="Free", notes=(Note("on the data folder's disk"),)), _size(found.free_bytes)],
        ],
        caption="What LIOB keeps on disk",
    )
    freed = st.session_state.pop(_FREED, None)
    if freed is not None:
        st.toast(f"{memory(freed)} freed.")
    if found.removable:
        _show_cleanup(found, settings)


def _folders(found: Storage) -> str:
    kept = len(found.runs) - len(found.removable)
    n = len(found.runs)
    return (
        f"{n} run{'s' if n != 1 else ''}: {len(found.removable)} wholly in the database, {kept} still needed"
    )


def _size(n_bytes: int) -> Cell:
    text = f"{n_bytes / 1024:.1f} KiB" if 0 < n_bytes < 2**20 else memory(n_bytes)
    return Cell(text=text, hint=f"{n_bytes:,} bytes")


def _show_cleanup(found: Storage, settings: Settings) -> None:
    """A choice of folders, and a button that works only once the reader has said that it may."""
    with st.popover("Remove run folders", icon=":material/delete_sweep:"):
        st.markdown(
            "Folders of finished runs whose every line is in the database. Results stay; the engines' logs "
            "go, and a damaged database could no longer be made again from them."
        )
        sizes = {folder.run_id: folder.n_bytes for folder in found.removable}
        chosen = st.multiselect(
            "Folders",
            list(sizes),
            default=list(sizes),
            format_func=lambda run_id: f"{run_id} · {memory(sizes[run_id])}",
            key="liob_storage_chosen",
        )
        total = memory(sum(sizes[run_id] for run_id in chosen))
        is_sure = st.checkbox(
            f"Remove {len(chosen)} folder{'s' if len(chosen) != 1 else ''} for good ({literal(total)})",
            key="liob_storage_sure",
        )
        if st.button("Remove", type="primary", disabled=not (chosen and is_sure), key="liob_storage_remove"):
            try:
                st.session_state[_FREED] = storage.remove_run_folders(settings, chosen)
            except LiobError as error:
                show_error(error)
            else:
                st.rerun()
