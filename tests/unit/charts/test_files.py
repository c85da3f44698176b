"""Charts as files carry their words inside and need no browser."""

import struct
from xml.etree import ElementTree

import pandas as pd
import pytest

from liob_core.charts.files import as_png, as_svg
from liob_core.charts.pictures import Picture, tradeoff_picture
from liob_core.charts.theme import LIGHT

ORIGIN = ("SmolLM2 · 30 Nov 2026 · LIOB 0.1.0", "a machine, 2 cores")
HOSTILE = "Q4</text><script>alert(1)</script>"


@pytest.fixture
def picture() -> Picture:
    table = pd.DataFrame({"variant": ["F16", HOSTILE], "decode_tps": [20.0, 40.0], "unknown": [None, None]})
    points = table.assign(
        is_reference=[True, False], bpw=[16.0, 4.5], peak_memory_bytes=[2e9, 1e9],
        peak_memory_bytes_low=[None, None], peak_memory_bytes_high=[None, None], decode_tps_low=[19.0, 39.0],
        decode_tps_high=[21.0, 41.0], pass_rate=[0.8, 0.7], pass_rate_low=[0.7, 0.6],
        pass_rate_high=[0.9, 0.8], x="peak_memory_bytes", y="pass_rate", standing="front",
    )  # fmt: skip
    return tradeoff_picture(table, points, LIGHT, pick="F16", origin=ORIGIN)


def test_svg_carries_title_origin_and_inert_labels(picture: Picture) -> None:
    svg = as_svg(picture.chart.to_dict(), width=640)
    root = ElementTree.fromstring(svg)
    words = " ".join(root.itertext())
    for text in ("Checks passed against memory", "The ring is the pick", *ORIGIN, HOSTILE):
        assert text in words
    assert root.get("width") == "640"
    assert [node for node in root.iter() if node.tag.endswith(("script", "image"))] == []


def test_png_is_twice_as_wide(picture: Picture) -> None:
    png = as_png(picture.chart.to_dict(), width=640)
    assert png.startswith(b"\x89PNG")
    assert struct.unpack(">I", png[16:20])[0] == 1280
