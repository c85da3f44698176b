"""A run as it happens, read from its status file alone."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from liob_core.analysis import words
from liob_core.bench import jobs
from liob_core.bench.estimate import spell_duration
from liob_core.bench.status import Progress, RunStatus
from liob_core.charts.live import sparkline
from liob_core.config import Settings
from liob_core.errors import UsageError
from liob_core.ui.blocks import as_spec, show_chart, show_heading
from liob_core.ui.guard import guarded
from liob_core.ui.nav import button_to, open_page
from liob_core.ui.style import current_look
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import as_html, literal, visible

REFRESH_S = 1
_LONGEST_HISTORY = 300
_LOG_BYTES = 8_000

_STATES = {
    "starting": "Starting",
    "running": "Running",
    "finished": "Finished",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "orphaned": "Interrupted",
}
_TASKS = {"speed": "Speed", "suite": "Suite", "closeness": "Closeness"}


def show_live(status: RunStatus, labels: Sequence[str], settings: Settings) -> None:
    """The run of `status`, refreshed each second while its worker is at it."""
    refresh = st.fragment(guarded(_show), run_every=REFRESH_S if status.is_live else None)
    refresh(status.run_id, labels, settings, status.is_live)


def _show(run_id: str, labels: Sequence[str], settings: Settings, was_live: bool) -> None:
    status = jobs.read_status(run_id, settings)
    if was_live and not status.is_live:
        st.rerun()  # the whole page: it stops refreshing and offers what comes next
    is_cancelling = status.is_live and jobs.is_cancelling(run_id, settings)
    show_heading(status.title, _headline(status, is_cancelling=is_cancelling))
    _show_progress(status)
    _show_buttons(status, settings, is_cancelling=is_cancelling)
    if status.per_cell:
        _show_grid(status, labels)
    if status.is_live:
        _show_now(status)
    with st.expander("Log", icon=":material/terminal:"):
        st.code(visible(_log_tail(run_id, settings)) or "Nothing yet.", language=None, wrap_lines=True)


def _headline(status: RunStatus, *, is_cancelling: bool) -> str:
    state = "Cancelling" if is_cancelling else _STATES.get(status.state, status.state)
    if not status.n_cells:
        return state
    if status.state == "finished":
        return f"Finished: {status.n_done} {_units(status)}"
    after = "" if status.is_live else "after "
    done = f"{after}{status.n_done} of {status.n_cells} {_units(status)}"
    return f"{state}{':' if status.is_live else ''} {done}"


def _units(status: RunStatus) -> str:
    """What is counted: requests, windows of text, or both."""
    are_windows = {key.endswith("|closeness") for key in status.per_cell}
    if are_windows == {True}:
        return "windows"
    return "requests and windows" if True in are_windows else "requests"


def _show_progress(status: RunStatus) -> None:
    if status.is_live:
        share = min(1.0, status.n_done / status.n_cells) if status.n_cells else 0.0
        st.progress(share, text=literal(_doing(status)))
    elif status.reason:
        show = st.error if status.state == "failed" else st.info
        show(literal(status.reason), icon=":material/info:")
    if status.n_failed:
        st.markdown(
            f":material/warning: {status.n_failed} of {status.n_done} {_units(status)} failed. They are "
            "counted beside the speed figures, never inside them."
        )


def _doing(status: RunStatus) -> str:
    """What the worker does now and how long it has to go."""
    task = (status.current_task or "").lower()
    now = " · ".join(part for part in (status.current_variant, task, status.current_prompt) if part)
    left = f"about {spell_duration(status.eta_s)} left" if status.eta_s is not None else ""
    return " · ".join(part for part in (left, status.activity, now) if part) or "The worker is starting"


def _cancel(run_id: str, settings: Settings) -> None:
    with suppress(UsageError):  # it may have ended just now
        jobs.cancel(run_id, settings)
        st.toast("Cancelling; every finished request is kept.")


def _show_buttons(status: RunStatus, settings: Settings, *, is_cancelling: bool) -> None:
    with st.container(horizontal=True):
        if status.is_live:
            st.button(
                "Cancel",
                icon=":material/stop_circle:",
                key="liob_cancel",
                disabled=is_cancelling,
                on_click=_cancel,
                args=(status.run_id, settings),
            )
            return
        if status.n_done:
            button_to("results", "See results", icon=":material/speed:", primary=True, **_own(status))
        if status.state != "finished" and st.button(
            "Resume", icon=":material/resume:", key="liob_resume", type="secondary"
        ):
            jobs.resume(status.run_id, settings)
            open_page("run", run=status.run_id)
        button_to("new", "New benchmark", icon=":material/add_circle:")


def _own(status: RunStatus) -> dict[str, str]:
    return {"source": "own", "run": status.run_id}


def _show_grid(status: RunStatus, labels: Sequence[str]) -> None:
    tasks = [task for task in _TASKS if any(key.endswith(f"|{task}") for key in status.per_cell)]
    columns = [Column(label="Variant", is_number=False)]
    columns += [Column(label=_TASKS[task], hint=f"{_units(status)} done of those planned") for task in tasks]
    rows = []
    for label in labels:
        cells = [_grid_cell(status.per_cell.get(f"{label}|{task}")) for task in tasks]
        rows.append([Cell(text=label, notes=_is_now(status, label)), *cells])
    show_table(columns, rows, caption="Requests done per variant and task")


def _is_now(status: RunStatus, label: str) -> tuple[Note, ...]:
    return (Note("now"),) if status.is_live and status.current_variant == label else ()


def _grid_cell(progress: Progress | None) -> Cell:
    if progress is None:
        return Cell(text="—", hint="not planned")
    failed = (Note(f"{progress.failed} failed"),) if progress.failed else ()
    share = progress.done / progress.total if progress.total else 0.0
    bad = progress.failed / progress.total if progress.total else 0.0
    return Cell(text=f"{progress.done} / {progress.total}", notes=failed, bar=(share - bad, bad))


def _show_now(status: RunStatus) -> None:
    look = current_look()
    rates = _remember("rate", status.run_id, status.decode_tps_live)
    rss = _remember("rss", status.run_id, _gib(status.rss_bytes))
    text, lines = st.columns([3, 2], gap="large")
    with text:
        st.caption("Being written")
        written = as_html(status.text_tail) or f"<em>{as_html(status.activity or 'reading the prompt')}</em>"
        st.html(f'<div class="liob-text liob-writing">{written}</div>')
    with lines:
        rate = words.value("decode_tps", status.decode_tps_live)
        line = sparkline(rates, look, title="Decode rate", latest=rate)
        show_chart(as_spec(line, alt_text=f"Decode rate, {rate}"))
        used = words.memory(status.rss_bytes)
        line = sparkline(rss, look, title="Engine memory", latest=used)
        show_chart(as_spec(line, alt_text=f"Memory, {used}"))


def _gib(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else n_bytes / 2**30


def _remember(name: str, run_id: str, value: float | None) -> list[float | None]:
    """The values seen since this page was opened, newest last."""
    history: list[float | None] = st.session_state.setdefault(f"liob_live_{name}_{run_id}", [])
    history.append(value)
    del history[:-_LONGEST_HISTORY]
    return history


def _log_tail(run_id: str, settings: Settings) -> str:
    path = jobs.find_run(run_id, settings) / jobs.WORKER_LOG
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_BYTES))
            return log.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
