"""Blocks that several pages show: empty states, headings, what is wrong with a run."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from liob_core.ui.nav import button_to
from liob_core.ui.text import as_html, literal

OWN_BENCHMARK = "Benchmark your own model"


def show_empty(what: str, next_step: str) -> None:
    """What is missing here, and the button that does the next thing."""
    with st.container(border=True):
        st.subheader(what)
        st.write(next_step)
        button_to("new", OWN_BENCHMARK, icon=":material/add_circle:", primary=True)


def show_heading(kicker: str, title: str) -> None:
    """A page's heading with the quiet line above it."""
    st.html(f'<div class="liob-kicker">{as_html(kicker)}</div>')
    # A number and its unit stay on one line.
    st.title(literal(title).replace(" %", "\u00a0%"), anchor=False)


def show_step(number: int, title: str, summary: str = "") -> None:
    """The heading of one step of a form, with what is chosen in it so far."""
    st.html(f'<div class="liob-step"><b>{number}</b> {as_html(title)} <span>{as_html(summary)}</span></div>')


def show_warnings(sentences: Sequence[str]) -> None:
    """What could make the numbers wrong, one line each; nothing where there is nothing."""
    for sentence in sentences:
        st.markdown(f":material/warning: {literal(sentence)}")


def as_spec(chart: Any, *, alt_text: str) -> dict[str, Any]:
    """What `show_chart` shows: the chart with words for people who cannot see it, its data as Arrow tables.

    Building and checking a chart is what costs; a specification can be kept and sent for little.
    """
    spec: dict[str, Any] = {**chart.to_dict(), "description": alt_text}
    tables = {name: pa.Table.from_pylist(rows) for name, rows in spec.get("datasets", {}).items()}
    return {**spec, "datasets": tables}


def show_chart(spec: dict[str, Any], **selecting: Any) -> None:
    """A chart in LIOB's own look; `selecting` says how Streamlit lets a reader select in it."""
    st.vega_lite_chart(spec, theme=None, width="stretch", **selecting)


def show_unknown(title: str, reason: str) -> None:
    """Stands where a chart would, when there is nothing to draw: what is unknown, and why."""
    with st.container(border=True):
        st.markdown(f"**{literal(title)}**")
        st.caption(f"— {literal(reason)}")
