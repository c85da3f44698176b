"""The reference of the database and of every number in it, as Markdown: `data/README.md` is this text."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from liob_core.cli.output import out
from liob_core.config import SHIPPED_DIR
from liob_core.metrics import METRICS
from liob_core.store import schema
from liob_core.store.database import write

REFERENCE_FILE = SHIPPED_DIR / "README.md"

_HEAD = """# The database, and how its numbers are defined

Made by `python -m liob_core reference --write` from the code itself; do not edit it by hand.

`liob.duckdb` in LIOB's data folder (this folder, unless `LIOB_DATA_DIR` moves it) is a public interface:
query it with any DuckDB from 1.4 on. `sample.duckdb` has the same schema and ships with LIOB. The views
below answer the common questions; the tables behind them are in schema `raw`, every column of them has a
comment too. Units are in the names: `_ms`, `_s`, `_bytes`, `_tps` (tokens per second), `_pct` (0 to 100),
`_share` and `_rate` (0 to 1). Unknown is NULL, and where a value could have been known the column
`unknown` says why it is not.
"""


def reference_markdown() -> str:
    """Every public view with its columns, and every metric with its formula."""
    with tempfile.TemporaryDirectory() as folder, write(Path(folder) / "empty.duckdb") as con:
        views, columns = schema.describe_views(con), schema.describe(con)
    parts = [_HEAD, "## Views\n"]
    for view, comment in sorted(views.items()):
        parts.append(f"### `{view}`\n{comment}\n")
        parts.append(
            _table(
                ("column", "type", "meaning"),
                [
                    (f"`{column.column}`", column.type_name, column.comment)
                    for column in columns
                    if column.view == view
                ],
            )
        )
    parts.append("## Metrics\n")
    parts.append(
        _table(
            ("id", "name", "unit", "formula", "meaning"),
            [(f"`{m.id}`", m.label, m.unit or "", m.formula, m.explanation) for m in METRICS.values()],
        )
    )
    return "\n".join(parts)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def reference(
    write_file: Annotated[
        bool, typer.Option("--write", help="Write data/README.md instead of printing.")
    ] = False,
) -> None:
    """Print the reference of the database and its metrics."""
    text = reference_markdown()
    if write_file:
        REFERENCE_FILE.write_text(text, encoding="utf-8")
    else:
        out.file.write(text)
