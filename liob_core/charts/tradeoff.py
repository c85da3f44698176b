"""What a variant costs against what it keeps, with the front of those that nothing beats on both axes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from liob_core.analysis import words
from liob_core.analysis.tradeoff import DOMINATED, FRONT, SIZES
from liob_core.charts.theme import Caption, Ladder, Look, dressed, memory_scale
from liob_core.metrics import METRICS

_COLUMNS = [
    *("variant", "x", "x_low", "x_high", "y", "y_low", "y_high", "speed", "standing", "mark", "words"),
    "is_front",
]
_TITLES = {
    "file_bytes": "File size",
    "pass_rate": "Checks passed",
    "decode_tps": "Decode rate",
    "kld_mean": "KL divergence",
}
_UNITS = {"decode_tps": ", tok/s", "kld_mean": ", nats", "ln_ratio": ", nats", "judge_score": ", 1 to 10"}
_UNITS |= {"j_per_output_token": ", J"}
# Here a scale that is logarithmic further up turns linear, so that the reference's 0 has a place.
_KLD_LINEAR_BELOW = 0.003
_KLD_TICKS = (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a limit lies on an axis, in the axis's stored unit; `is_least` forbids what is below it."""

    value: float
    is_least: bool


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis as it is drawn: its title, what its values are divided by, and its scale."""

    name: str
    title: str
    divisor: float
    low: float
    high: float

    def channel(self, kind: Any, field: str, *, is_up: bool) -> Any:
        """The encoding of a column; upwards is always better."""
        is_kld = self.name == "kld_mean"
        scale = {"domain": [self.low, self.high], "nice": False, "zero": False}
        if is_kld:
            scale |= {"type": "symlog", "constant": _KLD_LINEAR_BELOW}
        if is_up and METRICS[self.name].direction == "lower":
            scale["reverse"] = True
        axis: dict[str, Any] = {"format": "%"} if self.name == "pass_rate" else {}
        if is_kld:
            axis = {"values": [tick for tick in _KLD_TICKS if tick <= self.high], "format": "~g"}
        return kind(f"{field}:Q", title=self.title, scale=alt.Scale(**scale), axis=alt.Axis(**axis))


def scatter(
    points: pd.DataFrame,
    look: Look,
    *,
    pick: str | None,
    caption: Caption,
    runner_up: str | None = None,
    bounds: Mapping[str, Bound] | None = None,
) -> Any:
    """Points with interval lines; area is speed, the pick has a ring, the front is a dashed line.

    `points` is `tradeoff`; what `bounds` (by axis) forbid is shaded, and the runner-up has a dashed ring.
    """
    ladder = Ladder.of(points, look)
    across, up = (_axis(points, axis, bounds or {}) for axis in ("x", "y"))
    known = _points(points, across, up, {pick: "pick", runner_up: "runner-up"})
    x, y = across.channel(alt.X, "x", is_up=False), up.channel(alt.Y, "y", is_up=True)
    base = alt.Chart(known).encode(x=x, y=y)
    layers = [
        *_forbidden(across, up, bounds or {}, look),
        base.transform_filter(alt.datum.is_front).mark_line(
            strokeDash=[4, 4], color=look.muted, strokeWidth=1.2, opacity=0.7
        ),
        *_intervals(known, across, up, ladder),
        *_rings(known, base, look),
        base.mark_point(filled=True, stroke=look.page, strokeWidth=1).encode(
            color=ladder.colour,
            shape=ladder.shape,
            size=alt.Size("speed:Q", scale=alt.Scale(range=[90, 420], zero=True), legend=None),
            opacity=alt.condition(alt.datum.standing == DOMINATED, alt.value(0.45), alt.value(1)),
            tooltip=[
                alt.Tooltip("variant:N", title="Variant"),
                alt.Tooltip("words:N", title="Measured"),
                alt.Tooltip("standing:N", title="Standing"),
            ],
        ),
        base.mark_text(align="left", dx=17, dy=-12).encode(text="variant:N", color=alt.value(look.ink)),
    ]
    name = {"peak_memory_bytes": "memory"}.get(
        across.name, words.in_a_sentence(across.title.split(",", maxsplit=1)[0])
    )
    title = f"{up.title.split(',', maxsplit=1)[0]} against {name}"
    return dressed(layers, look, height=300, title=title, caption=caption)


def _axis(points: pd.DataFrame, which: str, bounds: Mapping[str, Bound]) -> _Axis:
    """The axis in column `which`, wide enough for every interval and for the limit on it."""
    name = str(points[which].iloc[0])
    columns = [name, f"{name}_low", f"{name}_high"]
    values = points[columns].astype(float).to_numpy().ravel().tolist()
    if name in bounds:
        values.append(bounds[name].value)
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.12 * (high - low or abs(high) or 1.0)
    low = max(low - room, 0.0) if low >= 0 else low - room
    high = min(high + room, 1.0) if name == "pass_rate" else high + room
    divisor, unit = memory_scale(high) if name in SIZES else (1.0, "")
    title = _TITLES.get(name, METRICS[name].label) + (f", {unit}" if unit else _UNITS.get(name, ""))
    return _Axis(name, title, divisor, low / divisor, high / divisor)


def _points(points: pd.DataFrame, across: _Axis, up: _Axis, marks: Mapping[str | None, str]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for field, axis in (("x", across), ("y", up)):
        for end in ("", "_low", "_high"):
            columns[f"{field}{end}"] = points[f"{axis.name}{end}"].astype(float) / axis.divisor
    frame = points.assign(
        **columns,
        speed=points["decode_tps"].astype(float).fillna(0.0),
        mark=[marks.get(name, "") for name in points["variant"]],
        is_front=points["standing"] == FRONT,
        words=[_words(row, across.name, up.name) for row in points.to_dict("records")],
    )
    return frame[_COLUMNS].dropna(subset=["x", "y"])


def _words(row: Mapping[Any, Any], across: str, up: str) -> str:
    """Both figures with their intervals, and speed where it is on neither axis."""
    told = []
    for name in dict.fromkeys((across, up, "decode_tps")):
        between = words.interval(name, row[f"{name}_low"], row[f"{name}_high"])
        label = METRICS[name].short_label if name in ("pass_rate", "kld_mean", "ln_ratio") else ""
        told.append(f"{label} {words.value(name, row[name])}".strip() + (f" ({between})" if between else ""))
    return ", ".join(told)


def _intervals(known: pd.DataFrame, across: _Axis, up: _Axis, ladder: Ladder) -> list[Any]:
    """A line along each axis whose figures have an interval, cut where the picture ends."""
    layers = []
    for field, other, kind, axis in (("y", "x", alt.Y, up), ("x", "y", alt.X, across)):
        low, high = f"{field}_low", f"{field}_high"
        ranged = known.dropna(subset=[low, high])
        if ranged.empty:
            continue
        ranged = ranged.assign(**{end: ranged[end].clip(axis.low, axis.high) for end in (low, high)})
        is_up = field == "y"
        place = across.channel(alt.X, "x", is_up=False) if is_up else up.channel(alt.Y, "y", is_up=True)
        ends = {field: axis.channel(kind, low, is_up=is_up), f"{field}2": f"{high}:Q", other: place}
        layers.append(
            alt.Chart(ranged).mark_rule(strokeWidth=2, opacity=0.5).encode(**ends, color=ladder.colour)
        )
    return layers


def _rings(known: pd.DataFrame, base: Any, look: Look) -> list[Any]:
    """A ring around the pick, and a dashed one around the runner-up; a layer only where there is one."""
    style = {"filled": False, "size": 900, "stroke": look.accent, "opacity": 1}
    rings: dict[str, dict[str, Any]] = {
        "pick": {"strokeWidth": 2.5},
        "runner-up": {"strokeWidth": 1.5, "strokeDash": [3, 3]},
    }
    return [
        base.transform_filter(alt.datum.mark == mark).mark_point(**style, **ring)
        for mark, ring in rings.items()
        if (known["mark"] == mark).any()
    ]


def _forbidden(across: _Axis, up: _Axis, bounds: Mapping[str, Bound], look: Look) -> list[Any]:
    """The part of the picture that the limits forbid, with the limit as its edge."""
    layers = []
    for field, axis, is_up in (("x", across, False), ("y", up, True)):
        bound = bounds.get(axis.name)
        if bound is None:
            continue
        limit = bound.value / axis.divisor
        ends = (axis.low, limit) if bound.is_least else (limit, axis.high)
        area = pd.DataFrame({"from": [ends[0]], "to": [ends[1]], "limit": [limit]})
        kind = alt.Y if is_up else alt.X
        shaded = {
            field: axis.channel(kind, "from", is_up=is_up),
            f"{field}2": "to:Q",
        }
        edge = {field: axis.channel(kind, "limit", is_up=is_up)}
        layers += [
            alt.Chart(area).mark_rect(color=look.worse, opacity=0.1).encode(**shaded),
            alt.Chart(area).mark_rule(color=look.worse, strokeDash=[2, 3], opacity=0.8).encode(**edge),
        ]
    return layers
