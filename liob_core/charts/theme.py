"""The one visual language of every chart: two looks, one ramp of variants, one set of marks.

A variant is a position on a ladder, so colour is an ordinal ramp of one hue over true bits per weight
(the strongest contrast with the page has the most bits); the reference has a neutral colour and a shape
of its own. Every verdict differs in shape and words too, so no chart depends on telling hues apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

FONT = '"Source Sans", "Source Sans Pro", "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The colours of one appearance of the app, as hex strings."""

    name: str
    page: str
    ink: str
    muted: str
    grid: str
    reference: str
    ramp: tuple[str, ...]  # from many bits to few
    better: str
    worse: str
    same: str
    accent: str
    parts: tuple[str, ...]  # weights, KV cache, compute, other


LIGHT = Look(
    name="light",
    page="#ffffff",
    ink="#1c2530",
    muted="#5d6a78",
    grid="#e6eaef",
    reference="#30363d",
    ramp=("#0b3566", "#1a5796", "#3478ba", "#5596cf"),
    better="#0f7b6c",
    worse="#b2500b",
    same="#66717d",
    accent="#c77700",
    parts=("#1a5796", "#4d8fca", "#8fbbe0", "#b7bfc8"),
)
DARK = Look(
    name="dark",
    page="#11161d",
    ink="#e4e9ef",
    muted="#9aa7b5",
    grid="#27303b",
    reference="#f1ece2",
    ramp=("#b4d7f7", "#82b8ea", "#5596d3", "#3a77b3"),
    better="#45c4b0",
    worse="#f0a058",
    same="#98a3ae",
    accent="#f0b35a",
    parts=("#82b8ea", "#4a88c4", "#2f5f92", "#56616d"),
)


def look_of(name: str | None) -> Look:
    """The look called `name`; anything but "dark" is the light one."""
    return DARK if name == "dark" else LIGHT


def _mix(a: str, b: str, share: float) -> str:
    """The colour `share` of the way from `a` to `b`."""
    channels = (round(int(a[i : i + 2], 16) * (1 - share) + int(b[i : i + 2], 16) * share) for i in (1, 3, 5))
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def ramp(n: int, look: Look) -> list[str]:
    """`n` colours of one hue, from many bits to few."""
    if n <= 1:
        return [look.ramp[1]] * n
    last = len(look.ramp) - 1
    colours = []
    for step in range(n):
        place = step / (n - 1) * last
        low = min(int(place), last - 1)
        colours.append(_mix(look.ramp[low], look.ramp[low + 1], place - low))
    return colours


def variant_colours(labels: Sequence[str], reference: str | None, look: Look) -> dict[str, str]:
    """The colour of each variant; `labels` come from many bits to few."""
    others = [label for label in labels if label != reference]
    colours = dict(zip(others, ramp(len(others), look), strict=True))
    return {label: colours.get(label, look.reference) for label in labels}


def variant_colour(labels: Sequence[str], reference: str | None, look: Look) -> alt.Color:
    """The colour channel of the column `variant`, without a legend: position already names it."""
    colours = variant_colours(labels, reference, look)
    return alt.Color(
        "variant:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=None
    )


def variant_shape(labels: Sequence[str], reference: str | None) -> alt.Shape:
    """The shape channel of the column `variant`: the reference is a diamond, every other a circle."""
    shapes = ["diamond" if label == reference else "circle" for label in labels]
    return alt.Shape("variant:N", scale=alt.Scale(domain=list(labels), range=shapes), legend=None)


def variant_axis(labels: Sequence[str]) -> alt.Y:
    """The vertical position of the column `variant`: many bits on top."""
    return alt.Y("variant:N", sort=list(labels), title=None, axis=alt.Axis(labelLimit=180, domain=False))


def dressed(chart: Any, look: Look, *, title: str, notes: Sequence[str] = ()) -> Any:
    """`chart` with its title, its notes (n, machine, date, version) inside the picture, and the look."""
    heading = alt.TitleParams(text=title, subtitle=list(notes), anchor="start", frame="group", offset=10)
    return chart.properties(title=heading).configure(**_config(look))


def _config(look: Look) -> dict[str, Any]:
    text = {"labelColor": look.muted, "titleColor": look.muted, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": look.page,
        "font": FONT,
        "axis": {
            **text,
            "gridColor": look.grid,
            "domainColor": look.grid,
            "tickColor": look.grid,
            "titleFontWeight": "normal",
            "labelPadding": 6,
            "titlePadding": 8,
        },
        "axisY": {"labelColor": look.ink},
        "legend": {**text, "orient": "top", "titleFontWeight": "normal", "symbolSize": 90},
        "header": {**text, "labelColor": look.ink},
        "title": {
            "color": look.ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": look.muted,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
        },
        "view": {"stroke": None},
        "point": {"size": 90, "filled": True},
        "text": {"color": look.ink, "fontSize": 12},
        "autosize": {"type": "fit", "contains": "padding"},
    }
