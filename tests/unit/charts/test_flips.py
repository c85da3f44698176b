import pandas as pd

from liob_core.charts.flips import flip_bars, flip_counts
from liob_core.charts.theme import DARK, LIGHT, Caption


def table() -> pd.DataFrame:
    known = {"is_reference": False, "lost_prompts": "p1", "gained_prompts": "p2, p3"}
    counts = ("n_lost", "n_gained", "mean_lost", "mean_gained")
    rows = [("Q8_0", 8.5, (1, 2, 1.25, 2.5)), ("Q2_K", 2.6, (3, 0, None, None))]
    return pd.DataFrame(
        [
            {"variant": label, "bpw": bits, **dict(zip(counts, flips, strict=True)), **known}
            for label, bits, flips in rows
        ]
    )


def test_losses_go_left_and_gains_right_as_whole_prompts() -> None:
    counts = flip_counts(table(), is_mean=False)
    assert counts["flips"].tolist() == [-1, 2, -3, 0]
    assert counts["words"].tolist() == ["1 lost", "2 gained", "3 lost", "0 gained"]


def test_what_is_not_known_is_not_drawn() -> None:
    counts = flip_counts(table(), is_mean=True)
    assert counts["variant"].tolist() == ["Q8_0", "Q8_0"]
    assert counts["words"].tolist() == ["1.2 lost", "2.5 gained"]


def test_the_band_is_the_references_own_flips_half_to_either_side() -> None:
    def band(noise: float | None) -> list[dict[str, float]]:
        chart = flip_bars(table(), noise, DARK if noise else LIGHT, caption=Caption()).to_dict()
        names = [one["data"]["name"] for one in chart["layer"] if one["mark"]["type"] == "rect"]
        return [row for name in names for row in chart["datasets"][name]]

    assert band(3.0) == [{"flips": -1.5, "end": 1.5}]
    assert band(None) == []
