"""How big: what a variant took in memory, part by part, beside what was predicted."""

from typing import Any

import altair as alt
import pandas as pd

from liob_core.analysis import words
from liob_core.charts.theme import Caption, Ladder, Look, dressed, memory_scale, row_height

_LEGEND_HEIGHT = 30
PARTS = ("weights", "KV cache", "compute", "other")


def memory_bars(table: pd.DataFrame, parts: pd.DataFrame, look: Look, *, caption: Caption) -> Any:
    """Stacked bars of what was measured, with a tick at the predicted need.

    `parts` is `memory_parts`. An unknown part has no piece; a variant without a prediction has no tick.
    """
    ladder = Ladder.of(table, look)
    order = {part: index for index, part in enumerate(PARTS)}
    measured = parts[parts["kind"] == "measured"]
    divisor, unit = memory_scale(measured.groupby("variant")["bytes"].sum().astype(float).max())
    measured = measured.assign(
        size=measured["bytes"] / divisor,
        order=measured["part"].map(order),
        words=[words.memory(n_bytes) for n_bytes in measured["bytes"]],
    )
    needs = parts.drop_duplicates("variant").dropna(subset=["need_bytes"])
    needs = needs.assign(
        size=needs["need_bytes"] / divisor, words=[words.memory(n_bytes) for n_bytes in needs["need_bytes"]]
    )
    bars = (
        alt.Chart(measured[["variant", "part", "size", "order", "words", "source"]])
        .mark_bar(height=20, stroke=look.page, strokeWidth=1)
        .encode(
            y=ladder.y,
            x=alt.X("sum(size):Q", title=unit),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=list(PARTS), range=list(look.parts)),
                legend=alt.Legend(title=None),
            ),
            order="order:Q",
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("words:N", title="Memory"),
                alt.Tooltip("source:N", title="Source"),
            ],
        )
    )
    ticks = (
        alt.Chart(needs[["variant", "size", "words"]])
        .mark_tick(thickness=2.5, size=32, color=look.accent)
        .encode(
            y=ladder.y,
            x="size:Q",
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("words:N", title="Predicted"),
            ],
        )
    )
    title = "Memory at its peak"
    height = row_height(len(table)) + _LEGEND_HEIGHT
    return dressed([bars, ticks], look, height=height, title=title, caption=caption)
