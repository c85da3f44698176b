"""What a judge said of each variant: mean scores with their intervals, or wins, ties and losses."""

from typing import Any

import altair as alt
import pandas as pd

from liob_core.charts.theme import Caption, Ladder, Look, dressed, row_height
from liob_core.quality.judge.rubric import HIGHEST_SCORE, LOWEST_SCORE

_RESULTS = {"n_wins": "win", "n_ties": "tie", "n_losses": "loss"}


def score_dots(table: pd.DataFrame, look: Look, *, caption: Caption) -> Any:
    """Mean scores from 1 to 10 with 95 % interval lines; `table` is `judged.scores`."""
    known = table[table["mean_score"].notna()]
    frame = pd.DataFrame(
        {
            "variant": known["variant"],
            "mean": known["mean_score"].astype(float),
            "low": known["ci_low"].astype(float).clip(lower=LOWEST_SCORE),
            "high": known["ci_high"].astype(float).clip(upper=HIGHEST_SCORE),
            "n": known["n_scored"],
        }
    )
    ladder = Ladder.of(table, look)
    scale = alt.Scale(domain=[LOWEST_SCORE, HIGHEST_SCORE], nice=False)
    title = f"Mean score, {LOWEST_SCORE} to {HIGHEST_SCORE}"
    axis = alt.Axis(values=list(range(LOWEST_SCORE, HIGHEST_SCORE + 1)), format="d")
    x = alt.X("mean:Q", title=title, scale=scale, axis=axis)
    lines = alt.Chart(frame.dropna(subset=["low", "high"])).mark_rule(strokeWidth=3, opacity=0.55)
    points = alt.Chart(frame).mark_point(filled=True, opacity=1, size=150, stroke=look.page, strokeWidth=1)
    layers = [
        lines.encode(
            x=alt.X("low:Q", title=title, scale=scale, axis=axis),
            x2="high:Q",
            y=ladder.y,
            color=ladder.colour,
        ),
        points.encode(
            x=x,
            y=ladder.y,
            color=ladder.colour,
            shape=ladder.shape,
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("mean:Q", title="Mean score", format=".2f"),
                alt.Tooltip("n:Q", title="n, answers scored"),
            ],
        ),
    ]
    return dressed(layers, look, height=row_height(len(table)), title="Mean judge score", caption=caption)


def result_bars(table: pd.DataFrame, look: Look, *, caption: Caption) -> Any:
    """Wins, ties and losses against the reference as one bar a variant; `table` is `judged.pairs`."""
    long = table.melt(
        id_vars=["variant"], value_vars=list(_RESULTS), var_name="column", value_name="n"
    ).assign(
        result=lambda frame: frame["column"].map(_RESULTS), place=lambda frame: frame["column"].map(_place)
    )
    long = long[long["n"] > 0]
    ladder = Ladder.of(table, look)
    names = list(_RESULTS.values())
    x = alt.X("n:Q", title="Pairs of answers", stack="zero", axis=alt.Axis(format="d", tickMinStep=1))
    bars = alt.Chart(long).encode(x=x, y=ladder.y, order=alt.Order("place:Q"))
    layers = [
        bars.mark_bar(height=24, stroke=look.page).encode(
            color=alt.Color(
                "result:N",
                scale=alt.Scale(domain=names, range=[look.better, look.parts[-1], look.worse]),
                legend=alt.Legend(title=None),
            ),
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("result:N", title="Against the reference"),
                alt.Tooltip("n:Q", title="Pairs"),
            ],
        ),
    ]
    return dressed(
        layers, look, height=row_height(len(table)), title="Pairs against the reference", caption=caption
    )


def _place(column: str) -> int:
    return list(_RESULTS).index(column)
