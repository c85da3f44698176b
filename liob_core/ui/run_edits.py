"""Renaming, annotating, deleting and restoring a run; a child stores it, for this process only reads."""

from typing import Any

import pandas as pd
import streamlit as st

from liob_core.bench import jobs
from liob_core.bench.edit_run import edit_in_child
from liob_core.config import Settings
from liob_core.errors import LiobError, MissingError
from liob_core.store.edits import LONGEST_NOTE, LONGEST_TITLE, Edit
from liob_core.ui.guard import show_error
from liob_core.ui.text import literal

_SAID = "liob_runs_said"
_DELETED = "liob_runs_deleted"


def show_said() -> None:
    """What the last change came to, and the way back after a deletion."""
    said = st.session_state.pop(_SAID, None)
    if said:
        st.toast(literal(said))


def show_undo(settings: Settings) -> None:
    """A line with a button that takes the last deletion back, until something else is done."""
    deleted = st.session_state.get(_DELETED)
    if not deleted:
        return
    run_id, title = deleted
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"Deleted: {literal(title)}")
        if st.button("Undo", icon=":material/undo:", key="liob_runs_undo"):
            _store(settings, Edit(run_id=run_id, action="restore"), said=f"Restored: {title}")


def show_edits(run: dict[Any, Any], settings: Settings) -> None:
    """The fields for a run's title and note, and the button that deletes it."""
    run_id, title = str(run["run_id"]), str(run["title"] or run["run_id"])
    note = run["note"] if isinstance(run["note"], str) else ""
    with st.form(f"liob_runs_form_{run_id}", border=False):
        wanted = st.text_input("Title", title, max_chars=LONGEST_TITLE)
        noted = st.text_area(
            "Note", note, max_chars=LONGEST_NOTE, placeholder="What to remember about this run"
        )
        if st.form_submit_button("Save", icon=":material/save:"):
            edits = []
            if wanted.strip() != title:
                edits.append(Edit(run_id=run_id, action="rename", text=wanted))
            if noted.strip() != note:
                edits.append(Edit(run_id=run_id, action="annotate", text=noted))
            if edits:
                _store(settings, *edits, said="Saved.")
    is_live = _is_live(run_id, settings)
    if st.button(
        "Delete run",
        icon=":material/delete:",
        key=f"liob_runs_delete_{run_id}",
        disabled=is_live,
        help="A run at work cannot be deleted; cancel it first."
        if is_live
        else "Hides it everywhere. Its samples and its folder are kept, so it can be restored.",
    ):
        st.session_state[_DELETED] = (run_id, title)
        _store(settings, Edit(run_id=run_id, action="delete"), said=f"Deleted: {title}")


def show_deleted(runs: pd.DataFrame, settings: Settings) -> None:
    """The deleted runs, each with a button that restores it; nothing where there is none."""
    if runs.empty:
        return
    with st.expander(f"Deleted runs ({len(runs)})", icon=":material/delete:"):
        for run in runs.head(50).to_dict("records"):
            name = str(run["title"] or run["run_id"])
            with st.container(horizontal=True, vertical_alignment="center"):
                started = run["created_utc"]
                when = f" · {pd.Timestamp(started):%d %b %Y %H:%M}" if pd.notna(started) else ""
                st.markdown(f"{literal(name)}{when}")
                if st.button("Restore", icon=":material/undo:", key=f"liob_runs_restore_{run['run_id']}"):
                    edit = Edit(run_id=str(run["run_id"]), action="restore")
                    _store(settings, edit, said=f"Restored: {name}")


def _store(settings: Settings, *edits: Edit, said: str) -> None:
    """Store the edits and draw the page anew; a refusal is a sentence."""
    try:
        for edit in edits:
            edit_in_child(settings, edit)
    except LiobError as error:
        if edits[-1].action == "delete":
            st.session_state.pop(_DELETED, None)
        show_error(error)
        return
    if edits[-1].action != "delete":
        st.session_state.pop(_DELETED, None)
    st.session_state[_SAID] = said
    st.rerun()


def _is_live(run_id: str, settings: Settings) -> bool:
    try:
        return jobs.read_status(run_id, settings).is_live
    except MissingError:  # its folder was removed, or it came from another machine
        return False
