"""Each picture is read back as the specification a browser would draw."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from liob_core.charts.live import sparkline
from liob_core.charts.memory import memory_bars
from liob_core.charts.speed import latency_strip, rate_dots
from liob_core.charts.theme import DARK, LIGHT, Caption

LABELS = ["F16", "Q8_0", "Q2_K"]
CAPTION = Caption(notes=("three variants",), origin=("SmolLM2 · 30 Nov 2026 · LIOB 0.1.0", "a machine"))


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "variant": LABELS,
            "is_reference": [True, False, False],
            "bpw": [16.0, 8.5, 5.1],
            "chat512_decode_tps": [20.0, 40.0, np.nan],
            "chat512_decode_tps_ci_low": [19.0, np.nan, np.nan],
            "chat512_decode_tps_ci_high": [21.0, np.nan, np.nan],
            "ceiling_tps": [np.nan, np.nan, np.nan],
            "roofline_share": [np.nan, np.nan, np.nan],
        }
    )


@pytest.fixture
def blocks() -> pd.DataFrame:
    rows = [("F16", 0, 19.5), ("F16", 1, 20.5), ("Q8_0", 0, 40.0), ("Q2_K", 0, np.nan)]
    frame = pd.DataFrame(rows, columns=["variant", "block", "decode_tps"])
    return frame.assign(task="speed", shape="chat512")


def rows_of(spec: dict[str, Any], mark: str) -> list[list[dict[str, Any]]]:
    """The data of each layer with that mark."""
    return [
        spec["datasets"][layer["data"]["name"]]
        for layer in spec["layer"]
        if layer["mark"]["type"] == mark and "data" in layer
    ]


def texts_of(spec: dict[str, Any]) -> str:
    return str(spec["title"]) + str(spec["datasets"])


def test_rate_without_interval_has_a_dot_and_no_line(table: pd.DataFrame, blocks: pd.DataFrame) -> None:
    spec = rate_dots(table, blocks, LIGHT, metric="decode_tps", shape="chat512", caption=CAPTION).to_dict()

    assert [row["variant"] for row in rows_of(spec, "rule")[0]] == ["F16"]
    assert [row["variant"] for row in rows_of(spec, "point")[0]] == ["F16", "Q8_0"]
    assert len(rows_of(spec, "tick")[0]) == 3
    words = {row["variant"]: row["words"] for row in rows_of(spec, "point")[0]}
    assert words["F16"] == "20.0 tok/s (19.0 to 21.0 tok/s)"
    assert words["Q8_0"] == "40.0 tok/s (no interval)"


def test_ceiling_stands_where_it_is_known(table: pd.DataFrame, blocks: pd.DataFrame) -> None:
    known = table.assign(ceiling_tps=[25.0, np.nan, np.nan], roofline_share=[0.8, np.nan, np.nan])
    marks = {"metric": "decode_tps", "caption": CAPTION}
    spec = rate_dots(known, blocks, LIGHT, shape="chat512", **marks).to_dict()
    ceilings, single = rows_of(spec, "tick")
    assert [(row["variant"], row["ceiling_tps"]) for row in ceilings] == [("F16", 25.0)]
    assert ceilings[0]["words"] == "25.0 tok/s, of which 80 % are reached"
    assert len(single) == 3
    # It is worked out for the depth of chat512 alone.
    others = known.assign(**{f"tg128_decode_tps{end}": 1.0 for end in ("", "_ci_low", "_ci_high")})
    spec = rate_dots(others, blocks.assign(shape="tg128"), LIGHT, shape="tg128", **marks).to_dict()
    assert len(rows_of(spec, "tick")) == 1


def test_unknown_rate_is_never_zero(table: pd.DataFrame, blocks: pd.DataFrame) -> None:
    spec = rate_dots(table, blocks, LIGHT, metric="decode_tps", shape="chat512", caption=CAPTION).to_dict()

    values = [row["value"] for layer in (*rows_of(spec, "point"), *rows_of(spec, "tick")) for row in layer]
    assert 0 not in values
    assert min(values) == 19.5


def test_variants_stand_in_ladder_order_with_one_colour_each(
    table: pd.DataFrame, blocks: pd.DataFrame
) -> None:
    shuffled = table.iloc[[2, 0, 1]]
    spec = rate_dots(shuffled, blocks, DARK, metric="decode_tps", shape="chat512", caption=CAPTION).to_dict()

    encoding = spec["layer"][0]["encoding"]
    assert encoding["y"]["sort"] == LABELS
    assert encoding["color"]["scale"]["domain"] == LABELS
    assert encoding["color"]["scale"]["range"][0] == DARK.reference
    assert encoding["color"]["legend"] is None
    assert spec["config"]["background"] == DARK.page


def test_picture_says_where_it_comes_from(table: pd.DataFrame, blocks: pd.DataFrame) -> None:
    spec = rate_dots(table, blocks, LIGHT, metric="decode_tps", shape="chat512", caption=CAPTION).to_dict()

    for words in ("Decode rate, chat512", "three variants", "30 Nov 2026", "LIOB 0.1.0", "a machine"):
        assert words in texts_of(spec)


def latencies(values: dict[str, list[float | None]], **whole: dict[str, float | None]) -> pd.DataFrame:
    """The frame `latencies`: requests in ms by variant, and what is known of all of a variant's requests."""
    frame = pd.DataFrame(
        [(v, ms) for v, all_ms in values.items() for ms in all_ms], columns=["variant", "ttft_ms"]
    )
    frame["ttft_ms_n"] = frame["variant"].map(frame.groupby("variant")["ttft_ms"].count())
    for name in ("p50", "p90", "p99"):
        frame[f"ttft_ms_{name}"] = frame["variant"].map(whole.get(name, {})).astype(float)
    return frame


def test_latency_shows_every_request_and_the_median_of_all(table: pd.DataFrame) -> None:
    samples = latencies({"F16": [10.0, None], "Q8_0": [12.0]}, p50={"F16": 10.0, "Q8_0": 11.5})

    spec = latency_strip(table, samples, LIGHT, metric="ttft_ms", caption=CAPTION).to_dict()

    assert [row["value"] for row in rows_of(spec, "tick")[0]] == [10.0, 12.0]
    assert [row["value"] for row in rows_of(spec, "point")[0]] == [10.0, 11.5]


def test_latency_tells_only_the_percentiles_that_are_known(table: pd.DataFrame) -> None:
    samples = latencies(
        {"F16": [10.0], "Q8_0": [12.0], "Q2_K": [9.0]},
        p50={"F16": 10.0, "Q8_0": 1234.0},
        p90={"F16": 20.0},
        p99={"F16": 2500.0},
    )

    spec = latency_strip(table, samples, LIGHT, metric="ttft_ms", caption=CAPTION).to_dict()

    told = {row["variant"]: row["words"] for row in rows_of(spec, "text")[0]}
    assert told == {"F16": "p50 10.0 ms, p90 20.0 ms, p99 2.50 s", "Q8_0": "p50 1.23 s"}


def test_two_thousand_requests_can_be_drawn(table: pd.DataFrame) -> None:
    samples = latencies({"F16": [float(ms) for ms in range(2_000)]}, p50={"F16": 999.5})

    spec = latency_strip(table, samples, LIGHT, metric="ttft_ms", caption=CAPTION).to_dict()

    assert len(rows_of(spec, "tick")[0]) == 2_000


def test_memory_parts_add_up_and_predictions_stand_beside(table: pd.DataFrame) -> None:
    parts = pd.DataFrame(
        {
            "variant": ["F16", "F16", "F16", "Q8_0"],
            "kind": ["measured", "measured", "predicted", "measured"],
            "part": ["weights", "KV cache", "weights", "weights"],
            "bytes": [200 * 2**20, 50 * 2**20, 210 * 2**20, 100 * 2**20],
            "source": ["reported by the engine"] * 4,
            "need_bytes": [260 * 2**20, 260 * 2**20, 260 * 2**20, None],
        }
    )

    spec = memory_bars(table, parts, LIGHT, caption=CAPTION).to_dict()

    bars = rows_of(spec, "bar")[0]
    assert [(row["part"], row["size"]) for row in bars if row["variant"] == "F16"] == [
        ("weights", 200.0),
        ("KV cache", 50.0),
    ]
    assert [(row["variant"], row["size"]) for row in rows_of(spec, "tick")[0]] == [("F16", 260.0)]
    assert spec["layer"][0]["encoding"]["x"]["title"] == "MiB"


def test_memory_without_any_prediction_has_no_tick(table: pd.DataFrame) -> None:
    parts = pd.DataFrame(
        {
            "variant": ["F16"],
            "kind": ["measured"],
            "part": ["other"],
            "bytes": [200 * 2**20],
            "source": ["measured"],
            "need_bytes": pd.array([pd.NA], dtype="Int64"),
        }
    )

    spec = memory_bars(table, parts, LIGHT, caption=CAPTION).to_dict()

    assert rows_of(spec, "tick") == []
    assert len(rows_of(spec, "bar")[0]) == 1


def test_nothing_measured_still_draws(table: pd.DataFrame) -> None:
    columns = ["variant", "kind", "part", "bytes", "source", "need_bytes"]

    spec = memory_bars(table, pd.DataFrame(columns=columns), LIGHT, caption=CAPTION).to_dict()

    assert rows_of(spec, "bar")[0] == []


def test_sparkline_keeps_gaps() -> None:
    spec = sparkline([1.0, None, 3.0], LIGHT, title="Decode rate", latest="3 tok/s").to_dict()

    (values,) = spec["datasets"].values()
    assert [row["value"] for row in values] == [1.0, None, 3.0]
    assert spec["layer"][0]["mark"]["invalid"] == "break-paths-show-domains"
