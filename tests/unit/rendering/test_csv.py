import csv
import io

import pandas as pd

from liob_core.rendering.csv import as_csv


def test_no_cell_begins_a_formula_and_numbers_stay() -> None:
    frame = pd.DataFrame(
        {"variant": ["=cmd|' /C calc'!A0", "+1", "-2", "@x", "Q4_0", None], "x": [-1.5, 2, 3, 4, 5, 6]}
    )
    rows = list(csv.DictReader(io.StringIO(as_csv(frame))))
    assert [row["variant"] for row in rows] == ["'=cmd|' /C calc'!A0", "'+1", "'-2", "'@x", "Q4_0", ""]
    assert [float(row["x"]) for row in rows] == [-1.5, 2, 3, 4, 5, 6]


def test_heading_begins_no_formula_either_and_what_was_inert_can_be_told_from_it() -> None:
    frame = pd.DataFrame({"=SUM(A1)": ["'=1", "\uff1d1", "\n=1", "it's"]})
    [heading, *cells] = [row[0] for row in csv.reader(io.StringIO(as_csv(frame)))]
    assert heading == "'=SUM(A1)"
    assert cells == ["''=1", "'\uff1d1", "'\n=1", "it's"]
