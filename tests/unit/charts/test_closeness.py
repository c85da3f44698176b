import pandas as pd

from liob_core.charts.closeness import closeness_ladder, floor_note
from liob_core.charts.theme import LIGHT, Caption


def table(**changes):
    frame = pd.DataFrame(
        {
            "variant": ["F16", "Q8_0", "Q2_K"],
            "is_reference": [True, False, False],
            "bpw": [16.0, 8.5, 3.0],
            "kld_mean": [None, 0.002, 0.4],
            "kld_low": [None, -0.001, 0.3],
            "kld_high": [None, 0.005, 0.5],
            "is_floor": False,
            "is_compressed": False,
            "model_reference": "F16",
        }
    )
    return frame.assign(**changes)


def data_of(chart):
    spec = chart.to_dict()
    return [row for rows in spec["datasets"].values() for row in rows], spec


def test_the_reference_is_not_drawn_and_the_scale_is_logarithmic():
    rows, spec = data_of(closeness_ladder(table(), LIGHT, caption=Caption()))
    drawn = {row["variant"] for row in rows if "kld_mean" in row}
    assert drawn == {"Q8_0", "Q2_K"}
    scales = [layer["encoding"]["y"].get("scale", {}) for layer in spec["layer"] if "y" in layer["encoding"]]
    assert {scale.get("type") for scale in scales} == {"log"}


def test_an_interval_that_reaches_zero_ends_where_the_scale_does():
    rows, spec = data_of(closeness_ladder(table(), LIGHT, caption=Caption()))
    low = next(row["low"] for row in rows if row.get("variant") == "Q8_0" and "low" in row)
    domain = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert 0 < domain[0] < low < 0.002
    assert domain[1] > 0.5


def test_only_guides_near_the_points_are_drawn():
    rows, _ = data_of(closeness_ladder(table(), LIGHT, caption=Caption()))
    guides = [row["guide"] for row in rows if "guide" in row]
    assert set(guides) == {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K"}
    near = table(kld_mean=[None, 0.2, 0.4], kld_low=[None, 0.15, 0.3])
    rows, _ = data_of(closeness_ladder(near, LIGHT, caption=Caption()))
    assert {row["guide"] for row in rows if "guide" in row} == {"Q3_K_M", "Q2_K"}


def test_a_noise_floor_is_drawn_only_where_one_was_measured():
    rows, _ = data_of(closeness_ladder(table(), LIGHT, caption=Caption()))
    assert floor_note(table()) == []
    assert not any(row.get("name") == "noise floor" for row in rows)
    measured = table(is_floor=[False, True, False])
    rows, _ = data_of(closeness_ladder(measured, LIGHT, caption=Caption()))
    assert [row["kld"] for row in rows if row.get("name") == "noise floor"] == [0.002]
    assert floor_note(measured) == ["Noise floor: Q8_0, the reference itself on other kernels"]


def test_compressed_caches_are_left_to_their_own_picture():
    rows, _ = data_of(closeness_ladder(table(is_compressed=[False, False, True]), LIGHT, caption=Caption()))
    assert {row["variant"] for row in rows if "kld_mean" in row} == {"Q8_0"}
