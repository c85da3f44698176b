"""The part of a run's time that a picture shows: chosen by a slider or a brush, kept in the address."""

from functools import partial
from typing import cast

import streamlit as st

from liob_core.ui.brush import Brushed

Window = tuple[float, float]  # seconds since the run's start
SHORTEST_S = 0.2
_LONG_S = 600.0  # of a longer part, tenths of a second are noise
_SEEN = "liob_window_seen"
_PARAMETER = "window"


def window_key(run_id: str, ends: Window) -> str:
    """Under which the window of one part of one run is remembered, begun where nothing is remembered yet."""
    key = f"liob_window_{run_id}_{ends[0]:.1f}"
    if key not in st.session_state:
        # Once another part or run was looked at, the window in the address is not this one's.
        asked = None if _SEEN in st.session_state else _named(st.query_params.get(_PARAMETER, ""), ends)
        st.session_state[key] = asked or ends
    st.session_state[_SEEN] = True
    return key


def pick_window(key: str, ends: Window) -> Window:
    """The window chosen with a slider of two handles, where a brush is out of reach; at least 0.2 s."""
    chosen = st.slider(
        "Seconds shown, since the run's start",
        *ends,
        key=key,
        step=max(0.1, round((ends[1] - ends[0]) / 500, 1)),
        format="%.1f" if ends[1] - ends[0] < _LONG_S else "%.0f",
        help="The same as dragging over the picture.",
    )
    low, high = cast("Window", chosen)
    if high - low < SHORTEST_S:
        low, high = max(ends[0], min(low, ends[1] - SHORTEST_S)), min(ends[1], low + SHORTEST_S)
    if (low, high) != ends:
        st.query_params[_PARAMETER] = f"{low:.1f}-{high:.1f}"
    elif _PARAMETER in st.query_params:
        del st.query_params[_PARAMETER]
    return low, high


def following(key: str, ends: Window, unit_s: float) -> Brushed:
    """What follows from a brush whose ends are in units of `unit_s` seconds: it becomes the window."""
    return partial(_follow, key, ends, unit_s)


def show_way_back(key: str, ends: Window, window: Window) -> None:
    """A button that shows the whole part again, where less is shown."""
    if window != ends:
        st.button("Show all", icon=":material/zoom_out_map:", on_click=_set, args=(key, ends))


def _follow(key: str, ends: Window, unit_s: float, brushed: Window | None) -> None:
    if brushed is not None:
        low, high = (min(max(end * unit_s, ends[0]), ends[1]) for end in brushed)
        if high - low >= SHORTEST_S:
            _set(key, (low, high))


def _set(key: str, window: Window) -> None:
    st.session_state[key] = window


def _named(text: str, ends: Window) -> Window | None:
    """The window that an address names; None where it names none within `ends`."""
    try:
        low, high = (float(second) for second in text.split("-"))
    except ValueError:
        return None
    return (low, high) if ends[0] <= low < high <= ends[1] else None
