"""A chart over which a reader can drag, and what follows from it."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from liob_core.charts.resources import BRUSH
from liob_core.ui.blocks import show_chart

Brushed = Callable[[tuple[float, float] | None], None]


def show_brushed(spec: dict[str, Any], *, key: str, on_brush: Brushed) -> None:
    """The chart; `on_brush` gets both ends of what was dragged over, None where the brush was taken away.

    A new `key` draws it without a brush.
    """

    def follow() -> None:
        on_brush(_ends(st.session_state.get(key)))

    show_chart(spec, key=key, on_select=follow, selection_mode=BRUSH)


def _ends(state: Any) -> tuple[float, float] | None:
    """The ends of the brush in Streamlit's record of a selection, in the axis' unit."""
    brush = state["selection"].get(BRUSH) if state else None
    ends = next(iter(brush.values()), None) if brush else None
    return (float(min(ends)), float(max(ends))) if ends else None
