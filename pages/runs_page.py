"""Runs: what has been measured, and what changed between two of them?"""

from collections.abc import Hashable
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.config import Settings, load_settings
from liob_core.store.kinds import OWN as OWN_KIND
from liob_core.store.kinds import STUDY
from liob_core.ui import reads, selection
from liob_core.ui.blocks import show_heading
from liob_core.ui.nav import button_to
from liob_core.ui.run_comparison import show_comparison
from liob_core.ui.run_edits import show_deleted, show_edits, show_said, show_undo
from liob_core.ui.run_view import RunView, open_run
from liob_core.ui.source import OWN, SAMPLE

_TABLE_HEIGHT = 320
_KINDS = {OWN_KIND: "LIOB", STUDY: "original study"}


def show() -> None:
    """The history, one run's title and note, and its comparison with another."""
    settings = load_settings()
    show_said()
    show_undo(settings)
    view = open_run("What has been measured?")
    if view is not None:
        _show_runs(view, settings)
    if settings.database.exists():
        runs = reads.frame("history", settings.database)
        show_deleted(runs[runs["deleted_utc"].notna()], settings)


def _show_runs(view: RunView, settings: Settings) -> None:
    runs = reads.frame("history", view.database)
    runs = runs[runs["deleted_utc"].isna()]
    n = len(runs)
    show_heading(f"{n} run{'s' if n != 1 else ''}, newest first", "What has been measured?")
    _show_history(runs)
    run = next(row for row in runs.to_dict("records") if row["run_id"] == view.run_id)
    st.subheader("The run chosen in the sidebar" if n > 1 else "This run", anchor=False)
    st.caption(f"{view.kicker} · run {view.run_id}")
    source = OWN if view.database == settings.database else SAMPLE
    button_to("results", "See results", icon=":material/speed:", source=source, run=view.run_id)
    if view.is_sample:
        st.caption("Sample results cannot be renamed or deleted; your own runs can.")
    else:
        show_edits(run, settings)
    st.subheader("Compare with another run", anchor=False)
    _show_comparison(view, runs)


def _show_history(runs: pd.DataFrame) -> None:
    shown = runs[
        [
            "title",
            "state",
            "created_utc",
            "model_name",
            "variants",
            "tasks",
            "n_samples",
            "cpu_name",
            "kind",
            "note",
            "run_id",
        ]
    ].assign(kind=runs["kind"].map(_KINDS))
    shown = shown.fillna({"model_name": words.UNKNOWN, "cpu_name": words.UNKNOWN, "note": ""})
    st.dataframe(
        shown,
        hide_index=True,
        height=min(_TABLE_HEIGHT, 38 + 35 * len(shown)),
        column_config={
            "title": st.column_config.TextColumn("Run", width="medium"),
            "state": "State",
            "created_utc": st.column_config.DatetimeColumn("Started (UTC)", format="YYYY-MM-DD HH:mm"),
            "model_name": "Model",
            "variants": "Variants",
            "tasks": "Tasks",
            "n_samples": st.column_config.NumberColumn("Requests", format="localized"),
            "cpu_name": "Machine",
            "kind": st.column_config.TextColumn(
                "Measured by", help="Runs of others come in on the Data page"
            ),
            "note": "Note",
            "run_id": "Id",
        },
    )


def _show_comparison(view: RunView, runs: pd.DataFrame) -> None:
    names = {str(row["run_id"]): _name(row) for row in runs.to_dict("records")}
    others = {run_id: name for run_id, name in names.items() if run_id != view.run_id}
    if not others:
        st.markdown("There is one run so far. Measure again, or on another machine, to see what changes.")
        return
    other = selection.pick("with", "Compare with", others)
    # The older run is the one that is changed from.
    before, after = sorted((view.run_id, other), key=lambda run_id: list(names).index(run_id), reverse=True)
    found = reads.comparison(view.database, before, after)
    show_comparison(found, names[before], names[after])


def _name(run: dict[Hashable, Any]) -> str:
    """A run's title and when it was measured, where that is known."""
    title = str(run["title"] or run["run_id"])
    started = run["created_utc"]
    return f"{title} · {pd.Timestamp(started):%d %b %Y %H:%M}" if pd.notna(started) else title
