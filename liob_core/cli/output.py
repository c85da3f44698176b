"""What a command prints: words for people, or one JSON document and nothing else."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

out = Console()
err = Console(stderr=True)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    out.file.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def plain(value: Any) -> Any:
    """The value as JSON can hold it: records as objects, frames as lists of rows, unknown as null."""
    if hasattr(value, "to_json"):  # a DataFrame; to ask for its class would import pandas
        return json.loads(value.to_json(orient="records", date_format="iso", date_unit="us"))
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def print_table(title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; `columns` are (heading, left or right)."""
    table = Table(title=title or None, title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    for heading, side in columns:
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)
