"""Cells that a spreadsheet would take for formulas, made inert in a way that an import can undo."""

import re

# What makes a spreadsheet compute: these signs, in their full-width forms too, at the start of a cell.
STARTS = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(f"'*[{STARTS}]")


def inert(text: str) -> str:
    """The text, behind an apostrophe where it would begin a formula or reads as one that was made inert."""
    return f"'{text}" if _FORMULA.match(text) else text


def as_inert(column: str) -> str:
    """The SQL expression of `inert` for a text column."""
    return f"if(regexp_matches({column}, '^''*[{STARTS}]'), concat('''', {column}), {column})"


def as_written(column: str) -> str:
    """The SQL expression that undoes `as_inert`."""
    return f"if(regexp_matches({column}, '^''+[{STARTS}]'), substr({column}, 2), {column})"
