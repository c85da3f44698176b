"""What `export --format json` wrote, as a DuckDB file of LIOB's schema."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from liob_core.errors import FileError
from liob_core.store import bulk, rows
from liob_core.store.importing_views import (
    TABLES,
    check_columns,
    check_manifest,
    new_tables,
    set_offsets,
    table_columns,
    view_types,
)

_MOST_BYTES = 256 * 2**20
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "VARCHAR": (str,),
    "BOOLEAN": (bool,),
    "INTEGER": (int,),
    "BIGINT": (int,),
    "DOUBLE": (int, float),
    "TIMESTAMP": (str,),
}


def read_json(source: Path) -> Any:
    """The document in a file; numbers that JSON does not have are no numbers here either."""
    if source.stat().st_size > _MOST_BYTES:
        raise FileError(f"{source} is larger than LIOB reads as JSON. Export the run as DuckDB or Parquet.")
    return parse_json(source.read_bytes(), source)


def parse_json(text: bytes, source: Path) -> Any:
    """The document in `text`; numbers that JSON does not have are no numbers here either."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{source} is no JSON that LIOB reads, or is cut off: nothing was merged.") from error


def stage_json(document: dict[str, Any], source: Path, staged: Path) -> None:
    """Make `staged` from an export's one document."""
    manifest = check_manifest(document.get("manifest"), source)
    with new_tables(staged) as con:
        types, own = view_types(con), table_columns(con)
        for view, table in TABLES.items():
            columns = _checked_records(view, document.get(view, []), types[view], source)
            bulk.insert(con, table, _kept(view, columns, own[table]))
        set_offsets(con, manifest, source)


def _checked_records(
    view: str, records: Any, types: Mapping[str, str], source: Path
) -> dict[str, list[object]]:
    """The records by column, each value of the type that its column has."""
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise FileError(f"{source}: {view} is no list of records; nothing was merged.")
    names = dict.fromkeys(name for record in records for name in record)
    if names:
        check_columns(view, names, types, source)
    return {
        name: [_value(view, name, types[name], record.get(name), source) for record in records]
        for name in names
    }


def _value(view: str, name: str, kind: str, value: Any, source: Path) -> object:
    if value is None:
        return None
    if kind == "JSON":
        return rows.json_text(value)
    if kind == "VARCHAR[]":
        is_right = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        # bool is an int to Python and to nobody else
        allowed = _PYTHON_TYPES.get(kind, (str,))
        is_right = isinstance(value, allowed) and (kind == "BOOLEAN" or not isinstance(value, bool))
    if not is_right:
        raise FileError(
            f"{source}: {view}.{name} holds {type(value).__name__}, not {kind}; nothing was merged."
        )
    return rows.to_utc(value) if kind == "TIMESTAMP" else value


def _kept(view: str, columns: Mapping[str, list[object]], own: Collection[str]) -> dict[str, list[object]]:
    """The columns that the view's table has, with those it needs besides."""
    kept = {name: values for name, values in columns.items() if name in own}
    if view == "runs" and kept:
        n_runs = len(next(iter(kept.values())))
        kept |= {name: [0] * n_runs for name in ("journal_offset", "readings_offset")}
    return kept


def _no_constant(name: str) -> None:
    raise ValueError(name)
