"""Resources: what did the machine do?"""

import streamlit as st

from liob_core.analysis.resources import Extent
from liob_core.charts.resources import time_scale
from liob_core.ui import reads, selection, time_window
from liob_core.ui.blocks import show_heading, show_unknown
from liob_core.ui.brush import show_brushed
from liob_core.ui.pictures import draw, show_downloads
from liob_core.ui.run_pictures import TIMELINE
from liob_core.ui.run_view import RunView, open_run
from liob_core.ui.text import literal

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
        show_unknown(TIMELINE, "the monitor stored no reading of this run")
        return
    _show_timeline(view, extent)
    _show_sources(extent)


def _show_timeline(view: RunView, extent: Extent) -> None:
    """The part to show, the picture, and the slider that does what a brush does."""
    ends = _pick_part(view, extent)
    key = time_window.window_key(view.run_id, ends)
    drawn = st.container()
    window = time_window.pick_window(key, ends)
    (picture,) = draw(view, "timeline", extent.start_ns, window)
    with drawn:
        show_brushed(
            picture["spec"],
            key=f"liob_timeline_{view.run_id}_{window[0]:.1f}_{window[1]:.1f}",
            on_brush=time_window.following(key, ends, time_scale(window[1] - window[0])[0]),
        )
        with st.container(horizontal=True):
            show_downloads(picture, file_stem=view.file_stem)
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


def _show_sources(extent: Extent) -> None:
    """What was not read, and why: a lane that is missing is told, not left out in silence."""
    with st.expander("What was not read, and why", icon=":material/sensors_off:"):
        if not extent.missing:
            st.markdown("Every source that LIOB knows gave readings.")
        for source, reason in extent.missing.items():
            name = _NAMES.get(source, source.replace("_", " "))
            st.markdown(f"- **{literal(name)}**: {literal(reason)}")
        st.caption(f"{extent.n_readings:,} readings of the machine and {extent.n_gpu_readings:,} of devices.")
