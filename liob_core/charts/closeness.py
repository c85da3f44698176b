"""How close: KL divergence from the reference against true bits, on a ladder with guides."""

from typing import Any

import altair as alt
import pandas as pd

from liob_core.analysis import words
from liob_core.charts.theme import Caption, Ladder, Look, dressed

# What these quantizations cost Llama-3-8B; guides for the eye, not limits.
_GUIDES = pd.DataFrame(
    {
        "kld": [0.0014, 0.0055, 0.011, 0.031, 0.10, 0.45],
        "guide": ["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K"],
    }
)
GUIDES_NOTE = "Dotted guides: what these quantizations cost Llama-3-8B, for comparison only"


def floor_note(table: pd.DataFrame) -> list[str]:
    """What the noise floor is, where one was measured."""
    floors = table[table["is_floor"]]
    if floors.empty:
        return []
    return [f"Noise floor: {', '.join(floors['variant'])}, the reference itself on other kernels"]


def closeness_ladder(table: pd.DataFrame, look: Look, *, caption: Caption) -> Any:
    """Points with 95 % interval lines, KL divergence in nats on a log scale against true bits.

    `table` is `closeness_table`; the reference is 0 by construction and so not drawn, and of the same weights
    only the largest KV cache is.
    """
    ladder = Ladder.of(table, look)
    points = _points(table)
    low, high = _domain(points)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y_title = "KL divergence, nats (log)"
    bits = alt.Scale(zero=False, nice=True, padding=24)
    x = alt.X("bpw:Q", title="True bits per weight", scale=bits, axis=alt.Axis(format=".2~f"))
    y = alt.Y("kld_mean:Q", title=y_title, scale=scale, axis=alt.Axis(format="~g", tickCount=5))
    base = alt.Chart(points).encode(x=x, y=y)
    guides = alt.Chart(_GUIDES[_GUIDES["kld"].between(low, high)]).encode(
        y=alt.Y("kld:Q", title=y_title, scale=scale)
    )
    layers = [
        guides.mark_rule(strokeDash=[2, 4], color=look.muted, opacity=0.6),
        guides.mark_text(align="left", baseline="bottom", dx=4, dy=-2, fontSize=10).encode(
            x=alt.value(0), text="guide:N", color=alt.value(look.muted)
        ),
        base.mark_line(color=look.muted, strokeWidth=1.2, opacity=0.5).encode(detail="model:N"),
        *_floor(points, scale, y_title, look),
        alt.Chart(points.dropna(subset=["low", "high"]))
        .mark_rule(strokeWidth=2, opacity=0.6)
        .encode(x=x, y=alt.Y("low:Q", title=y_title, scale=scale), y2="high:Q", color=ladder.colour),
        base.mark_point(filled=True, opacity=1, size=130, stroke=look.page, strokeWidth=1).encode(
            color=ladder.colour,
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("words:N", title="Measured"),
                alt.Tooltip("bpw:Q", title="True bits", format=".4f"),
            ],
        ),
        base.mark_text(align="left", dx=11, dy=-9).encode(text="variant:N", color=alt.value(look.ink)),
    ]
    names = [str(row.variant) for row in table.itertuples() if row.is_reference]
    reference = " and ".join(names) or "the reference"
    return dressed(layers, look, height=320, title=f"KL divergence from {reference}", caption=caption)


def _floor(points: pd.DataFrame, scale: Any, y_title: str, look: Look) -> list[Any]:
    """A line at what the reference's own weights give on other kernels; nothing where none were run."""
    floors = points[points["is_floor"]]
    if floors.empty:
        return []
    top = pd.DataFrame({"kld": [floors["kld_mean"].max()], "name": ["noise floor"]})
    line = alt.Chart(top).encode(y=alt.Y("kld:Q", title=y_title, scale=scale))
    words = line.mark_text(align="right", baseline="bottom", dx=-4, dy=-2, fontSize=11).encode(
        x=alt.value(alt.ExprRef("width")), text="name:N", color=alt.value(look.accent)
    )
    return [line.mark_rule(color=look.accent, strokeWidth=1.5), words]


def _points(table: pd.DataFrame) -> pd.DataFrame:
    """The variants that can be drawn, intervals cut where a log scale ends."""
    is_drawn = (table["kld_mean"] > 0) & table["bpw"].notna() & ~table["is_compressed"].astype(bool)
    known = table[is_drawn]
    floor = known["kld_mean"].min() / 3 if len(known) else 0.0
    frame = pd.DataFrame(
        {
            "variant": known["variant"],
            "bpw": known["bpw"].astype(float),
            "model": known["model_reference"],
            "is_floor": known["is_floor"].astype(bool),
            "kld_mean": known["kld_mean"].astype(float),
            "low": known["kld_low"].astype(float).clip(lower=floor),
            "high": known["kld_high"].astype(float),
        }
    )
    frame["words"] = [
        f"{words.value('kld_mean', mean)} ({words.interval('kld_mean', low, high) or 'no interval'})"
        for mean, low, high in zip(known["kld_mean"], known["kld_low"], known["kld_high"], strict=True)
    ]
    return frame


def _domain(points: pd.DataFrame) -> tuple[float, float]:
    """Both ends of the scale: all points and the guides next to them."""
    if points.empty:
        return 1e-3, 1.0
    low = min(float(points[name].min()) for name in ("kld_mean", "low"))
    high = float(points[["kld_mean", "high"]].max(axis=1).max())
    return low / 1.6, high * 1.8
