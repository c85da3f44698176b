"""Charts as files that stand alone: PNG and SVG, drawn without a browser and without a network."""

from collections.abc import Mapping
from typing import Any

import vl_convert

WIDTH = 760
_SCALE = 2.0  # two pixels for one, for sharp prints and screens


def as_svg(spec: Mapping[str, Any], *, width: int = WIDTH) -> str:
    """A chart's specification as an SVG document, `width` pixels wide."""
    return vl_convert.vegalite_to_svg({**spec, "width": width}, allowed_base_urls=[])


def as_png(spec: Mapping[str, Any], *, width: int = WIDTH) -> bytes:
    """A chart's specification as a PNG image, twice `width` pixels wide."""
    return vl_convert.vegalite_to_png({**spec, "width": width}, scale=_SCALE, allowed_base_urls=[])
