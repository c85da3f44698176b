"""Frames as CSV for spreadsheets, in which no cell begins a formula."""

import pandas as pd

from liob_core.store.spreadsheet import inert


def as_csv(frame: pd.DataFrame) -> str:
    """The frame as CSV; texts that a spreadsheet would take for a formula get an apostrophe before them."""
    columns = {
        name: column if column.dtype.kind in "iufbM" else column.map(_inert) for name, column in frame.items()
    }
    # A heading is text too: in the box for SQL anyone can name a column.
    made = pd.DataFrame(columns, columns=frame.columns)
    return made.rename(columns=_inert).to_csv(index=False)


def _inert(value: object) -> object:
    return inert(value) if isinstance(value, str) else value
