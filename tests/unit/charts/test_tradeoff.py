"""The trade-off picture read back as the specification a browser would draw."""

import pandas as pd

from liob_core.charts.theme import LIGHT
from liob_core.charts.tradeoff import Bound, scatter
from tests.unit.charts.test_pictures import CAPTION, LABELS, rows_of


def tradeoff_frame(y: str, values: list[float | None]) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "variant": LABELS,
            "is_reference": [True, False, False],
            "bpw": [16.0, 8.5, 5.1],
            "peak_memory_bytes": [4 * 2**30, 2 * 2**30, 2**30],
            "peak_memory_bytes_low": [None, None, None],
            "peak_memory_bytes_high": [None, None, None],
            "decode_tps": [20.0, 40.0, 50.0],
            "decode_tps_low": [19.0, 39.0, 49.0],
            "decode_tps_high": [21.0, 41.0, 51.0],
            "x": "peak_memory_bytes",
            "y": y,
            "standing": ["front", "front", "dominated"],
        }
    )
    if y != "decode_tps":
        frame = frame.assign(**{y: values, f"{y}_low": [0.6, 0.6, None], f"{y}_high": [0.8, 0.8, None]})
    return frame


def test_tradeoff_rings_the_pick_and_leaves_out_the_unchecked() -> None:
    points = tradeoff_frame("pass_rate", [0.7, 0.7, None])
    spec = scatter(points, LIGHT, pick="Q8_0", runner_up="F16", caption=CAPTION).to_dict()

    (labels,) = {tuple(row["variant"] for row in layer) for layer in rows_of(spec, "point")}
    assert labels == ("F16", "Q8_0")
    marks = {row["variant"]: row["mark"] for row in rows_of(spec, "point")[0]}
    assert marks == {"F16": "runner-up", "Q8_0": "pick"}
    assert rows_of(spec, "point")[0][0]["x"] == 4.0
    assert rows_of(spec, "rect") == []
    assert "Checks passed" in str(spec["title"])


def test_tradeoff_shades_what_a_limit_forbids() -> None:
    bounds = {"peak_memory_bytes": Bound(3 * 2**30, is_least=False), "decode_tps": Bound(30.0, is_least=True)}
    spec = scatter(
        tradeoff_frame("decode_tps", []), LIGHT, pick=None, bounds=bounds, caption=CAPTION
    ).to_dict()

    across, up = (rows[0] for rows in rows_of(spec, "rect"))
    assert across["from"] == 3.0
    assert across["to"] >= 4.0
    assert up["from"] <= 20.0
    assert up["to"] == 30.0


def test_tradeoff_by_closeness_has_the_reference_on_top_and_is_drawn_at_0() -> None:
    points = tradeoff_frame("kld_mean", [0.0, 0.7, 0.9])
    spec = scatter(points, LIGHT, pick=None, caption=CAPTION).to_dict()

    scale = next(
        layer["encoding"]["y"]["scale"] for layer in spec["layer"] if layer["mark"]["type"] == "point"
    )
    assert scale["type"] == "symlog"
    assert scale["reverse"] is True
    assert [row["y"] for row in rows_of(spec, "point")[0]] == [0.0, 0.7, 0.9]


def test_tradeoff_draws_the_front_without_the_dominated() -> None:
    spec = scatter(tradeoff_frame("decode_tps", []), LIGHT, pick=None, caption=CAPTION).to_dict()

    assert [row["y"] for row in rows_of(spec, "point")[0]] == [20.0, 40.0, 50.0]
    assert [row["is_front"] for row in rows_of(spec, "line")[0]] == [True, True, False]
    assert "Decode rate" in str(spec["title"])


def test_tradeoff_without_a_pick_has_no_ring_and_no_empty_layer() -> None:
    frame = tradeoff_frame("decode_tps", [])
    with_pick = scatter(frame, LIGHT, pick="Q8_0", caption=CAPTION).to_dict()
    without = scatter(frame, LIGHT, pick=None, caption=CAPTION).to_dict()

    # A layer that draws nothing would be a picture without words to a screen reader.
    assert len(rows_of(with_pick, "point")) == 2
    assert len(rows_of(without, "point")) == 1
