"""The report in one picture, for places that show no page."""

import textwrap
from typing import Any

from liob_core.charts.files import as_png
from liob_core.charts.pictures import Picture

WIDTH = 900
_LETTERS_A_LINE = 92
_LINE_HEIGHT = 20


def summary_png(picture: Picture, sentence: str) -> bytes:
    """The trade-off under the run's answer, as PNG."""
    # No line begins with the sign of its number.
    lines = textwrap.wrap(sentence.replace(" %", "\u00a0%"), _LETTERS_A_LINE)
    chart: Any = picture.chart
    title = chart.title.copy()
    title.text = lines
    # The box holds the words too, so every further line of them needs pixels of its own.
    height = chart.height + _LINE_HEIGHT * (len(lines) - 1)
    return as_png(chart.properties(title=title, height=height).to_dict(), width=WIDTH)
