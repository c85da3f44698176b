"""Frames as CSV for spreadsheets, in which no cell begins a formula."""

import pandas as pd

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def as_csv(frame: pd.DataFrame) -> str:
    """The frame as CSV; texts that a spreadsheet would take for a formula get an apostrophe before them."""
    columns = {
        name: column if column.dtype.kind in "iufbM" else column.map(_inert) for name, column in frame.items()
    }
    return pd.DataFrame(columns, columns=frame.columns).to_csv(index=False)


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
