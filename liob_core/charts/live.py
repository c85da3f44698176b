"""What a run does at this moment: one small line per quantity, with its last value in words."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from liob_core.charts.theme import Caption, Look, dressed


def sparkline(values: Sequence[float | None], look: Look, *, title: str, latest: str) -> Any:
    """A line over the last readings, oldest first; where a reading is missing, the line has a gap."""
    frame = pd.DataFrame({"step": range(len(values)), "value": np.array(values, dtype=float)})
    base = alt.Chart(frame).encode(
        x=alt.X("step:Q", axis=None, scale=alt.Scale(domain=[0, max(60, len(values))])),
        y=alt.Y("value:Q", axis=None, scale=alt.Scale(zero=True)),
    )
    line = base.mark_line(color=look.ramp[2], strokeWidth=1.8, invalid="break-paths-show-domains")
    last = (
        base.transform_filter(alt.datum.step == len(values) - 1)
        .transform_filter("isValid(datum.value)")
        .mark_point(color=look.ramp[1], size=46)
    )
    return dressed([line, last], look, height=56, title=title, caption=Caption(notes=(latest,)))
