"""What the machine did: lanes of lines over one time axis, the requests under them, one brush for all.

The lanes share one view, so that a brush covers all of them; each has its own vertical scale, which spans
its own part of the view's height.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from liob_core.analysis import words
from liob_core.charts.theme import Caption, Look, dressed, memory_scale, variant_colours

BRUSH = "brush"
_LANE_HEIGHT = {"memory": 120, "cpu": 84, "gpu": 70, "power": 70}
_ROW_HEIGHT = 24
_HEADING = 24
_GAP_BELOW = 14
# What a line belongs to is told by its dash and its weight too.
_DASHES: Mapping[str, list[int]] = {"engine": [1, 0], "machine": [5, 3], "device": [1, 0]}
_HEADINGS = {
    "memory": "Memory, {unit}",
    "cpu": "Processor, % of all cores",
    "gpu": "Graphics devices, % busy",
    "power": "Power of the graphics devices, W",
}
_SERIES = {"engine": "engine", "machine": "whole machine", "device": "graphics devices"}
_MARKS = {"engine": "—", "machine": "- -", "device": "—"}


@dataclass(frozen=True, slots=True)
class _Lane:
    """A part of the view's height: from `top` to `bottom`, as shares of it."""

    name: str
    top: float
    bottom: float

    @property
    def range(self) -> list[Any]:
        """The vertical scale's range, upwards."""
        return [{"expr": f"height * {self.bottom:.5f}"}, {"expr": f"height * {self.top:.5f}"}]


@dataclass(frozen=True, slots=True)
class _Time:
    """The one horizontal axis: its title, and its ends in the axis' unit."""

    title: str
    low: float
    high: float

    def x(self, field: str) -> alt.X:
        """The channel that puts a column of times on the axis."""
        scale = alt.Scale(domain=[self.low, self.high], nice=False, zero=False, clamp=True)
        return alt.X(f"{field}:Q", scale=scale, title=self.title, axis=alt.Axis(grid=False))


def time_scale(span_s: float) -> tuple[float, str]:
    """The divisor and the name of the unit in which an axis that spans so many seconds reads well."""
    if span_s < 180:
        return 1.0, "s"
    return (60.0, "min") if span_s < 3 * 3600 else (3600.0, "h")


def timeline(
    lines: pd.DataFrame,
    bars: pd.DataFrame,
    look: Look,
    *,
    window_s: tuple[float, float],
    labels: list[str],
    reference: str | None,
    caption: Caption,
) -> Any:
    """Lanes for memory, processor, devices and power as far as they were read, above the requests' bars.

    `lines` and `bars` are `analysis.resources.lines` and `.requests`; `labels` come from many bits to few.
    A brush over the time axis is called BRUSH; its ends are in the unit of `time_scale`.
    """
    lanes, height = _lanes([name for name in _LANE_HEIGHT if (lines["panel"] == name).any()], len(labels))
    divisor, unit = time_scale(window_s[1] - window_s[0])
    low, high = (second / divisor for second in window_s)
    time = _Time(f"{unit} since the run's start", low, high)
    layers: list[Any] = []
    for lane in lanes[:-1]:
        part = _scaled(lines[lines["panel"] == lane.name], lane.name, divisor)
        layers += _lane_layers(part, lane, time, look)
    layers += _bar_layers(bars, lanes[-1], time, look, labels=labels, reference=reference, divisor=divisor)
    brush = alt.selection_interval(
        name=BRUSH,
        encodings=["x"],
        mark=alt.BrushConfig(fill=look.accent, fillOpacity=0.15, stroke=look.accent),
    )
    layers[0] = layers[0].add_params(brush)
    title = "Memory, processor and devices over time"
    chart = dressed(layers, look, height=height, title=title, caption=caption)
    # A canvas draws sooner, and two thousand marks read out one by one tell nothing; the description does.
    chart = chart.properties(usermeta={"embedOptions": {"renderer": "canvas"}})
    return chart.resolve_scale(y="independent", color="independent", strokeDash="independent")


def _lanes(panels: list[str], n_variants: int) -> tuple[list[_Lane], int]:
    """The lanes from above, the requests' last, and the height of all in pixels."""
    pixels = [(name, _LANE_HEIGHT[name]) for name in panels] + [
        ("requests", _ROW_HEIGHT * max(1, n_variants))
    ]
    height = sum(size + _HEADING + _GAP_BELOW for _, size in pixels)
    lanes, top = [], 0
    for name, size in pixels:
        lanes.append(_Lane(name, (top + _HEADING) / height, (top + _HEADING + size) / height))
        top += _HEADING + size + _GAP_BELOW
    return lanes, height


def _scaled(part: pd.DataFrame, panel: str, divisor: float) -> pd.DataFrame:
    """The rows in the units of the axes, with what a tooltip says and which of them have no neighbour."""
    size, unit = memory_scale(part["high"].max()) if panel == "memory" else (1.0, "")
    shown = _shown(panel)
    return part.assign(
        **{name: part[name] / size for name in ("low", "high", "mean")},
        at=part["at_s"] / divisor,
        first=part["first_s"] / divisor,
        peak_at=part["peak_s"] / divisor,
        gap_from=(part["first_s"] - part["gap_s"]) / divisor,
        line=part["series"] + " " + part["segment"].astype(str),
        is_alone=part.groupby(["series", "segment"])["at_s"].transform("size") == 1,
        who=part["series"].map(_SERIES),
        words=[
            f"{shown(mean)} (from {shown(low)} to {shown(high)}, {n} readings)" if n > 1 else shown(mean)
            for mean, low, high, n in zip(part["mean"], part["low"], part["high"], part["n"], strict=True)
        ],
        told=[f"peak {shown(high)}" for high in part["high"]],
        gap_words=[f"no reading for {words.seconds(gap)}" for gap in part["gap_s"]],
        unit=unit,
    )


def _shown(panel: str) -> Any:
    """How a value of that panel is said."""
    unit = {"cpu": " %", "gpu": " %", "power": " W"}.get(panel)
    return words.memory if unit is None else lambda value: f"{words.three_digits(value)}{unit}"


def _lane_layers(part: pd.DataFrame, lane: _Lane, time: _Time, look: Look) -> list[Any]:
    """One lane: gaps behind, the spread of each bucket, its mean, the peaks, and the lane's heading."""
    top = max(float(part["high"].max()) * 1.18, 1e-9)
    y_axis = alt.Axis(
        orient="left",
        tickCount=3,
        title=None,
        labelFontSize=11,
        grid=True,
        domain=False,
        labelColor=look.muted,
    )
    scale = alt.Scale(domain=[0, top], nice=False, range=lane.range)
    y = alt.Y("mean:Q", scale=scale, axis=y_axis)
    hidden = {"scale": scale, "axis": None}
    dash = alt.StrokeDash(
        "series:N",
        scale=alt.Scale(domain=list(_DASHES), range=[_DASHES[name] for name in _DASHES]),
        legend=None,
    )
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=list(_DASHES), range=[look.ink, look.muted, look.ink]),
        legend=None,
    )
    tip = [alt.Tooltip("who:N", title="What"), alt.Tooltip("words:N", title="Mean")]
    base = alt.Chart(
        part[["at", "low", "high", "mean", "series", "who", "line", "is_alone", "words"]]
    ).encode(x=time.x("at"), detail="line:N")
    gaps = part[part["gap_s"] > 0]
    layers: list[Any] = [
        base.mark_area(opacity=0.16, line=False).encode(
            y=alt.Y("low:Q", **hidden), y2="high:Q", color=colour
        ),
        base.mark_line(strokeWidth=1.6).encode(y=y, color=colour, strokeDash=dash, tooltip=tip),
        base.transform_filter("datum.is_alone")
        .mark_point(size=14, filled=True)
        .encode(y=alt.Y("mean:Q", **hidden), color=colour, tooltip=tip),
    ]
    if not gaps.empty:
        layers.insert(
            0,
            alt.Chart(gaps[["gap_from", "first", "who", "gap_words"]])
            .mark_rect(color=look.muted, opacity=0.13)
            .encode(
                x=time.x("gap_from"),
                x2="first:Q",
                y=alt.value(alt.ExprRef(f"height * {lane.top:.5f}")),
                y2=alt.value(alt.ExprRef(f"height * {lane.bottom:.5f}")),
                tooltip=[alt.Tooltip("who:N", title="What"), alt.Tooltip("gap_words:N", title="Gap")],
            ),
        )
    return [*layers, *_peaks(part, time, hidden, look), _heading(part, lane, time, look)]


def _peaks(part: pd.DataFrame, time: _Time, hidden: Mapping[str, Any], look: Look) -> list[Any]:
    """A mark and its value where each series was highest."""
    peaks = part.loc[part.groupby("series")["high"].idxmax()]
    # Two lines at the same height would write over each other.
    peaks["shown"] = peaks["told"].where(~peaks.duplicated("told"), "")
    base = alt.Chart(peaks[["peak_at", "high", "who", "told", "shown"]]).encode(
        x=time.x("peak_at"), y=alt.Y("high:Q", **hidden)
    )
    tip = [alt.Tooltip("who:N", title="What"), alt.Tooltip("told:N", title="Highest")]
    return [
        base.mark_point(shape="triangle-down", size=46, filled=True, color=look.accent, yOffset=-5).encode(
            tooltip=tip
        ),
        base.mark_text(align="left", dx=7, dy=-7, fontSize=11, color=look.ink).encode(text="shown:N"),
    ]


def _heading(part: pd.DataFrame, lane: _Lane, time: _Time, look: Look) -> Any:
    """The lane's quantity, its unit, and which line is which."""
    known = [name for name in _SERIES if (part["series"] == name).any()]
    which = " · ".join(f"{_MARKS[name]} {_SERIES[name]}" for name in known)
    text = _HEADINGS[lane.name].format(unit=part["unit"].iloc[0])
    return _words_at(f"{text} · {which}", lane, time, look)


def _words_at(text: str, lane: _Lane, time: _Time, look: Look) -> Any:
    return (
        alt.Chart(pd.DataFrame({"at": [time.low], "text": [text]}))
        .mark_text(align="left", baseline="bottom", dy=-6, fontSize=12, color=look.muted)
        .encode(x=time.x("at"), y=alt.value(alt.ExprRef(f"height * {lane.top:.5f}")), text="text:N")
    )


def _bar_layers(
    bars: pd.DataFrame,
    lane: _Lane,
    time: _Time,
    look: Look,
    *,
    labels: list[str],
    reference: str | None,
    divisor: float,
) -> list[Any]:
    """The requests as bars in the variants' colours, one row a variant; loads are outlines."""
    colours = variant_colours(labels, reference, look)
    rows = {label: row for row, label in enumerate(labels)}
    row = bars["variant"].map(rows).astype(float)
    is_load = bars["kind"] == "load"
    frame = pd.DataFrame(
        {
            "variant": bars["variant"],
            "kind": bars["kind"],
            "start": bars["start_s"] / divisor,
            "end": bars["end_s"] / divisor,
            "above": row + is_load * 0.12 - 0.36,
            "below": row - is_load * 0.12 + 0.36,
            "colour": [
                look.muted if load else colours[v] for v, load in zip(bars["variant"], is_load, strict=True)
            ],
            "failed_above": row + 0.36 - 0.72 * bars["n_failed"] / bars["n_requests"].clip(lower=1),
            "failed": bars["n_failed"] > 0,
            "shade": (bars["is_warmup"].eq(True) | is_load).map({True: 0.45, False: 1.0}),
            "words": [_bar_words(row) for row in bars.to_dict("records")],
        }
    )
    names = json.dumps(labels).replace("<", "\\u003c")
    axis = alt.Axis(
        orient="left",
        values=list(range(len(labels))),
        labelExpr=f"{names}[datum.value]",
        grid=False,
        domain=False,
        ticks=False,
        title=None,
        labelLimit=110,
    )
    scale = alt.Scale(domain=[max(0, len(labels) - 1) + 0.5, -0.5], nice=False, zero=False, range=lane.range)
    base = alt.Chart(frame).encode(
        x=time.x("start"),
        x2="end:Q",
        y=alt.Y("above:Q", scale=scale, axis=axis),
        y2="below:Q",
        tooltip=[alt.Tooltip("variant:N", title="Variant"), alt.Tooltip("words:N", title="What")],
    )
    # A request shorter than a pixel is still there: the outline has a width of its own.
    fill = alt.Color("colour:N", scale=None, legend=None)
    outline = alt.Stroke("colour:N", scale=None, legend=None)
    shade = alt.Opacity("shade:Q", scale=None, legend=None)
    failed = base.transform_filter("datum.failed").mark_rect(
        color=look.worse, stroke=look.worse, strokeWidth=0.6
    )
    text = "Requests · orange: failed · faint: warm-up, load"
    return [
        base.mark_rect(strokeWidth=0.6).encode(color=fill, stroke=outline, opacity=shade),
        failed.encode(y=alt.Y("failed_above:Q", scale=scale, axis=axis)),
        _words_at(text, lane, time, look),
    ]


def _bar_words(row: Mapping[Any, Any]) -> str:
    """What a bar's tooltip says."""
    took = words.seconds(row["end_s"] - row["start_s"])
    if row["kind"] == "load":
        return f"load, {took}"
    what = str(row["what"] or "")
    if row["n_requests"] > 1:
        failed = f", {row['n_failed']} failed" if row["n_failed"] else ""
        return f"{row['n_requests']} requests ({what}) within {took}{failed}"
    prompt = f" {row['prompt_id']}" if isinstance(row["prompt_id"], str) else ""
    warm = "warm-up " if row["is_warmup"] else ""
    return f"{warm}{what}{prompt}, {took}, {row['outcome']}"
