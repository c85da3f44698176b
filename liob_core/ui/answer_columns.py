"""The answers to one prompt side by side, the reference first."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.charts.theme import Look, variant_colours
from liob_core.rendering.answer import body_html, head_html, text_of
from liob_core.ui.text import as_html

Row = dict[Any, Any]
_MOST_COLUMNS = 4


def show_answers(answers: pd.DataFrame, look: Look, *, is_rendered: bool) -> None:
    """One column a variant, at most four beside each other."""
    rows: Sequence[Row] = answers.to_dict("records")
    ladder = answers.sort_values("bpw", ascending=False, kind="stable", na_position="last")
    reference = next((row for row in rows if row["is_reference"]), None)
    name = str(reference["variant"]) if reference else None
    colours = variant_colours([str(label) for label in ladder["variant"]], name, look)
    said = text_of(reference["response"]) if reference else ""
    for start in range(0, len(rows), _MOST_COLUMNS):
        part = rows[start : start + _MOST_COLUMNS]
        for column, row in zip(st.columns(len(part), gap="medium"), part, strict=True):
            with column:
                _show_answer(row, colours[row["variant"]], said, is_rendered=is_rendered)


def _show_answer(row: Row, colour: str, reference: str, *, is_rendered: bool) -> None:
    st.html(head_html(row, colour))
    st.html(body_html(row, reference, is_rendered=is_rendered))
    thinking = text_of(row["thinking"])
    if thinking.strip():
        with st.expander("Thinking", icon=":material/psychology:"):
            st.html(f'<div class="liob-text">{as_html(thinking)}</div>')
