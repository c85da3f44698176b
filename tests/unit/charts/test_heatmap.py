import pandas as pd

from liob_core.charts.heatmap import POINTS, SCORES, difference_map
from liob_core.charts.theme import DARK, LIGHT, Caption


def cells():
    """A clear loss, a difference inside its noise, and nothing to compare."""
    rows = [
        ("math", "Q2_K", 4, -0.25, -0.4, -0.1, 0, 1, True, None),
        ("facts", "Q2_K", 9, 0.11, -0.2, 0.4, 1, 0, False, None),
        ("code", "Q2_K", 0, None, None, None, None, None, False, "no prompt was checked for both"),
    ]
    names = [
        "category",
        "variant",
        "n",
        "delta",
        "delta_low",
        "delta_high",
        "n_gained",
        "n_lost",
        "is_clear",
        "reason",
    ]
    return pd.DataFrame(rows, columns=names).assign(bpw=3.0, n_prompts=9)


def spec_of(look=LIGHT, unit=POINTS):
    spec = difference_map(cells(), look, unit=unit, title="t", caption=Caption()).to_dict()
    drawn = {row["category"]: row for rows in spec["datasets"].values() for row in rows if "category" in row}
    return spec, drawn


def test_figures_and_marks_stand_in_the_cells():
    _, drawn = spec_of()
    assert {name: row["label"] for name, row in drawn.items()} == {
        "math": "▼ −25",
        "facts": "+11",
        "code": "—",
    }
    assert drawn["math"]["words"] == "−25 (95 %: −40 to −10; 0 better, 1 worse)"
    assert drawn["code"]["words"] == "no prompt was checked for both"


def test_the_scale_is_centred_on_zero_and_grey_unless_clear():
    for look in (LIGHT, DARK):
        spec, _ = spec_of(look)
        colours = [layer["encoding"]["color"] for layer in spec["layer"] if "color" in layer["encoding"]]
        (colour,) = colours
        assert colour["condition"]["test"] == "datum.is_clear"
        low, middle, high = colour["condition"]["scale"]["domain"]
        assert (middle, low) == (0, -high)
        assert colour["condition"]["scale"]["range"][1] == colour["value"] == look.grid


def test_an_unscored_cell_is_hatched():
    spec, _ = spec_of()
    fills = [layer["mark"].get("fill") for layer in spec["layer"] if layer["mark"]["type"] == "rect"]
    assert [fill["gradient"] for fill in fills if fill] == ["linear"]


def test_scores_have_a_decimal():
    assert SCORES.spell(-1.25) in {"−1.2", "−1.3"}
    assert POINTS.spell(0.0) == "0"
    assert POINTS.spell(-0.001) == "0"
