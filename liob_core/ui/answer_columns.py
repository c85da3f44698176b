"""The answers to one prompt side by side, the reference first."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.charts.theme import Look, variant_colours
from liob_core.ui.difference import marked_html
from liob_core.ui.text import as_html, markdown_html

Row = dict[Any, Any]
_MOST_COLUMNS = 4
_CHECKS = {
    "pass": ("better", "✓ passed"),
    "fail": ("worse", "✗ failed"),
    "unchecked": ("same", "○ not checked"),
}
_USABLE = {"ok", "length"}


def show_answers(answers: pd.DataFrame, look: Look, *, is_rendered: bool) -> None:
    """One column a variant, at most four beside each other."""
    rows: Sequence[Row] = answers.to_dict("records")
    ladder = answers.sort_values("bpw", ascending=False, kind="stable", na_position="last")
    reference = next((row for row in rows if row["is_reference"]), None)
    name = str(reference["variant"]) if reference else None
    colours = variant_colours([str(label) for label in ladder["variant"]], name, look)
    said = _text(reference["response"]) if reference else ""
    for start in range(0, len(rows), _MOST_COLUMNS):
        part = rows[start : start + _MOST_COLUMNS]
        for column, row in zip(st.columns(len(part), gap="medium"), part, strict=True):
            with column:
                _show_answer(row, colours[row["variant"]], said, is_rendered=is_rendered)


def _show_answer(row: Row, colour: str, reference: str, *, is_rendered: bool) -> None:
    shape = "swatch diamond" if row["is_reference"] else "swatch"
    bits: str = "" if pd.isna(row["bpw"]) else f"{row['bpw']:.2f} bits"
    role = "reference" if row["is_reference"] else _likeness(row)
    st.html(
        f'<div class="liob-answer"><div class="name"><i class="{shape}" style="background:{colour}"></i>'
        f"{as_html(row['variant'])} <span>{as_html(bits)}</span></div>"
        f'<div class="note">{as_html(role)}</div>{_check_html(row)}'
        f'<div class="note">{as_html(_cost(row))}</div></div>'
    )
    text = _text(row["response"])
    if is_rendered:
        body = markdown_html(text)
    elif row["is_reference"] or not reference:
        body = as_html(text)
    else:
        body = marked_html(text, reference)
    kind = "liob-text rendered" if is_rendered else "liob-text"
    st.html(f'<div class="{kind}">{body or "<em>no text</em>"}</div>')
    thinking = _text(row["thinking"])
    if thinking.strip():
        with st.expander("Thinking", icon=":material/psychology:"):
            st.html(f'<div class="liob-text">{as_html(thinking)}</div>')


def _likeness(row: Row) -> str:
    if pd.isna(row["same_text"]):
        return ""
    return "the same text as the reference" if row["same_text"] else "differs from the reference"


def _check_html(row: Row) -> str:
    """The check's result and why, or how the answer ended where it is not usable."""
    lines = []
    outcome = _text(row["outcome"])
    if not outcome:
        lines.append('<div class="liob-unknown">— no answer was recorded</div>')
    elif outcome not in _USABLE:
        why = _text(row["reason"])
        lines.append(
            f'<div class="liob-worse">▼ {as_html(outcome)}{as_html(": " + why) if why else ""}</div>'
        )
    elif outcome == "length":
        lines.append('<div class="liob-same">○ cut off at the token limit</div>')
    known = _CHECKS.get(_text(row["check_result"]))
    if known:
        look, shown = known
        why = as_html(_text(row["check_reason"]))
        lines.append(f'<div class="liob-{look}" title="{why}">{shown}</div><div class="note">{why}</div>')
    return "".join(lines)


def _cost(row: Row) -> str:
    parts: list[str] = []
    if not pd.isna(row["output_tokens"]):
        parts.append(f"{row['output_tokens']:.0f} tokens")
    parts += [
        words.value(metric, row[metric]) for metric in ("e2e_ms", "decode_tps") if not pd.isna(row[metric])
    ]
    return " · ".join(parts)


def _text(value: object) -> str:
    """A text column's value; NULL is empty."""
    return value if isinstance(value, str) else ""
