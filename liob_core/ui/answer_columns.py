"""The answers to one prompt side by side, the reference first."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.charts.theme import Look, variant_colours
from liob_core.rendering.answer import body_html, head_html, text_of
from liob_core.rendering.opinion import opinion_notes, seed_note
from liob_core.rendering.table import Note
from liob_core.ui.text import as_html

Row = dict[Any, Any]
_MOST_COLUMNS = 4


def show_answers(
    answers: pd.DataFrame, look: Look, *, is_rendered: bool, notes: Mapping[str, Sequence[Note]]
) -> None:
    """One column a variant, at most four beside each other; `notes` stand on top, by variant."""
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
                st.html(head_html(row, colours[row["variant"]], notes.get(str(row["variant"]), ())))
                st.html(body_html(row, said, is_rendered=is_rendered))
                show_thinking(text_of(row["thinking"]))


def show_turns(turns: Sequence[tuple[str, str]]) -> None:
    """What was asked: each turn's role and text."""
    for role, text in turns:
        st.html(
            f'<div class="liob-turn"><span>{as_html(role)}</span>'
            f'<div class="liob-text">{as_html(text)}</div></div>'
        )


def show_thinking(thinking: str) -> None:
    """The thinking, folded; nothing where there is none."""
    if thinking.strip():
        with st.expander("Thinking", icon=":material/psychology:"):
            st.html(f'<div class="liob-text">{as_html(thinking)}</div>')


def answer_notes(
    answers: pd.DataFrame, opinions: pd.DataFrame, seeds: pd.DataFrame
) -> dict[str, tuple[Note, ...]]:
    """What judges and other seeds say of each variant's answer, by variant."""
    by_sample: dict[str, list[Row]] = {}
    for row in opinions.to_dict("records"):
        by_sample.setdefault(str(row["sample_id"]), []).append(row)
    of_seeds = {str(row["variant"]): row for row in seeds.to_dict("records")}
    notes: dict[str, tuple[Note, ...]] = {}
    for row in answers.to_dict("records"):
        variant = str(row["variant"])
        told = [note for one in by_sample.get(str(row["sample_id"]), []) for note in opinion_notes(one)]
        if variant in of_seeds:
            told.insert(0, seed_note(of_seeds[variant]))
        notes[variant] = tuple(told)
    return notes
