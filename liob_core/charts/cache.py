"""What a compressed cache saves and costs: memory against divergence, the same weights joined."""

from typing import Any

import altair as alt
import pandas as pd

from liob_core.analysis import words
from liob_core.charts.theme import Caption, Ladder, Look, dressed, memory_scale


def cache_scatter(costs: pd.DataFrame, look: Look, *, caption: Caption) -> Any:
    """Points with 95 % interval lines: KL divergence in nats (log) against predicted memory.

    `costs` is `cache_costs`; the reference itself is 0 by construction and so not drawn.
    """
    points = _points(costs)
    divisor, unit = memory_scale(float(points["memory_bytes"].max()))
    points["memory"] = points["memory_bytes"] / divisor
    ladder = Ladder.of(costs, look)
    scale = alt.Scale(type="log", domain=[points["low"].min() / 1.4, points["high"].max() * 1.6], nice=False)
    y_title = "KL divergence, nats (log)"
    x = alt.X(
        "memory:Q", title=f"Weights and KV cache, {unit}", scale=alt.Scale(zero=False, nice=True, padding=70)
    )
    y = alt.Y("kld_mean:Q", title=y_title, scale=scale, axis=alt.Axis(format="~g", tickCount=5))
    base = alt.Chart(points).encode(x=x, y=y)
    kinds = list(dict.fromkeys(costs.sort_values("cache_bytes", ascending=False)["kv_type"]))
    layers = [
        base.mark_line(color=look.muted, strokeDash=[4, 3], strokeWidth=1.2).encode(detail="base:N"),
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(
            y=alt.Y("low:Q", title=y_title, scale=scale), y2="high:Q", color=ladder.colour
        ),
        base.mark_point(filled=True, opacity=1, size=150, stroke=look.page, strokeWidth=1).encode(
            color=ladder.colour,
            shape=alt.Shape(
                "kv_type:N",
                scale=alt.Scale(domain=kinds),
                legend=alt.Legend(title="KV cache", symbolFillColor=look.muted, symbolStrokeColor=look.muted),
            ),
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("saved:N", title="Cache"),
                alt.Tooltip("divergence:N", title="KL divergence"),
                alt.Tooltip("words:N", title="Against the same weights"),
            ],
        ),
        *(
            base.transform_filter(alt.datum.is_first == is_first)
            .mark_text(align="left", dx=9, dy=dy)
            .encode(text="label:N", color=alt.value(look.ink))
            for is_first, dy in ((True, -10), (False, 13))
        ),
    ]
    return dressed(layers, look, height=300, title="Memory against closeness", caption=caption)


def _points(costs: pd.DataFrame) -> pd.DataFrame:
    """The variants that can be drawn, intervals cut where a log scale ends."""
    known = costs[(costs["kld_mean"] > 0) & costs["memory_bytes"].notna()].copy()
    floor = float(known["kld_mean"].min()) / 3
    known["low"] = known["kld_low"].fillna(known["kld_mean"]).clip(lower=floor)
    known["high"] = known["kld_high"].fillna(known["kld_mean"])
    known["saved"] = [
        f"{words.memory(size)}, {words.percent(share)} saved"
        for size, share in zip(known["cache_bytes"], known["saved_share"], strict=True)
    ]
    known["divergence"] = [words.value("kld_mean", value) for value in known["kld_mean"]]
    # The first of its weights has the whole name, the others beside it their cache.
    known["is_first"] = ~known["base"].duplicated()
    known["label"] = known["variant"].where(known["is_first"], known["kv_type"])
    names = [
        "variant",
        "is_first",
        "label",
        "base",
        "kv_type",
        "memory_bytes",
        "kld_mean",
        "low",
        "high",
        "saved",
        "divergence",
    ]
    return known[[*names, "words"]]
