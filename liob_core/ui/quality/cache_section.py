"""What a compressed KV cache saves and costs, where a run has several types of it."""

from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.ui.pictures import draw, show_picture
from liob_core.ui.run_view import RunView
from liob_core.ui.table import Cell, Column, Note, show_table

_COLUMNS = (
    Column(label="Variant", is_number=False),
    Column(label="KV cache", hint="Predicted from the file for the context of the run"),
    Column(label="Saved", hint="Of the cache, against the same weights with the largest cache"),
    Column(label="KLD, nats", hint="KL divergence from the run's reference"),
    Column(label="Perplexity against the same weights"),
)


def show_caches(view: RunView) -> None:
    """Memory saved beside closeness lost; nothing where the run has one type of cache alone."""
    costs = view.frame("cache_costs")
    if costs.empty:
        return
    st.subheader("What a compressed KV cache saves and costs", anchor=False)
    (picture,) = draw(view, "caches")
    if picture["spec"]:
        show_picture(picture, file_stem=view.file_stem)
    rows = [_row(row) for row in costs.to_dict("records")]
    show_table(_COLUMNS, rows, caption="Memory saved and closeness lost per type of KV cache")
    n_ctx = costs["n_ctx"].iloc[0]
    st.caption(f"Cache memory is predicted for a context of {n_ctx:,.0f} tokens; it grows with the context.")


def _row(row: dict[Any, Any]) -> list[Cell]:
    is_base = row["variant"] == row["base"]
    share = "" if is_base else words.percent(row["saved_share"])
    divergence = "0" if row["is_reference"] else words.three_digits(row["kld_mean"])
    return [
        Cell(text=row["variant"], notes=(Note("reference"),) if row["is_reference"] else ()),
        Cell(text=words.memory(row["cache_bytes"]), notes=(Note(row["kv_type"]),)),
        Cell(text=words.UNKNOWN if is_base else words.memory(row["saved_bytes"]), notes=(Note(share),)),
        Cell(text=words.UNKNOWN if pd.isna(row["kld_mean"]) and not row["is_reference"] else divergence),
        Cell(text=row["words"]),
    ]
