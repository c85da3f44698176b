"""Resources: what did the machine do?"""

import pandas as pd
import streamlit as st

from liob_core.analysis.resources import Extent
from liob_core.charts import resources
from liob_core.charts.pictures import Picture
from liob_core.ui import reads, selection, time_window
from liob_core.ui.blocks import show_heading, show_unknown
from liob_core.ui.brush import show_brushed
from liob_core.ui.pictures import show_downloads
from liob_core.ui.run_view import RunView, open_run
from liob_core.ui.style import current_look
from liob_core.ui.text import literal

_TITLE = "Memory, processor and devices over time"
_WHOLE = "whole"
_NAMES = {"gpu": "graphics devices"}


def show() -> None:
    """Memory, processor, devices and power over time, with the requests below."""
    view = open_run("What did the machine do?")
    if view is None:
        return
    show_heading(view.kicker, "What did the machine do?")
    extent = reads.extent(view.database, view.run_id)
    if extent is None or not extent.n_readings:
        show_unknown(_TITLE, "the monitor stored no reading of this run")
        return
    _show_timeline(view, extent)
    _show_sources(extent)


def _show_timeline(view: RunView, extent: Extent) -> None:
    """The part to show, the picture, and the slider that does what a brush does."""
    ends = _pick_part(view, extent)
    key = time_window.window_key(view.run_id, ends)
    drawn = st.container()
    window = time_window.pick_window(key, ends)
    picture = _picture(view, extent, window)
    with drawn:
        show_brushed(
            picture.chart,
            alt_text=picture.alt_text,
            key=f"liob_timeline_{view.run_id}_{window[0]:.1f}_{window[1]:.1f}",
            on_brush=time_window.following(key, ends, resources.time_scale(window[1] - window[0])[0]),
        )
        with st.container(horizontal=True):
            show_downloads(picture, file_stem=f"liob-{view.run_id}")
            time_window.show_way_back(key, ends, window)


def _pick_part(view: RunView, extent: Extent) -> time_window.Window:
    """The first and last second of what can be shown: the whole run, or one load of it."""
    loads = {str(row["load_id"]): row for row in view.frame("resource_parts").to_dict("records")}
    names = {_WHOLE: "The whole run"}
    names |= {
        load_id: f"{row['variant']}, load {place} (block {int(row['block']) + 1})"
        for place, (load_id, row) in enumerate(loads.items(), start=1)
    }
    chosen = selection.pick("part", "Part of the run", names)
    if chosen == _WHOLE:
        return 0.0, max(time_window.SHORTEST_S, extent.seconds)
    row = loads[chosen]
    first, last = ((row[name] - extent.start_ns) / 1e9 for name in ("start_ns", "end_ns"))
    return first, max(first + time_window.SHORTEST_S, last)


def _picture(view: RunView, extent: Extent, window: time_window.Window) -> Picture:
    moments = [extent.start_ns + round(second * 1e9) for second in window]
    lines = view.frame("resource_lines", *moments, extent.start_ns)
    ladder = view.frame("results").sort_values("bpw", ascending=False, kind="stable", na_position="last")
    chart = resources.timeline(
        lines,
        view.frame("resource_requests", *moments, extent.start_ns),
        current_look(),
        window_s=window,
        labels=[str(label) for label in ladder["variant"]],
        reference=next((str(row.variant) for row in ladder.itertuples() if row.is_reference), None),
        caption=view.caption(_resolution(lines), "Grey: nothing was read. Drag to see a part closer"),
    )
    alt_text = "Memory, processor and devices over time above the requests of each variant"
    return Picture(name="resources", title=_TITLE, alt_text=alt_text, data=lines, chart=chart)


def _resolution(lines: pd.DataFrame) -> str:
    """What a point of the lines stands for."""
    n = int(lines["n"].max()) if len(lines) else 0
    if n <= 1:
        return "Each point is one reading"
    return f"A point is the mean of up to {n:,} readings; bands: extremes"


def _show_sources(extent: Extent) -> None:
    """What was not read, and why: a lane that is missing is told, not left out in silence."""
    with st.expander("What was not read, and why", icon=":material/sensors_off:"):
        if not extent.missing:
            st.markdown("Every source that LIOB knows gave readings.")
        for source, reason in extent.missing.items():
            name = _NAMES.get(source, source.replace("_", " "))
            st.markdown(f"- **{literal(name)}**: {literal(reason)}")
        st.caption(f"{extent.n_readings:,} readings of the machine and {extent.n_gpu_readings:,} of devices.")
