"""What a variant costs against what it keeps, with the front of those that nothing beats on both."""

from typing import Any

import altair as alt
import pandas as pd

from liob_core.analysis import words
from liob_core.charts.theme import Caption, Ladder, Look, dressed, memory_scale

_COLUMNS = ["variant", "x", "y", "low", "high", "speed", "on_front", "is_pick", "words"]


def scatter(points: pd.DataFrame, look: Look, *, pick: str | None, caption: Caption) -> Any:
    """Points with interval lines; area is speed, the pick has a ring, the front is a dashed line.

    `points` is `tradeoff`. Upwards is the pass rate where answers were checked, else the decode rate.
    """
    ladder = Ladder.of(points, look)
    has_rates = bool(points["pass_rate"].notna().any())
    metric = "pass_rate" if has_rates else "decode_tps"
    frame = _points(points, metric, pick)
    known = frame.dropna(subset=["x", "y"])
    y_title = "Checks passed" if has_rates else "Decode rate, tok/s"
    is_measured = bool(points["size_is_measured"].all())
    divisor, unit = memory_scale(known["x"].max())
    known = known.assign(x=known["x"] / divisor)
    x_title = f"{'Peak memory' if is_measured else 'File size'}, {unit}"
    x = alt.X("x:Q", title=x_title, scale=alt.Scale(zero=False, nice=True, padding=28))
    y_axis = alt.Axis(format="%") if has_rates else alt.Axis()
    y = alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=not has_rates, nice=True), axis=y_axis)
    base = alt.Chart(known).encode(x=x, y=y)
    layers = [
        base.transform_filter(alt.datum.on_front).mark_line(
            strokeDash=[4, 4], color=look.muted, strokeWidth=1.2, opacity=0.7
        ),
        alt.Chart(known.dropna(subset=["low", "high"]))
        .mark_rule(strokeWidth=2, opacity=0.5)
        .encode(x="x:Q", y=alt.Y("low:Q", title=y_title), y2="high:Q", color=ladder.colour),
        base.transform_filter(alt.datum.is_pick).mark_point(
            filled=False, size=900, stroke=look.accent, strokeWidth=2.5, opacity=1
        ),
        base.mark_point(filled=True, opacity=1, stroke=look.page, strokeWidth=1).encode(
            color=ladder.colour,
            shape=ladder.shape,
            size=alt.Size("speed:Q", scale=alt.Scale(range=[90, 420], zero=True), legend=None),
            tooltip=[alt.Tooltip("variant:N", title="Variant"), alt.Tooltip("words:N", title="Measured")],
        ),
        base.mark_text(align="left", dx=17, dy=-12).encode(text="variant:N", color=alt.value(look.ink)),
    ]
    title = f"{y_title.split(',', maxsplit=1)[0]} against memory"
    return dressed(layers, look, height=300, title=title, caption=caption)


def _points(points: pd.DataFrame, metric: str, pick: str | None) -> pd.DataFrame:
    frame = points.assign(
        x=points["size_bytes"].astype(float),
        y=points[metric].astype(float),
        low=points[f"{metric}_ci_low"].astype(float),
        high=points[f"{metric}_ci_high"].astype(float),
        speed=points["decode_tps"].astype(float).fillna(0.0),
        is_pick=points["variant"] == pick,
    )
    frame["words"] = [
        f"{words.memory(size)}, {words.value('decode_tps', rate)}, checks {words.value('pass_rate', passed)}"
        for size, rate, passed in zip(
            frame["size_bytes"], frame["decode_tps"], frame["pass_rate"], strict=True
        )
    ]
    return frame[_COLUMNS]
