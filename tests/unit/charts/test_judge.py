import pandas as pd

from liob_core.charts.judge import result_bars, score_dots
from liob_core.charts.theme import LIGHT, Caption


def rows_of(chart):
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_scores_stay_on_their_scale_and_unscored_variants_are_a_gap():
    table = pd.DataFrame(
        {
            "variant": ["F16", "Q8_0", "Q2_K"],
            "is_reference": [True, False, False],
            "bpw": [16.0, 8.5, 3.0],
            "mean_score": [9.5, 5.0, None],
            "ci_low": [8.0, None, None],
            "ci_high": [11.0, None, None],
            "n_scored": [4, 1, 0],
        }
    )
    chart = score_dots(table, LIGHT, caption=Caption())
    rows = rows_of(chart)
    assert {row["variant"] for row in rows if "mean" in row} == {"F16", "Q8_0"}
    assert max(row["high"] for row in rows if row.get("high") is not None) == 10
    points = next(layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "point")
    assert points["encoding"]["x"]["scale"]["domain"] == [1, 10]


def test_bars_count_wins_ties_and_losses():
    table = pd.DataFrame(
        {
            "variant": ["Q8_0", "Q2_K"],
            "is_reference": False,
            "bpw": [8.5, 3.0],
            "n_wins": [1, 0],
            "n_ties": [3, 0],
            "n_losses": [0, 4],
        }
    )
    rows = rows_of(result_bars(table, LIGHT, caption=Caption()))
    assert {(row["variant"], row["result"], row["n"]) for row in rows} == {
        ("Q8_0", "win", 1),
        ("Q8_0", "tie", 3),
        ("Q2_K", "loss", 4),
    }
