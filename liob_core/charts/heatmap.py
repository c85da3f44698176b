"""Where does it differ: categories by variants, differences from the reference on a scale around 0."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from liob_core.charts.theme import Caption, Look, dressed

_ROW_HEIGHT = 34
_BELOW = 10  # its axis is on top
_MARKS = {True: {True: "▲ ", False: "▼ "}, False: {True: "", False: ""}}
_N_STRIPES = 12
# The verdicts' colours on the way to the page's: light or dark enough for the figures written on them.
_LOST = {"light": "#d59f79", "dark": "#8c623d"}
_GAINED = {"light": "#7bb6ae", "dark": "#2e766e"}
CLEAR_NOTE = "Grey, without ▲ or ▼: the cell's 95 % interval holds 0"
HATCH_NOTE = "Hatched: nothing to compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """How differences are shown: of what, their factor and format, and where the colour is full at least."""

    name: str
    factor: float
    digits: int
    full_at: float  # in shown units, so that trifles do not take the strongest colours

    def spell(self, value: float) -> str:
        """A difference with its sign, as in a cell."""
        shown = round(value * self.factor, self.digits)
        return f"{shown:+.{self.digits}f}".replace("-", "\N{MINUS SIGN}") if shown else "0"


POINTS = Unit(name="pass rate, points", factor=100, digits=0, full_at=20)
SCORES = Unit(name="judge's score", factor=1, digits=1, full_at=2)


def difference_map(cells: pd.DataFrame, look: Look, *, unit: Unit, title: str, caption: Caption) -> Any:
    """Cells with the difference written in them; `cells` is a frame of `analysis.categories`."""
    frame = _cells(cells, unit)
    rows, columns = list(dict.fromkeys(frame["category"])), list(dict.fromkeys(frame["variant"]))
    x = alt.X(
        "variant:N",
        sort=columns,
        title=None,
        scale=alt.Scale(domain=columns),
        axis=alt.Axis(
            orient="top", labelAngle=0, labelColor=look.ink, domain=False, ticks=False, labelLimit=110
        ),
    )
    y = alt.Y(
        "row:N",
        sort=[frame.loc[frame["category"] == name, "row"].iloc[0] for name in rows],
        title=None,
        axis=alt.Axis(domain=False, ticks=False, labelLimit=190),
    )
    box: Mapping[str, Any] = {"stroke": look.page, "strokeWidth": 2}
    known, unknown = frame[frame["delta"].notna()], frame[frame["delta"].isna()]
    end = max([unit.full_at, *known.loc[known["is_clear"], "shown"].abs()])
    colour = alt.Color(
        "shown:Q",
        scale=alt.Scale(
            domain=[-end, 0, end],
            range=[_LOST[look.name], look.grid, _GAINED[look.name]],
            interpolate="rgb",  # others pass through hues that mean nothing here
        ),
        legend=None,
    )
    tooltip = [
        alt.Tooltip("category:N", title="Category"),
        alt.Tooltip("variant:N", title="Variant"),
        alt.Tooltip("words:N", title=f"Difference in {unit.name}"),
        alt.Tooltip("n:Q", title="n, prompts compared"),
    ]
    layers = [
        alt.Chart(unknown).mark_rect(fill=_hatching(look), **box).encode(x=x, y=y, tooltip=tooltip),
        alt.Chart(known)
        .mark_rect(**box)
        .encode(
            x=x, y=y, tooltip=tooltip, color=alt.condition("datum.is_clear", colour, alt.value(look.grid))
        ),
        alt.Chart(frame).mark_text(color=look.ink, fontSize=12.5).encode(x=x, y=y, text="label:N"),
    ]
    height = _ROW_HEIGHT * (len(rows) + 1)
    return dressed(layers, look, height=height, title=title, caption=caption, axis_height=_BELOW)


def _cells(cells: pd.DataFrame, unit: Unit) -> pd.DataFrame:
    """What is drawn: the shown difference, its label and its words."""
    records = cells.to_dict("records")
    label = _labeller(unit)
    return pd.DataFrame(
        {
            "category": cells["category"],
            "row": [f"{row['category']} ({row['n_prompts']})" for row in records],
            "variant": cells["variant"],
            "n": cells["n"],
            "delta": cells["delta"].astype(float),
            "shown": cells["delta"].astype(float) * unit.factor,
            "is_clear": cells["is_clear"].astype(bool),
            "label": [label(row) for row in records],
            "words": [_words(row, unit) for row in records],
        }
    )


def _labeller(unit: Unit) -> Callable[[Mapping[Any, Any]], str]:
    def label(row: Mapping[Any, Any]) -> str:
        if pd.isna(row["delta"]):
            return "—"
        return _MARKS[bool(row["is_clear"])][bool(row["delta"] > 0)] + unit.spell(row["delta"])

    return label


def _words(row: Mapping[Any, Any], unit: Unit) -> str:
    if pd.isna(row["delta"]):
        return str(row["reason"])
    if pd.isna(row["delta_low"]):
        between = "no interval"
    else:
        between = f"95 %: {unit.spell(row['delta_low'])} to {unit.spell(row['delta_high'])}"
    flips = f"{row['n_gained']:.0f} better, {row['n_lost']:.0f} worse"
    return f"{unit.spell(row['delta'])} ({between}; {flips})"


def _hatching(look: Look) -> Any:
    """Diagonal stripes: a gradient whose colours change at once."""
    stops = []
    for stripe in range(_N_STRIPES):
        colour = look.page if stripe % 2 else look.grid
        stops += [
            alt.GradientStop(offset=stripe / _N_STRIPES, color=colour),
            alt.GradientStop(offset=(stripe + 1) / _N_STRIPES, color=colour),
        ]
    return alt.Gradient(gradient="linear", x1=0, y1=0, x2=1, y2=1, stops=stops)
