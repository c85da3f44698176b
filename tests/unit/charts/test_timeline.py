"""The picture of what a machine did, read back as the specification a browser would draw."""

from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

from liob_core.charts.resources import BRUSH, time_scale, timeline
from liob_core.charts.theme import DARK, LIGHT, Caption, Look

LABELS = ["F16", "Q8_0"]
CAPTION = Caption(notes=("a note",), origin=("a run",))
MIB = 2**20


def line(panel: str, series: str, at_s: float, value: float, **changes: Any) -> dict[str, Any]:
    row = {
        "panel": panel,
        "series": series,
        "segment": 0,
        "gap_s": 0.0,
        "first_s": at_s,
        "last_s": at_s,
        "at_s": at_s,
        "low": value,
        "high": value,
        "mean": value,
        "peak_s": at_s,
        "n": 1,
    }
    return row | changes


@pytest.fixture
def lines() -> pd.DataFrame:
    return pd.DataFrame(
        [
            line("memory", "engine", 1.0, 100 * MIB),
            line("memory", "engine", 2.0, 300 * MIB, peak_s=2.2),
            line("memory", "engine", 9.0, 200 * MIB, segment=1, gap_s=6.8),
            line("cpu", "machine", 1.0, 50.0),
        ]
    )


@pytest.fixture
def bars() -> pd.DataFrame:
    row = {
        "kind": "request",
        "variant": "F16",
        "bpw": 16.0,
        "is_reference": True,
        "start_s": 1.0,
        "end_s": 3.0,
        "n_requests": 1,
        "n_failed": 0,
        "is_warmup": False,
        "what": "suite",
        "prompt_id": "p1",
        "outcome": "ok",
    }
    return pd.DataFrame(
        [
            row,
            row | {"variant": "Q8_0", "n_failed": 1, "outcome": "timeout", "start_s": 4.0, "end_s": 5.0},
            row | {"kind": "load", "what": "load", "start_s": 0.0, "end_s": 0.5, "n_requests": 0},
        ]
    )


def spec_of(lines: pd.DataFrame, bars: pd.DataFrame, look: Look = LIGHT, **changes: Any) -> dict[str, Any]:
    options: dict[str, Any] = {
        "window_s": (0.0, 10.0),
        "labels": LABELS,
        "reference": "F16",
        "caption": CAPTION,
    }
    chart: dict[str, Any] = timeline(lines, bars, look, **(options | changes)).to_dict()
    return chart


def rows_of(spec: dict[str, Any], field: str) -> list[dict[str, Any]]:
    return [row for rows in spec["datasets"].values() for row in rows if field in row]


def test_one_brush_covers_all_lanes(lines: pd.DataFrame, bars: pd.DataFrame) -> None:
    spec = spec_of(lines, bars)

    (brush,) = spec["params"]
    assert brush["name"] == BRUSH
    assert brush["select"]["encodings"] == ["x"]
    domains = {
        str(layer["encoding"]["x"]["scale"]["domain"])
        for layer in spec["layer"]
        if "scale" in layer["encoding"].get("x", {})
    }
    assert domains == {"[0.0, 10.0]"}


def test_lanes_follow_each_other_without_overlap(lines: pd.DataFrame, bars: pd.DataFrame) -> None:
    spec = spec_of(lines, bars)
    ranges = {
        tuple(float(end["expr"].split("*")[1]) for end in layer["encoding"]["y"]["scale"]["range"])
        for layer in spec["layer"]
        if "range" in layer["encoding"].get("y", {}).get("scale", {})
    }
    ordered = sorted((top, bottom) for bottom, top in ranges)

    assert len(ordered) == 3  # memory, processor, requests; nothing was read of devices
    assert all(first[1] < second[0] for first, second in pairwise(ordered))
    assert ordered[0][0] > 0
    assert ordered[-1][1] <= 1


def test_peak_is_where_it_was_read(lines: pd.DataFrame, bars: pd.DataFrame) -> None:
    peaks = [row for row in rows_of(spec_of(lines, bars), "told") if row["who"] == "engine"]

    assert [(row["peak_at"], row["high"], row["shown"]) for row in peaks] == [(2.2, 300.0, "peak 300 MiB")]


def test_gap_is_shown_and_told(lines: pd.DataFrame, bars: pd.DataFrame) -> None:
    spec = spec_of(lines, bars)
    (gap,) = rows_of(spec, "gap_words")

    assert gap["gap_words"] == "no reading for 6.80 s"
    assert (gap["gap_from"], gap["first"]) == (pytest.approx(2.2), 9.0)
    alone = [row["at"] for row in rows_of(spec, "is_alone") if row["is_alone"]]
    assert alone == [9.0, 1.0]  # a reading without neighbours would be no line at all


def test_requests_stand_in_their_variants_row_and_colour(lines: pd.DataFrame, bars: pd.DataFrame) -> None:
    spec = spec_of(lines, bars, DARK)
    rows = rows_of(spec, "colour")

    assert [row["colour"] for row in rows] == [DARK.reference, DARK.ramp[1], DARK.muted]
    assert [row["failed"] for row in rows] == [False, True, False]
    assert rows[0]["words"] == "suite p1, 2.00 s, ok"
    assert rows[2]["words"] == "load, 500 ms"
    assert rows[0]["above"] < 0 < rows[0]["below"] < rows[1]["above"] < 1 < rows[1]["below"]


def test_label_cannot_leave_its_expression(lines: pd.DataFrame, bars: pd.DataFrame) -> None:
    hostile = '"]; alert(1) //</script>'
    spec = spec_of(lines, bars.assign(variant=hostile), labels=[hostile], reference=None)

    expressions = [
        layer["encoding"]["y"]["axis"]["labelExpr"]
        for layer in spec["layer"]
        if (layer["encoding"].get("y", {}).get("axis") or {}).get("labelExpr")
    ]
    assert set(expressions) == {'["\\"]; alert(1) //\\u003c/script>"][datum.value]'}


@pytest.mark.parametrize(("span_s", "unit"), [(10, "s"), (179, "s"), (180, "min"), (3 * 3600, "h")])
def test_time_is_in_a_unit_that_reads_well(span_s: float, unit: str) -> None:
    assert time_scale(span_s)[1] == unit
