"""The one visual language of every chart: two looks, one ramp of variants, one set of marks.

A variant is a position on a ladder, so colour is an ordinal ramp of one hue over true bits per weight
(the strongest contrast with the page has the most bits); the reference has a neutral colour and a shape
of its own. Every verdict differs in shape and words too, so no chart depends on telling hues apart.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

_TITLE_HEIGHT, _TITLE_LINE, _NOTE_LINE, _AXIS_HEIGHT, _FOOTER_LINE = 32, 18, 16, 48, 14
# Characters that a phone has room for; Vega cuts a longer line off.
_TITLE_WIDTH, _NOTE_WIDTH, _FOOTER_WIDTH = 40, 54, 60
_ENGINE_SHAPES = ("circle", "square", "triangle-up", "cross")
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


def _colours_by_bits(ordered: pd.DataFrame, reference: str | None, look: Look) -> dict[str, str]:
    """The colour of each variant where one position of the ladder can hold several of them."""
    bits = ordered["bpw"].astype(float).fillna(0.0).round(3)  # unknown bits share the last position
    colours = dict(zip(dict.fromkeys(bits), ramp(bits.nunique(), look), strict=True))
    return {
        str(label): look.reference if label == reference else colours[place]
        for label, place in zip(ordered["variant"], bits, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Ladder:
    """The variants of a run as channels of a chart: position, colour and shape of the column `variant`."""

    labels: tuple[str, ...]
    y: alt.Y
    colour: alt.Color
    shape: alt.Shape

    @classmethod
    def of(cls, table: pd.DataFrame, look: Look) -> "Ladder":
        """The ladder of a frame with variant, is_reference and bpw, one row a variant.

        Where the frame has several of `engine`, the shape tells the engine, and the same weights keep their
        colour; the reference is then known by its colour alone.
        """
        ordered = table.sort_values("bpw", ascending=False, kind="stable", na_position="last")
        labels = [str(label) for label in ordered["variant"]]
        reference = next((str(row.variant) for row in ordered.itertuples() if row.is_reference), None)
        engines = list(dict.fromkeys(ordered["engine"])) if "engine" in ordered else []
        if len(engines) > 1:
            colours = _colours_by_bits(ordered, reference, look)
            shapes = [_ENGINE_SHAPES[engines.index(name) % len(_ENGINE_SHAPES)] for name in ordered["engine"]]
        else:
            colours = variant_colours(labels, reference, look)
            shapes = ["diamond" if label == reference else "circle" for label in labels]
        return cls(
            labels=tuple(labels),
            y=alt.Y(
                "variant:N",
                sort=labels,
                title=None,
                scale=alt.Scale(domain=labels),
                axis=alt.Axis(labelLimit=180, domain=False, ticks=False, labelFontSize=13),
            ),
            # No legend: the axis beside it names every variant.
            colour=alt.Color(
                "variant:N",
                scale=alt.Scale(domain=labels, range=[colours[label] for label in labels]),
                legend=None,
            ),
            shape=alt.Shape("variant:N", scale=alt.Scale(domain=labels, range=shapes), legend=None),
        )


def row_height(n_variants: int) -> int:
    """Pixels of a chart with so many variants, one below the other."""
    return 30 + 44 * max(1, n_variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The words inside a picture that keep it honest when it travels.

    `notes` (what is drawn, n) stand under the title, `origin` (run, machine, date, version) at the bottom.
    """

    notes: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()


def dressed(
    layers: Sequence[Any],
    look: Look,
    *,
    height: int,
    title: str,
    caption: Caption,
    axis_height: int = _AXIS_HEIGHT,
) -> Any:
    """The layers as one picture in the look, with title and caption; `height` pixels are for the marks.

    Everything is fitted into the given box, so the words get pixels of their own, and `axis_height` are what
    the horizontal axis takes below the marks.
    """
    heads, notes = _wrapped([title], _TITLE_WIDTH), _wrapped(caption.notes, _NOTE_WIDTH)
    heading = alt.TitleParams(
        text=heads if len(heads) > 1 else title, subtitle=notes, anchor="start", frame="bounds", offset=12
    )
    # A layer without rows draws nothing, but a screen reader would meet an image without a name.
    layers = [layer for layer in layers if not _is_empty(layer)] or list(layers)
    if caption.origin:
        origin = _wrapped(caption.origin, _FOOTER_WIDTH)
        layers = [*layers, _footer(origin, look, axis_height)]
        height += axis_height + _FOOTER_LINE * len(origin)
    height += _TITLE_HEIGHT + _TITLE_LINE * (len(heads) - 1) + _NOTE_LINE * len(notes)
    return alt.layer(*layers).properties(title=heading, height=height).configure(**_config(look))


def _is_empty(layer: Any) -> bool:
    return isinstance(layer.data, pd.DataFrame) and layer.data.empty


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    """The lines, each over as many as it needs at so many characters."""
    return [part for line in lines for part in textwrap.wrap(line, width)]


def _footer(lines: Sequence[str], look: Look, axis_height: int) -> Any:
    """Small text below the horizontal axis."""
    mark = {"align": "left", "baseline": "top", "fontSize": 10.5, "lineHeight": _FOOTER_LINE, "limit": 460}
    below = alt.value(alt.ExprRef(f"height + {axis_height}"))
    return (
        alt.Chart(pd.DataFrame({"origin": ["\n".join(lines)]}))
        .mark_text(lineBreak="\n", color=look.muted, opacity=0.85, **mark)
        .encode(x=alt.value(0), y=below, text="origin:N")
    )


def memory_scale(largest_bytes: float) -> tuple[float, str]:
    """The divisor and the name of the unit in which an axis up to `largest_bytes` reads well."""
    return (2**30, "GiB") if largest_bytes >= 2**30 else (2**20, "MiB")


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
            "labelOverlap": True,
            "tickCount": 6,
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
