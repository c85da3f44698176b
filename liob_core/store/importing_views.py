"""What the files of an export have in common: a manifest, and views whose columns LIOB knows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from liob_core.errors import FileError
from liob_core.store import connection, schema
from liob_core.store.share import FORMAT_VERSION

# view -> the table that it shows; what the other views show is computed anew
TABLES: Mapping[str, str] = {
    **{name: name for name in ("machines", "runs", "variants", "prompts", "loads", "samples", "events")},
    **{name: name for name in ("readings", "gpu_readings", "judgements", "calibrations", "energy")},
    "closeness": "fidelities",
}

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "2GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

Types = dict[str, dict[str, str]]  # view -> column -> type


def check_manifest(manifest: Any, source: Path) -> dict[str, Any]:
    """The manifest, where it is one of this LIOB or an older one."""
    if not isinstance(manifest, dict) or manifest.get("format") != "liob-run":
        raise FileError(f"{source} is no export of LIOB. Name another file.")
    for name, newest in (("format_version", FORMAT_VERSION), ("schema_version", schema.newest_version())):
        version = manifest.get(name)
        if type(version) is not int or version > newest:
            raise FileError(
                f"{source} is from a newer LIOB ({name} {str(version)[:20]}; this one knows {newest}). "
                "Update LIOB to import it."
            )
    return manifest


def check_columns(view: str, found: Mapping[str, Any], types: Mapping[str, str], source: Path) -> None:
    """Refuse a file whose columns are not all columns of the view."""
    odd = [name for name in found if name not in types]
    if odd or not found:
        what = f"a column {odd[0][:60]!r} in {view}" if odd else f"no columns in {view}"
        raise FileError(f"{source} has {what}, which LIOB does not write; nothing was merged.")


def set_offsets(con: duckdb.DuckDBPyConnection, manifest: Mapping[str, Any], source: Path) -> None:
    """How far each run's journal was read where it was exported; a later export has more."""
    offsets = manifest.get("offsets", {})
    if not isinstance(offsets, dict):
        raise FileError(f"{source}: the offsets of its manifest are no offsets; nothing was merged.")
    for run_id, pair in offsets.items():
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(offset) is int for offset in pair)):
            raise FileError(f"{source}: the offsets of its manifest are no offsets; nothing was merged.")
        con.execute(
            "UPDATE raw.runs SET journal_offset = ?, readings_offset = ? WHERE run_id = ?", [*pair, run_id]
        )


def view_types(con: duckdb.DuckDBPyConnection) -> Types:
    """The types of all columns of the public views of the open database."""
    types: Types = {}
    for column in schema.describe(con):
        types.setdefault(column.view, {})[column.column] = column.type_name
    return types


def table_columns(con: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """The columns of every base table of the open database."""
    found: dict[str, set[str]] = {}
    for table, column in con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'raw'"
    ).fetchall():
        found.setdefault(table, set()).add(column)
    return found


@contextmanager
def new_tables(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a new database with LIOB's tables and views and nothing in them."""
    with duckdb.connect(str(path), config=_CONFIG) as con:
        with connection.transaction(con):
            schema.migrate(con, with_comments=False)
        yield con
