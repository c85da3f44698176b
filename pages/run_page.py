"""Run: what is it doing now, and how long will it take?"""

import streamlit as st

from liob_core.bench import jobs
from liob_core.bench.status import RunStatus
from liob_core.config import load_settings
from liob_core.store.journal import read_spec
from liob_core.ui import selection
from liob_core.ui.blocks import show_empty, show_heading
from liob_core.ui.live import show_live


def show() -> None:
    """The run that is at work, or the one chosen."""
    settings = load_settings()
    runs = jobs.list_runs(settings)
    if not runs:
        show_heading("Run", "Nothing has been run here yet")
        show_empty("Start a first run", "Its progress, the answer being written and its speed appear here.")
        return
    chosen = _pick(runs)
    labels = [variant.label for variant in read_spec(jobs.find_run(chosen.run_id, settings)).variants]
    show_live(chosen, labels, settings)


def _pick(runs: list[RunStatus]) -> RunStatus:
    """The run in the address; without one the run at work, else the newest."""
    by_id = {run.run_id: run for run in runs}
    live = next((run.run_id for run in runs if run.is_live), None)
    if live is not None and "run" not in st.query_params:
        # What was read on another page must not hide the run that is at work.
        st.query_params["run"] = live
    if len(runs) == 1:
        selection.put("run", runs[0].run_id)
        return runs[0]
    with st.sidebar:
        return by_id[selection.pick("run", "Run", {run_id: _name(run) for run_id, run in by_id.items()})]


def _name(run: RunStatus) -> str:
    return f"{run.title} · {run.state}"
