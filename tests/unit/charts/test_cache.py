import pandas as pd

from liob_core.charts.cache import cache_scatter
from liob_core.charts.theme import LIGHT, Caption


def test_the_reference_is_not_drawn_and_each_weights_are_named_once():
    costs = pd.DataFrame(
        {
            "variant": ["F16 KV f16", "F16 KV q8_0", "F16 KV q4_0", "Q4 KV f16", "Q4 KV q8_0"],
            "is_reference": [True, False, False, False, False],
            "bpw": [16.0, 16.0, 16.0, 4.5, 4.5],
            "kv_type": ["f16", "q8_0", "q4_0", "f16", "q8_0"],
            "base": ["F16 KV f16"] * 3 + ["Q4 KV f16"] * 2,
            "cache_bytes": [96.0, 51.0, 27.0, 96.0, 51.0],
            "memory_bytes": [300e6, 250e6, 230e6, 180e6, 140e6],
            "saved_share": [0.0, 0.47, 0.72, 0.0, 0.47],
            "kld_mean": [None, 0.0004, 0.01, 0.03, 0.031],
            "kld_low": [None, -0.001, 0.009, None, 0.03],
            "kld_high": [None, 0.001, 0.011, None, 0.032],
            "words": "",
        }
    )
    spec = cache_scatter(costs, LIGHT, caption=Caption()).to_dict()
    drawn = {row["variant"]: row for rows in spec["datasets"].values() for row in rows if "variant" in row}
    assert set(drawn) == set(costs["variant"]) - {"F16 KV f16"}
    assert [row["label"] for row in drawn.values()] == ["F16 KV q8_0", "q4_0", "Q4 KV f16", "q8_0"]
    # A log scale has no 0 and nothing below it.
    assert all(0 < row["low"] <= row["kld_mean"] <= row["high"] for row in drawn.values())
    shapes = [layer["encoding"]["shape"] for layer in spec["layer"] if "shape" in layer.get("encoding", {})]
    assert [shape["scale"]["domain"] for shape in shapes] == [["f16", "q8_0", "q4_0"]]
