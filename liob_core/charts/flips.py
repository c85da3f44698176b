"""Flips against the reference, both ways, over the band in which the reference flips against itself."""

from typing import Any

import altair as alt
import pandas as pd

from liob_core.charts.theme import Caption, Ladder, Look, dressed, row_height


def flip_bars(table: pd.DataFrame, noise_flips: float | None, look: Look, *, caption: Caption) -> Any:
    """Bars of prompts lost (to the left) and gained (to the right), one row a variant.

    `table` is `flip_table`; with several seeds the bars are means over pairs of answers, as `noise_flips` is.
    """
    bars = flip_counts(table, is_mean=noise_flips is not None)
    ladder = Ladder.of(table, look)
    furthest = max([1.0, float(bars["flips"].abs().max()), (noise_flips or 0.0) / 2])
    scale = alt.Scale(domain=[-furthest * 1.4, furthest * 1.4], nice=False)
    axis = alt.Axis(labelExpr="abs(datum.value)", tickMinStep=1, format="d")
    x = alt.X("flips:Q", title="Prompts lost to the left, gained to the right", scale=scale, axis=axis)
    base = alt.Chart(bars).encode(x=x, y=ladder.y)
    zero = alt.Chart(pd.DataFrame({"flips": [0.0]})).mark_rule(color=look.muted).encode(x=x)
    layers = [
        base.mark_bar(height=18).encode(
            color=ladder.colour,
            opacity=alt.Opacity(
                "direction:N", scale=alt.Scale(domain=["lost", "gained"], range=[0.55, 1.0]), legend=None
            ),
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("words:N", title="Prompts"),
                alt.Tooltip("prompts:N", title="Which, on the graded answer"),
            ],
        ),
        *(
            base.transform_filter(alt.datum.direction == direction)
            .mark_text(align=align, dx=dx, fontSize=12)
            .encode(text="words:N", color=alt.value(look.ink))
            for direction, align, dx in (("lost", "right", -5), ("gained", "left", 5))
        ),
        zero,
    ]
    if noise_flips is not None:
        layers.insert(0, _band(noise_flips, x, look))
    title = "Flips against the reference"
    return dressed(layers, look, height=row_height(len(table)), title=title, caption=caption)


def flip_counts(table: pd.DataFrame, *, is_mean: bool) -> pd.DataFrame:
    """What the bars draw: variant, direction, flips (prompts, negative where lost), words, prompts."""
    rows = []
    for row in table.to_dict("records"):
        for direction, sign in (("lost", -1), ("gained", 1)):
            count = row[f"mean_{direction}"] if is_mean else row[f"n_{direction}"]
            if pd.isna(count):
                continue
            shown = f"{count:.1f} {direction}" if is_mean else f"{count:.0f} {direction}"
            prompts = row[f"{direction}_prompts"]
            rows.append((row["variant"], direction, sign * float(count), shown, prompts))
    return pd.DataFrame(rows, columns=["variant", "direction", "flips", "words", "prompts"])


def _band(noise_flips: float, x: Any, look: Look) -> Any:
    """Where flips are no more than the reference's own: half of them go either way."""
    ends = pd.DataFrame({"flips": [-noise_flips / 2], "end": [noise_flips / 2]})
    return alt.Chart(ends).mark_rect(color=look.same, opacity=0.18).encode(x=x, x2="end:Q")
