"""Charts as files that stand alone: PNG and SVG, drawn without a browser and without a network."""

from typing import Any

import vl_convert

WIDTH = 760
_SCALE = 2.0  # two pixels for one, for sharp prints and screens


def as_svg(chart: Any, *, width: int = WIDTH) -> str:
    """The chart as an SVG document, `width` pixels wide."""
    return vl_convert.vegalite_to_svg(_spec(chart, width), allowed_base_urls=[])


def as_png(chart: Any, *, width: int = WIDTH) -> bytes:
    """The chart as a PNG image, twice `width` pixels wide."""
    return vl_convert.vegalite_to_png(_spec(chart, width), scale=_SCALE, allowed_base_urls=[])


def _spec(chart: Any, width: int) -> dict[str, Any]:
    spec: dict[str, Any] = chart.properties(width=width).to_dict()
    return spec
